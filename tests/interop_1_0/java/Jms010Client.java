import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Enumeration;
import java.util.List;
import java.util.Random;
import javax.jms.*;
import org.apache.qpid.client.AMQConnectionFactory;

/**
 * Qpid's JMS client 6.4 over AMQP 0-10, 0-9 or 0-8, as -Dqpid.amqp.version has it: `Jms010Client PLACE [SCENARIO...]`, where PLACE is JSON as
 * programs.py gives it. Each method
 * scenario_NAME runs with connections of its own; a line for each: `ok NAME`, or `failed NAME: why`.
 */
public class Jms010Client {
    static final long WAIT_MS = 15_000;
    static final long NOTHING_MS = 400;

    final String place;
    final String name;
    final List<Connection> connections = new ArrayList<>();

    Jms010Client(String place, String name) {
        this.place = place;
        this.name = name;
    }

    public static void main(String[] arguments) throws Exception {
        List<String> chosen = List.of(arguments).subList(1, arguments.length);
        for (Method method : Jms010Client.class.getDeclaredMethods()) {
            String name = method.getName().replaceFirst("^scenario_", "");
            if (!method.getName().startsWith("scenario_") || (!chosen.isEmpty() && !chosen.contains(name))) {
                continue;
            }
            Jms010Client client = new Jms010Client(arguments[0], name);
            try {
                method.invoke(client);
                System.out.println("ok " + name);
            } catch (InvocationTargetException error) {
                error.getCause().printStackTrace();
                System.out.println("failed " + name + ": " + String.valueOf(error.getCause()).replaceAll("\\s+", " "));
            }
            for (Connection connection : client.connections) {
                try {
                    connection.close();
                } catch (JMSException error) {
                    System.err.println(name + ": " + error);
                }
            }
        }
        System.exit(0);
    }

    // ---- what the scenarios share

    String told(String field) {
        return place.replaceFirst("^.*\"" + field + "\": \"?([^\",}]*)\"?.*$", "$1");
    }

    Connection connected(String identity) throws Exception {
        String broker = "tcp://" + told("host") + ":" + told("port") + "?retries='1'&connectdelay='100'";
        String url = "amqp://" + told("user") + ":" + told("password") + "@" + identity + "/?brokerlist='" + broker + "'";
        Connection connection = new AMQConnectionFactory(url).createConnection();
        connections.add(connection);
        connection.start();
        return connection;
    }

    Session session() throws Exception {
        return connected("").createSession(false, Session.AUTO_ACKNOWLEDGE);
    }

    Queue queue(Session session) throws Exception {
        return session.createQueue("ADDR:" + told("client") + "-qpid" + "." + name + "; {create: always, node: {durable: true}}");
    }

    static void check(boolean holds, String what) {
        if (!holds) {
            throw new AssertionError(what);
        }
    }

    static void is(String wanted, Message message) throws Exception {
        check(message != null, "no message where '" + wanted + "' was to come");
        check(wanted.equals(((TextMessage) message).getText()), "'" + ((TextMessage) message).getText() + "' where '" + wanted + "' was to come");
    }

    static void nothing(MessageConsumer consumer) throws Exception {
        check(consumer.receive(NOTHING_MS) == null, "a message more");
    }

    void send(Session session, Destination destination, String... texts) throws Exception {
        MessageProducer producer = session.createProducer(destination);
        for (String text : texts) {
            producer.send(session.createTextMessage(text));
        }
        producer.close();
    }

    // ---- the scenarios

    void scenario_properties() throws Exception {
        Session session = session();
        Queue queue = queue(session);
        MessageProducer producer = session.createProducer(queue);
        TextMessage sent = session.createTextMessage("hello");
        sent.setStringProperty("a", "b");
        sent.setByteProperty("o", (byte) -3);
        sent.setShortProperty("h", (short) 300);
        sent.setIntProperty("n", 5);
        sent.setLongProperty("l", 1L << 40);
        sent.setFloatProperty("f", 1.5f);
        sent.setDoubleProperty("d", 2.5);
        sent.setBooleanProperty("t", true);
        sent.setJMSCorrelationID("corr");
        sent.setJMSType("kind");
        producer.setPriority(7);
        producer.send(sent);
        TextMessage got = (TextMessage) session.createConsumer(queue).receive(WAIT_MS);
        is("hello", got);
        check("b".equals(got.getStringProperty("a")) && got.getByteProperty("o") == -3 && got.getShortProperty("h") == 300, "properties");
        check(got.getIntProperty("n") == 5 && got.getLongProperty("l") == 1L << 40 && got.getBooleanProperty("t"), "numbers");
        check(got.getFloatProperty("f") == 1.5f && got.getDoubleProperty("d") == 2.5, "fractions");
        check("corr".equals(got.getJMSCorrelationID()), "correlation id " + got.getJMSCorrelationID());
        check("kind".equals(got.getJMSType()), "type " + got.getJMSType());
        check(got.getJMSPriority() == 7, "priority " + got.getJMSPriority());
        check(sent.getJMSMessageID().equals(got.getJMSMessageID()), "message id");
        check(got.getJMSDeliveryMode() == DeliveryMode.PERSISTENT && !got.getJMSRedelivered(), "delivery mode, redelivered");
    }

    void scenario_binding_url() throws Exception {
        Session session = session();
        Queue queue = session.createQueue("BURL:direct://amq.direct//" + told("client") + "-qpid" + ".burl?durable='true'");
        MessageConsumer consumer = session.createConsumer(queue);
        send(session, queue, "burl");
        is("burl", consumer.receive(WAIT_MS));
    }

    void scenario_order_and_client_acknowledgement() throws Exception {
        Session session = connected("").createSession(false, Session.CLIENT_ACKNOWLEDGE);
        Queue queue = queue(session);
        MessageProducer producer = session.createProducer(queue);
        for (int number = 0; number < 2000; number++) {
            producer.send(session.createTextMessage("m" + number));
        }
        MessageConsumer consumer = session.createConsumer(queue);
        for (int number = 0; number < 2000; number++) {
            Message message = consumer.receive(WAIT_MS);
            is("m" + number, message);
            if (number % 100 == 99) {
                message.acknowledge();
            }
        }
        nothing(consumer);
    }

    void scenario_large() throws Exception {
        Session session = session();
        Queue queue = queue(session);
        byte[] octets = new byte[1_000_000];
        new Random(1).nextBytes(octets);
        BytesMessage sent = session.createBytesMessage();
        sent.writeBytes(octets);
        session.createProducer(queue).send(sent);
        BytesMessage got = (BytesMessage) session.createConsumer(queue).receive(WAIT_MS);
        byte[] read = new byte[octets.length];
        check(got.readBytes(read) == octets.length && Arrays.equals(octets, read), "octets");
    }

    void scenario_bodies() throws Exception {
        Session session = session();
        Queue queue = queue(session);
        MessageProducer producer = session.createProducer(queue);
        MapMessage map = session.createMapMessage();
        map.setInt("i", 3);
        map.setString("s", "x");
        producer.send(map);
        StreamMessage stream = session.createStreamMessage();
        stream.writeInt(4);
        stream.writeString("y");
        producer.send(stream);
        producer.send(session.createObjectMessage("object"));
        producer.send(session.createMessage());
        producer.send(session.createTextMessage(""));
        MessageConsumer consumer = session.createConsumer(queue);
        MapMessage gotMap = (MapMessage) consumer.receive(WAIT_MS);
        check(gotMap.getInt("i") == 3 && gotMap.getString("s").equals("x"), "map");
        StreamMessage gotStream = (StreamMessage) consumer.receive(WAIT_MS);
        check(gotStream.readInt() == 4 && gotStream.readString().equals("y"), "stream");
        check(((ObjectMessage) consumer.receive(WAIT_MS)).getObject().equals("object"), "object");
        check(consumer.receive(WAIT_MS) != null, "a message without a body");
        check(consumer.receive(WAIT_MS) instanceof TextMessage, "an empty text");
    }

    void scenario_transactions() throws Exception {
        Session session = connected("").createSession(true, Session.SESSION_TRANSACTED);
        Queue queue = queue(session);
        send(session, queue, "1");
        session.rollback();
        send(session, queue, "2");
        session.commit();
        MessageConsumer consumer = session.createConsumer(queue);
        is("2", consumer.receive(WAIT_MS));
        session.rollback();
        Message again = consumer.receive(WAIT_MS);
        is("2", again);
        check(again.getJMSRedelivered(), "it was not told to be redelivered");
        session.commit();
        nothing(consumer);
    }

    /** Atomikos commits, and rolls back, over two sessions that are two branches: what one consumes the other publishes. */
    void scenario_transaction_manager() throws Exception {
        if (!"0-10".equals(System.getProperty("qpid.amqp.version"))) {
            return; // the versions before have no class dtx that this client uses
        }
        String broker = "tcp://" + told("host") + ":" + told("port") + "?retries='1'&connectdelay='100'";
        String url = "amqp://" + told("user") + ":" + told("password") + "@/?brokerlist='" + broker + "'";
        XAConnection[] connected = new XAConnection[2];
        XASession[] sessions = new XASession[2];
        for (int number = 0; number < 2; number++) {
            connected[number] = (XAConnection) new AMQConnectionFactory(url).createXAConnection();
            connections.add(connected[number]);
            connected[number].start();
            sessions[number] = connected[number].createXASession();
        }
        Session plain = session();
        Queue from = queue(plain);
        Queue to = plain.createQueue("ADDR:" + told("client") + "-qpid." + name + "-to; {create: always, node: {durable: true}}");
        send(plain, from, "moved");
        java.nio.file.Path logs = java.nio.file.Files.createTempDirectory("atomikos");
        System.setProperty("com.atomikos.icatch.log_base_dir", logs.toString());
        System.setProperty("com.atomikos.icatch.registered", "true");
        com.atomikos.icatch.jta.UserTransactionManager manager = new com.atomikos.icatch.jta.UserTransactionManager();
        com.atomikos.icatch.config.Configuration.addResource(new com.atomikos.datasource.xa.XATransactionalResource("in") {
            @Override
            protected javax.transaction.xa.XAResource refreshXAConnection() {
                return sessions[0].getXAResource();
            }
        });
        com.atomikos.icatch.config.Configuration.addResource(new com.atomikos.datasource.xa.XATransactionalResource("out") {
            @Override
            protected javax.transaction.xa.XAResource refreshXAConnection() {
                return sessions[1].getXAResource();
            }
        });
        manager.init();
        MessageConsumer consumer = sessions[0].createConsumer(from);
        for (boolean commits : new boolean[] {false, true}) {
            manager.begin();
            manager.getTransaction().enlistResource(sessions[0].getXAResource());
            manager.getTransaction().enlistResource(sessions[1].getXAResource());
            is("moved", consumer.receive(WAIT_MS));
            sessions[1].createProducer(to).send(sessions[1].createTextMessage("came"));
            manager.getTransaction().delistResource(sessions[0].getXAResource(), javax.transaction.xa.XAResource.TMSUCCESS);
            manager.getTransaction().delistResource(sessions[1].getXAResource(), javax.transaction.xa.XAResource.TMSUCCESS);
            if (commits) {
                manager.commit();
            } else {
                manager.rollback();
            }
        }
        manager.close();
        check(sessions[0].getXAResource().recover(javax.transaction.xa.XAResource.TMSTARTRSCAN).length == 0, "a branch is left");
        MessageConsumer came = plain.createConsumer(to);
        is("came", came.receive(WAIT_MS));
        nothing(came);
    }

    void scenario_selectors() throws Exception {
        Session session = session();
        Queue queue = queue(session);
        MessageProducer producer = session.createProducer(queue);
        for (int number = 0; number < 6; number++) {
            TextMessage message = session.createTextMessage("m" + number);
            message.setIntProperty("n", number);
            producer.send(message);
        }
        MessageConsumer consumer = session.createConsumer(queue, "n > 3");
        is("m4", consumer.receive(WAIT_MS));
        is("m5", consumer.receive(WAIT_MS));
        nothing(consumer);
        consumer.close();
        consumer = session.createConsumer(queue);
        for (int number = 0; number < 4; number++) {
            is("m" + number, consumer.receive(WAIT_MS));
        }
    }

    void scenario_selector_without_sense() throws Exception {
        Session session = session();
        try {
            session.createConsumer(queue(session), "n >");
            check(false, "it was taken");
        } catch (InvalidSelectorException expected) {
            // as JMS wants it
        }
    }

    void scenario_topic() throws Exception {
        Session session = session();
        Topic topic = session.createTopic("ADDR:amq.topic/" + told("client") + "-qpid" + ".topic");
        MessageConsumer one = session.createConsumer(topic);
        MessageConsumer other = session.createConsumer(topic);
        send(session, topic, "all");
        is("all", one.receive(WAIT_MS));
        is("all", other.receive(WAIT_MS));
    }

    void scenario_no_local() throws Exception {
        Session session = session();
        Topic topic = session.createTopic("amq.topic/" + told("client") + "-qpid" + ".local");
        MessageConsumer all = session.createConsumer(topic);
        // a topic of its own: the client notes noLocal in it
        MessageConsumer others = session.createConsumer(session.createTopic("amq.topic/" + told("client") + "-qpid" + ".local"), null, true);
        send(session, topic, "own");
        is("own", all.receive(WAIT_MS));
        Session other = connected(told("client") + "-qpid" + "other").createSession(false, Session.AUTO_ACKNOWLEDGE);
        send(other, other.createTopic("amq.topic/" + told("client") + "-qpid" + ".local"), "other's");
        is("other's", others.receive(WAIT_MS));
    }

    void scenario_durable_subscription() throws Exception {
        Connection connection = connected(told("client") + "-qpid" + "durable");
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        Topic topic = session.createTopic("amq.topic/" + told("client") + "-qpid" + ".durable");
        session.createDurableSubscriber(topic, "sub").close();
        send(session, topic, "kept");
        connection.close();
        session = connected(told("client") + "-qpid" + "durable").createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageConsumer consumer = session.createDurableSubscriber(session.createTopic("amq.topic/" + told("client") + "-qpid" + ".durable"), "sub");
        is("kept", consumer.receive(WAIT_MS));
        consumer.close();
        session.unsubscribe("sub");
    }

    /** A connection to the broker through a port of its own, until `cut`: then nobody answers there any more. */
    static class Way {
        final java.net.ServerSocket door = new java.net.ServerSocket(0, 5, java.net.InetAddress.getByName("127.0.0.1"));
        final List<java.net.Socket> ends = java.util.Collections.synchronizedList(new ArrayList<>());
        volatile int opened;

        Way(String host, int port) throws Exception {
            start(() -> {
                while (true) {
                    java.net.Socket here = door.accept();
                    java.net.Socket there = new java.net.Socket(host, port);
                    ends.add(here);
                    ends.add(there);
                    opened++;
                    start(() -> here.getInputStream().transferTo(there.getOutputStream()));
                    start(() -> there.getInputStream().transferTo(here.getOutputStream()));
                }
            });
        }

        interface Work {
            void run() throws Exception;
        }

        static void start(Work work) {
            Thread thread = new Thread(() -> {
                try {
                    work.run();
                } catch (Exception cut) {
                    // the end of this way
                }
            });
            thread.setDaemon(true);
            thread.start();
        }

        void cut() throws Exception {
            door.close();
            for (java.net.Socket end : List.copyOf(ends)) {
                end.close();
            }
        }
    }

    /** Hears when the client has another connection. */
    static class Over implements org.apache.qpid.jms.ConnectionListener {
        final java.util.concurrent.CountDownLatch is = new java.util.concurrent.CountDownLatch(1);

        public void bytesSent(long count) {}

        public void bytesReceived(long count) {}

        public boolean preFailover(boolean redirect) {
            return true;
        }

        public boolean preResubscribe() {
            return true;
        }

        public void failoverComplete() {
            is.countDown();
        }
    }

    /** The client goes over to the next broker of its list when its connection is lost: what was acknowledged does not come again, all else does. */
    void scenario_fail_over() throws Exception {
        int port = Integer.parseInt(told("port"));
        Way[] ways = {new Way(told("host"), port), new Way(told("host"), port)};
        StringBuilder brokers = new StringBuilder();
        for (Way way : ways) {
            brokers.append(brokers.length() == 0 ? "" : ";").append("tcp://127.0.0.1:" + way.door.getLocalPort() + "?retries='3'&connectdelay='100'");
        }
        String url = "amqp://" + told("user") + ":" + told("password") + "@/?failover='roundrobin?cyclecount='5''&brokerlist='" + brokers + "'";
        Connection connection = new AMQConnectionFactory(url).createConnection();
        connections.add(connection);
        connection.start();
        Session session = connection.createSession(false, Session.CLIENT_ACKNOWLEDGE);
        Queue queue = queue(session);
        MessageProducer producer = session.createProducer(queue);
        for (int number = 0; number < 6; number++) {
            producer.send(session.createTextMessage("m" + number));
        }
        MessageConsumer consumer = session.createConsumer(queue);
        is("m0", consumer.receive(WAIT_MS));
        Message second = consumer.receive(WAIT_MS);
        is("m1", second);
        second.acknowledge();
        is("m2", consumer.receive(WAIT_MS));
        check(ways[0].opened == 1 && ways[1].opened == 0, "the first broker of the list was to be the first");
        Over over = new Over();
        ((org.apache.qpid.client.AMQConnection) connection).setConnectionListener(over);
        ways[0].cut();
        check(over.is.await(WAIT_MS, java.util.concurrent.TimeUnit.MILLISECONDS) && ways[1].opened == 1, "the client did not go over");
        producer.send(session.createTextMessage("m6"));
        java.util.TreeSet<String> came = new java.util.TreeSet<>();
        while (came.size() < 5) {
            Message message = consumer.receive(WAIT_MS);
            check(message != null, "of m2 to m6 only these have come: " + came);
            try {
                message.acknowledge();
                came.add(((TextMessage) message).getText());
            } catch (javax.jms.IllegalStateException hasFailedOver) {
                // said once, of what came before; the client has recovered the session, and it comes again
            }
        }
        check(came.equals(new java.util.TreeSet<>(List.of("m2", "m3", "m4", "m5", "m6"))), "these have come: " + came);
        nothing(consumer);
    }

    void scenario_request_and_reply() throws Exception {
        Session session = session();
        TemporaryQueue answers = session.createTemporaryQueue();
        MessageConsumer answered = session.createConsumer(answers);
        Queue service = queue(session);
        MessageConsumer asked = session.createConsumer(service);
        TextMessage request = session.createTextMessage("ask");
        request.setJMSReplyTo(answers);
        session.createProducer(service).send(request);
        Message got = asked.receive(WAIT_MS);
        is("ask", got);
        send(session, got.getJMSReplyTo(), "answer");
        is("answer", answered.receive(WAIT_MS));
    }

    void scenario_browser() throws Exception {
        Session session = session();
        Queue queue = queue(session);
        send(session, queue, "m0", "m1", "m2", "m3", "m4");
        Enumeration<?> seen = session.createBrowser(queue).getEnumeration();
        for (int number = 0; number < 5; number++) {
            is("m" + number, (Message) seen.nextElement());
        }
        check(!seen.hasMoreElements(), "a message more");
        MessageConsumer consumer = session.createConsumer(queue);
        for (int number = 0; number < 5; number++) {
            is("m" + number, consumer.receive(WAIT_MS));
        }
    }

    void scenario_receive_at_once() throws Exception {
        Session session = session();
        Queue queue = queue(session);
        MessageConsumer consumer = session.createConsumer(queue);
        check(consumer.receiveNoWait() == null, "a message of an empty queue");
        send(session, queue, "x");
        Message got = consumer.receiveNoWait();
        is("x", got == null ? consumer.receive(WAIT_MS) : got);
    }

    void scenario_recover() throws Exception {
        Session session = connected("").createSession(false, Session.CLIENT_ACKNOWLEDGE);
        Queue queue = queue(session);
        send(session, queue, "1", "2");
        MessageConsumer consumer = session.createConsumer(queue);
        is("1", consumer.receive(WAIT_MS));
        is("2", consumer.receive(WAIT_MS));
        session.recover();
        Message again = consumer.receive(WAIT_MS);
        is("1", again);
        check(again.getJMSRedelivered(), "it was not told to be redelivered");
        Message last = consumer.receive(WAIT_MS);
        is("2", last);
        last.acknowledge();
        nothing(consumer);
    }

    void scenario_time_to_live() throws Exception {
        Session session = session();
        Queue queue = queue(session);
        MessageProducer producer = session.createProducer(queue);
        producer.setTimeToLive(200);
        producer.send(session.createTextMessage("short"));
        Thread.sleep(1500);
        nothing(session.createConsumer(queue));
    }

    void scenario_two_consumers() throws Exception {
        Connection connection = connected("");
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        Session other = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        Queue queue = queue(session);
        MessageConsumer[] consumers = {session.createConsumer(queue), other.createConsumer(queue)};
        MessageProducer producer = session.createProducer(queue);
        for (int number = 0; number < 100; number++) {
            producer.send(session.createTextMessage("m" + number));
        }
        int got = 0;
        long end = System.currentTimeMillis() + WAIT_MS;
        while (got < 100 && System.currentTimeMillis() < end) {
            for (MessageConsumer consumer : consumers) {
                got += consumer.receive(20) == null ? 0 : 1;
            }
        }
        check(got == 100, got + " of 100 came");
    }

    void scenario_queue_that_is_not_there() throws Exception {
        Session session = session();
        try {
            session.createConsumer(session.createQueue("ADDR:" + told("client") + "-qpid" + ".nowhere; {assert: always}"));
            check(false, "it was made");
        } catch (JMSException expected) {
            // as JMS wants it
        }
    }
}

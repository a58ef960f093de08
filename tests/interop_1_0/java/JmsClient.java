import jakarta.jms.*;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Enumeration;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.qpid.jms.JmsConnectionFactory;

/**
 * qpid-jms: `JmsClient PLACE [SCENARIO...]`, where PLACE is JSON as programs.py gives it. Each method scenario_NAME runs with connections of
 * its own; a line for each: `ok NAME`, or `failed NAME: why`.
 */
public class JmsClient {
    static final long WAIT_MS = 15_000;
    static final long NOTHING_MS = 400;

    final String place;
    final String name;
    final List<Connection> connections = new ArrayList<>();

    JmsClient(String place, String name) {
        this.place = place;
        this.name = name;
    }

    public static void main(String[] arguments) throws Exception {
        List<String> chosen = List.of(arguments).subList(1, arguments.length);
        for (Method method : JmsClient.class.getDeclaredMethods()) {
            String name = method.getName().replaceFirst("^scenario_", "");
            if (!method.getName().startsWith("scenario_") || (!chosen.isEmpty() && !chosen.contains(name))) {
                continue;
            }
            JmsClient client = new JmsClient(arguments[0], name);
            try {
                method.invoke(client);
                System.out.println("ok " + name);
            } catch (InvocationTargetException error) {
                StringWriter text = new StringWriter();
                error.getCause().printStackTrace(new PrintWriter(text));
                System.err.println(name + ": " + text);
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

    String queueName() {
        return told("client") + "." + name;
    }

    String uri(String options) {
        return "amqp://" + told("host") + ":" + told("port") + options;
    }

    Connection connected(String options, String identity) throws JMSException {
        Connection connection = new JmsConnectionFactory(told("user"), told("password"), uri(options)).createConnection();
        connections.add(connection);
        if (identity != null) {
            connection.setClientID(identity);
        }
        connection.start();
        return connection;
    }

    Session session() throws JMSException {
        return connected("", null).createSession(false, Session.AUTO_ACKNOWLEDGE);
    }

    static void equal(Object got, Object wanted) {
        if (wanted == null ? got != null : !wanted.equals(got)) {
            throw new AssertionError(got + ", not " + wanted);
        }
    }

    static String text(Message message) throws JMSException {
        if (message == null) {
            throw new AssertionError("no message came");
        }
        return ((TextMessage) message).getText();
    }

    static String next(MessageConsumer consumer) throws JMSException {
        return text(consumer.receive(WAIT_MS));
    }

    static void nothing(MessageConsumer consumer) throws JMSException {
        Message message = consumer.receive(NOTHING_MS);
        if (message != null) {
            throw new AssertionError("a message came: " + message);
        }
    }

    static void send(Session session, Destination destination, String... texts) throws JMSException {
        MessageProducer producer = session.createProducer(destination);
        for (String text : texts) {
            producer.send(session.createTextMessage(text));
        }
        producer.close();
    }

    // ---- queues

    void scenario_log_in() throws JMSException {
        session();
        try {
            new JmsConnectionFactory("guest", "wrong", uri("")).createConnection().start();
        } catch (JMSSecurityException expected) {
            return;
        }
        throw new AssertionError("the wrong password was let in");
    }

    void scenario_text() throws JMSException {
        Session session = session();
        Queue queue = session.createQueue(queueName());
        send(session, queue, "hello", "\u20ac", "");
        MessageConsumer consumer = session.createConsumer(queue);
        equal(next(consumer), "hello");
        equal(next(consumer), "\u20ac");
        equal(next(consumer), "");
        nothing(consumer);
    }

    void scenario_kinds_of_messages() throws JMSException {
        Session session = session();
        Queue queue = session.createQueue(queueName());
        MessageProducer producer = session.createProducer(queue);
        BytesMessage octets = session.createBytesMessage();
        octets.writeBytes(new byte[] {1, 2, 3});
        producer.send(octets);
        MapMessage map = session.createMapMessage();
        map.setInt("int", 7);
        map.setString("text", "t");
        map.setBytes("octets", new byte[] {9});
        producer.send(map);
        StreamMessage stream = session.createStreamMessage();
        stream.writeLong(1L << 40);
        stream.writeString("s");
        producer.send(stream);
        producer.send(session.createObjectMessage(new ArrayList<>(List.of("a", "b"))));
        producer.send(session.createMessage());
        MessageConsumer consumer = session.createConsumer(queue);
        BytesMessage first = (BytesMessage) consumer.receive(WAIT_MS);
        equal(first.getBodyLength(), 3L);
        MapMessage second = (MapMessage) consumer.receive(WAIT_MS);
        equal(second.getInt("int") + second.getString("text") + second.getBytes("octets")[0], "7t9");
        StreamMessage third = (StreamMessage) consumer.receive(WAIT_MS);
        equal(third.readLong() + third.readString(), (1L << 40) + "s");
        equal(consumer.receive(WAIT_MS) instanceof ObjectMessage, true);
        equal(consumer.receive(WAIT_MS) != null, true);
    }

    void scenario_properties() throws JMSException {
        Session session = session();
        Queue queue = session.createQueue(queueName());
        Message message = session.createTextMessage("x");
        message.setJMSCorrelationID("correlated");
        message.setJMSType("type");
        message.setJMSReplyTo(session.createQueue("answers"));
        message.setBooleanProperty("boolean", true);
        message.setByteProperty("byte", (byte) 1);
        message.setShortProperty("short", (short) 2);
        message.setIntProperty("int", 3);
        message.setLongProperty("long", 4L);
        message.setFloatProperty("float", 5.5f);
        message.setDoubleProperty("double", 6.5);
        message.setStringProperty("text", "seven");
        message.setStringProperty("JMSXGroupID", "group");
        message.setIntProperty("JMSXGroupSeq", 8);
        session.createProducer(queue).send(message, DeliveryMode.PERSISTENT, 7, 60_000);
        Message got = session.createConsumer(queue).receive(WAIT_MS);
        equal(got.getJMSMessageID(), message.getJMSMessageID());
        equal(got.getJMSCorrelationID(), "correlated");
        equal(got.getJMSType(), "type");
        equal(((Queue) got.getJMSReplyTo()).getQueueName(), "answers");
        equal(((Queue) got.getJMSDestination()).getQueueName(), queueName());
        equal(got.getJMSDeliveryMode(), DeliveryMode.PERSISTENT);
        equal(got.getJMSPriority(), 7);
        equal(got.getJMSTimestamp(), message.getJMSTimestamp());
        equal(got.getJMSExpiration(), message.getJMSExpiration());
        for (String property : Collections.list((Enumeration<String>) message.getPropertyNames())) {
            equal(got.getObjectProperty(property), message.getObjectProperty(property));
        }
        equal(got.getIntProperty("JMSXDeliveryCount"), 1);
    }

    void scenario_large_message() throws JMSException {
        Session session = connected("?amqp.maxFrameSize=4096", null).createSession(false, Session.AUTO_ACKNOWLEDGE);
        Queue queue = session.createQueue(queueName());
        BytesMessage message = session.createBytesMessage();
        byte[] octets = new byte[1 << 20];
        for (int at = 0; at < octets.length; at++) {
            octets[at] = (byte) (at * 7);
        }
        message.writeBytes(octets);
        session.createProducer(queue).send(message);
        BytesMessage got = (BytesMessage) session.createConsumer(queue).receive(WAIT_MS);
        byte[] back = new byte[octets.length];
        equal(got.readBytes(back), octets.length);
        equal(java.util.Arrays.equals(octets, back), true);
    }

    void scenario_order_of_1000() throws JMSException {
        Session session = session();
        Queue queue = session.createQueue(queueName());
        MessageProducer producer = session.createProducer(queue);
        producer.setDeliveryMode(DeliveryMode.NON_PERSISTENT);
        for (int number = 0; number < 1000; number++) {
            producer.send(session.createTextMessage("" + number));
        }
        MessageConsumer consumer = session.createConsumer(queue);
        for (int number = 0; number < 1000; number++) {
            equal(next(consumer), "" + number);
        }
    }

    void scenario_asynchronous_listener() throws Exception {
        Session session = session();
        Queue queue = session.createQueue(queueName());
        CountDownLatch left = new CountDownLatch(50);
        session.createConsumer(queue).setMessageListener(message -> left.countDown());
        Session other = session();
        MessageProducer producer = other.createProducer(queue);
        CountDownLatch confirmed = new CountDownLatch(50);
        CompletionListener listener = new CompletionListener() {
            public void onCompletion(Message message) {
                confirmed.countDown();
            }

            public void onException(Message message, Exception error) {}
        };
        for (int number = 0; number < 50; number++) {
            producer.send(other.createTextMessage("" + number), listener);
        }
        equal(confirmed.await(WAIT_MS, TimeUnit.MILLISECONDS), true);
        equal(left.await(WAIT_MS, TimeUnit.MILLISECONDS), true);
    }

    void scenario_client_acknowledge() throws JMSException {
        Connection connection = connected("", null);
        Session session = connection.createSession(false, Session.CLIENT_ACKNOWLEDGE);
        Queue queue = session.createQueue(queueName());
        send(session, queue, "a", "b", "c");
        MessageConsumer consumer = session.createConsumer(queue);
        equal(next(consumer), "a");
        consumer.receive(WAIT_MS).acknowledge();
        equal(next(consumer), "c");
        session.close();
        Session again = session();
        MessageConsumer rest = again.createConsumer(queue);
        Message message = rest.receive(WAIT_MS);
        equal(text(message), "c");
        equal(message.getJMSRedelivered(), true);
        nothing(rest);
    }

    void scenario_recover() throws JMSException {
        Session session = connected("", null).createSession(false, Session.CLIENT_ACKNOWLEDGE);
        Queue queue = session.createQueue(queueName());
        send(session, queue, "a", "b");
        MessageConsumer consumer = session.createConsumer(queue);
        equal(next(consumer), "a");
        session.recover();
        Message message = consumer.receive(WAIT_MS);
        equal(text(message), "a");
        equal(message.getJMSRedelivered(), true);
        message.acknowledge();
        equal(next(consumer), "b");
    }

    void scenario_duplicates_ok_and_presettled() throws JMSException {
        Session session = connected("?jms.presettlePolicy.presettleAll=true", null).createSession(false, Session.DUPS_OK_ACKNOWLEDGE);
        Queue queue = session.createQueue(queueName());
        send(session, queue, "a", "b");
        MessageConsumer consumer = session.createConsumer(queue);
        equal(next(consumer), "a");
        equal(next(consumer), "b");
    }

    void scenario_receive_no_wait() throws JMSException {
        Session session = connected("?jms.prefetchPolicy.all=0", null).createSession(false, Session.AUTO_ACKNOWLEDGE);
        Queue queue = session.createQueue(queueName());
        MessageConsumer consumer = session.createConsumer(queue);
        equal(consumer.receiveNoWait(), null);
        send(session, queue, "a");
        equal(next(consumer), "a");
        equal(consumer.receiveNoWait(), null);
    }

    void scenario_browser() throws JMSException {
        Session session = session();
        Queue queue = session.createQueue(queueName());
        send(session, queue, "a", "b", "c");
        for (int round = 0; round < 2; round++) {
            QueueBrowser browser = session.createBrowser(queue);
            List<String> got = new ArrayList<>();
            for (Enumeration<?> messages = browser.getEnumeration(); messages.hasMoreElements(); ) {
                got.add(text((Message) messages.nextElement()));
            }
            equal(got, List.of("a", "b", "c"));
            browser.close();
        }
        MessageConsumer consumer = session.createConsumer(queue);
        equal(next(consumer) + next(consumer) + next(consumer), "abc");
    }

    void scenario_selector() throws JMSException {
        Session session = session();
        Queue queue = session.createQueue(queueName());
        MessageProducer producer = session.createProducer(queue);
        for (int number = 0; number < 6; number++) {
            TextMessage message = session.createTextMessage("" + number);
            message.setIntProperty("number", number);
            message.setStringProperty("colour", number % 2 == 0 ? "green" : "red");
            message.setJMSCorrelationID("c" + number);
            producer.send(message);
        }
        MessageConsumer consumer = session.createConsumer(queue, "colour = 'red' AND number BETWEEN 2 AND 5");
        equal(next(consumer) + next(consumer), "35");
        nothing(consumer);
        consumer.close();
        MessageConsumer correlated = session.createConsumer(queue, "JMSCorrelationID = 'c4'");
        equal(next(correlated), "4");
        correlated.close();
        MessageConsumer rest = session.createConsumer(queue);
        equal(next(rest) + next(rest) + next(rest), "012");
    }

    void scenario_bad_selector() throws JMSException {
        Session session = session();
        try {
            session.createConsumer(session.createQueue(queueName()), "colour = ");
        } catch (InvalidSelectorException expected) {
            return;
        }
        throw new AssertionError("the selector was taken");
    }

    void scenario_missing_queue() throws JMSException {
        Session session = session();
        try {
            session.createConsumer(session.createQueue("jms.nowhere"));
        } catch (InvalidDestinationException expected) {
            send(session, session.createQueue(queueName()), "alive");
            return;
        }
        throw new AssertionError("the queue was there");
    }

    void scenario_anonymous_producer() throws JMSException {
        Session session = session();
        Queue one = session.createQueue(queueName());
        Queue other = session.createQueue(queueName() + ".other");
        MessageProducer producer = session.createProducer(null);
        producer.send(one, session.createTextMessage("one"));
        producer.send(other, session.createTextMessage("other"));
        equal(next(session.createConsumer(one)), "one");
        equal(next(session.createConsumer(other)), "other");
    }

    void scenario_temporary_queue() throws JMSException {
        Session server = session();
        Queue queue = server.createQueue(queueName());
        Session client = session();
        TemporaryQueue answers = client.createTemporaryQueue();
        Message question = client.createTextMessage("question");
        question.setJMSReplyTo(answers);
        client.createProducer(queue).send(question);
        Message got = server.createConsumer(queue).receive(WAIT_MS);
        server.createProducer(got.getJMSReplyTo()).send(server.createTextMessage("answer"));
        MessageConsumer consumer = client.createConsumer(answers);
        equal(next(consumer), "answer");
        consumer.close();
        answers.delete();
    }

    void scenario_lifetime() throws Exception {
        Session session = session();
        Queue queue = session.createQueue(queueName());
        MessageProducer producer = session.createProducer(queue);
        producer.send(session.createTextMessage("short"), DeliveryMode.NON_PERSISTENT, 4, 100);
        producer.send(session.createTextMessage("long"));
        Thread.sleep(400);
        equal(next(session.createConsumer(queue)), "long");
    }

    void scenario_two_consumers_share() throws JMSException {
        Session session = connected("?jms.prefetchPolicy.all=1", null).createSession(false, Session.AUTO_ACKNOWLEDGE);
        Queue queue = session.createQueue(queueName());
        MessageConsumer first = session.createConsumer(queue);
        MessageConsumer second = session.createConsumer(queue);
        send(session, queue, "a", "b");
        List<String> got = new ArrayList<>(List.of(next(first), next(second)));
        Collections.sort(got);
        equal(got, List.of("a", "b"));
    }

    // ---- transactions

    void scenario_transacted_send() throws JMSException {
        Session session = connected("", null).createSession(true, Session.SESSION_TRANSACTED);
        Queue queue = session.createQueue(queueName());
        Session watching = session();
        MessageConsumer consumer = watching.createConsumer(queue);
        send(session, queue, "a", "b");
        nothing(consumer);
        session.commit();
        equal(next(consumer) + next(consumer), "ab");
        send(session, queue, "never");
        session.rollback();
        nothing(consumer);
    }

    void scenario_transacted_receive() throws JMSException {
        Session session = connected("", null).createSession(true, Session.SESSION_TRANSACTED);
        Queue queue = session.createQueue(queueName());
        send(session(), queue, "a", "b");
        MessageConsumer consumer = session.createConsumer(queue);
        equal(next(consumer) + next(consumer), "ab");
        session.rollback();
        Message again = consumer.receive(WAIT_MS);
        equal(text(again), "a");
        equal(again.getJMSRedelivered(), true);
        equal(next(consumer), "b");
        session.commit();
        session.close();
        nothing(session().createConsumer(queue));
    }

    void scenario_transacted_forward() throws JMSException {
        Session session = connected("", null).createSession(true, Session.SESSION_TRANSACTED);
        Queue from = session.createQueue(queueName());
        Queue to = session.createQueue(queueName() + ".other");
        send(session(), from, "0", "1", "2", "3", "4", "5", "6", "7", "8", "9");
        MessageConsumer consumer = session.createConsumer(from);
        MessageProducer producer = session.createProducer(to);
        for (int number = 0; number < 10; number++) {
            producer.send(session.createTextMessage(next(consumer)));
            if (number % 3 == 2 || number == 9) {
                session.commit();
            }
        }
        MessageConsumer forwarded = session().createConsumer(to);
        for (int number = 0; number < 10; number++) {
            equal(next(forwarded), "" + number);
        }
    }

    // ---- topics

    Topic topic(Session session) throws JMSException {
        return session.createTopic(told("jms_topic").replace("%s", queueName()));
    }

    void scenario_topic() throws JMSException {
        Session session = session();
        MessageConsumer first = session.createConsumer(topic(session));
        MessageConsumer second = session().createConsumer(topic(session));
        send(session, topic(session), "a", "b");
        equal(next(first) + next(first), "ab");
        equal(next(second) + next(second), "ab");
    }

    void scenario_topic_without_subscriptions() throws JMSException {
        Session session = session();
        send(session, topic(session), "nobody's");
        Session transacted = connected("", null).createSession(true, Session.SESSION_TRANSACTED);
        send(transacted, topic(transacted), "nobody's");
        transacted.commit();
    }

    void scenario_topic_selector() throws JMSException {
        Session session = session();
        MessageConsumer consumer = session.createConsumer(topic(session), "number > 1");
        MessageProducer producer = session.createProducer(topic(session));
        for (int number = 0; number < 4; number++) {
            TextMessage message = session.createTextMessage("" + number);
            message.setIntProperty("number", number);
            producer.send(message);
        }
        equal(next(consumer) + next(consumer), "23");
    }

    void scenario_no_local() throws JMSException {
        Session session = session();
        MessageConsumer consumer = session.createConsumer(topic(session), null, true);
        send(session, topic(session), "own");
        send(session(), topic(session), "another's");
        equal(next(consumer), "another's");
        nothing(consumer);
    }

    void scenario_temporary_topic() throws JMSException {
        Session session = session();
        TemporaryTopic topic = session.createTemporaryTopic();
        MessageConsumer consumer = session.createConsumer(topic);
        send(session(), topic, "a");
        equal(next(consumer), "a");
    }

    void scenario_durable_subscription() throws JMSException {
        Connection connection = connected("", "durable-client");
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        Topic topic = topic(session);
        session.createDurableConsumer(topic, "subscription").close();
        send(session(), topic, "a", "b");
        MessageConsumer consumer = session.createDurableConsumer(topic, "subscription");
        equal(next(consumer) + next(consumer), "ab");
        consumer.close();
        connection.close();
        send(session(), topic, "c");
        session = connected("", "durable-client").createSession(false, Session.AUTO_ACKNOWLEDGE);
        consumer = session.createDurableConsumer(topic, "subscription");
        equal(next(consumer), "c");
        consumer.close();
        session.unsubscribe("subscription");
        send(session(), topic, "nobody's");
        consumer = session.createDurableConsumer(topic, "subscription");
        nothing(consumer);
        consumer.close();
        session.unsubscribe("subscription");
    }

    void scenario_durable_subscription_changes() throws JMSException {
        Session session = connected("", "changing-client").createSession(false, Session.AUTO_ACKNOWLEDGE);
        session.createDurableConsumer(topic(session), "changing", "number = 1", false).close();
        MessageConsumer consumer = session.createDurableConsumer(topic(session), "changing", "number = 2", false);
        MessageProducer producer = session.createProducer(topic(session));
        for (int number = 0; number < 4; number++) {
            TextMessage message = session.createTextMessage("" + number);
            message.setIntProperty("number", number);
            producer.send(message);
        }
        equal(next(consumer), "2");
        nothing(consumer);
        consumer.close();
        session.unsubscribe("changing");
    }

    void scenario_unknown_subscription() throws JMSException {
        Session session = connected("", "unknown-client").createSession(false, Session.AUTO_ACKNOWLEDGE);
        try {
            session.unsubscribe("there is none");
        } catch (InvalidDestinationException expected) {
            return;
        }
        throw new AssertionError("a subscription that is not there was ended");
    }

    void shared(String identity, boolean durable, String subscription) throws JMSException {
        Session one = connected("?jms.prefetchPolicy.all=1", identity).createSession(false, Session.AUTO_ACKNOWLEDGE);
        Session two = identity == null
                ? connected("?jms.prefetchPolicy.all=1", null).createSession(false, Session.AUTO_ACKNOWLEDGE)
                : connections.get(connections.size() - 1).createSession(false, Session.AUTO_ACKNOWLEDGE);
        Topic topic = topic(one);
        MessageConsumer first = durable ? one.createSharedDurableConsumer(topic, subscription) : one.createSharedConsumer(topic, subscription);
        MessageConsumer second = durable ? two.createSharedDurableConsumer(topic, subscription) : two.createSharedConsumer(topic, subscription);
        send(session(), topic, "a", "b");
        List<String> got = new ArrayList<>(List.of(next(first), next(second)));
        Collections.sort(got);
        equal(got, List.of("a", "b"));
        nothing(first);
        nothing(second);
        first.close();
        second.close();
        if (durable) {
            send(session(), topic, "kept");
            first = one.createSharedDurableConsumer(topic, subscription);
            equal(next(first), "kept");
            first.close();
            one.unsubscribe(subscription);
        }
    }

    void scenario_shared_subscription() throws JMSException {
        shared("sharing-client", false, "shared");
    }

    void scenario_shared_by_all_clients() throws JMSException {
        shared(null, false, "global");
    }

    void scenario_shared_durable_subscription() throws JMSException {
        shared("sharing-durable-client", true, "shared-durable");
    }

    void scenario_shared_durable_by_all_clients() throws JMSException {
        shared(null, true, "global-durable");
    }

    // ---- connections

    void scenario_one_client_identity_at_a_time() throws JMSException {
        connected("", "one-identity");
        try {
            connected("", "one-identity");
        } catch (InvalidClientIDException expected) {
            return;
        }
        throw new AssertionError("a second connection has the same client id");
    }

    void scenario_idle_time_out() throws Exception {
        Session session = connected("?amqp.idleTimeout=2000", null).createSession(false, Session.AUTO_ACKNOWLEDGE);
        Queue queue = session.createQueue(queueName());
        MessageConsumer consumer = session.createConsumer(queue);
        Thread.sleep(3000);
        send(session, queue, "still here");
        equal(next(consumer), "still here");
    }
}

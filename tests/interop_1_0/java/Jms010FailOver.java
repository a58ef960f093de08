import java.util.ArrayList;
import java.util.List;
import javax.jms.*;
import org.apache.qpid.client.AMQConnection;
import org.apache.qpid.client.AMQConnectionFactory;

/**
 * Qpid's JMS client 6.4 while its brokers end and come back: `Jms010FailOver URL QUEUE`, in the version that -Dqpid.amqp.version has. A session sends
 * persistent messages "0", "1", "2", ... in transactions, and those of a transaction that failed again; another consumes them in transactions. A line
 * for each that has ended: `OUTCOME sent|got NUMBER...`, where OUTCOME is `committed`, `rolled_back` (nothing of it has happened) or `uncertain`; and
 * `over PORT` when the client has gone over to another connection. When its input ends it sends no more, and ends when all that comes is consumed.
 */
public class Jms010FailOver {
    static final int SENT_TOGETHER = 10;
    static final int GOT_TOGETHER = 7;
    static final long BETWEEN_MS = 4; // 2,500 messages a second at most: three such programs share the machine with their brokers
    static final long QUIET_MS = 1_000;

    static volatile boolean isOver;
    static int timesOver; // how often the client has gone over

    public static void main(String[] arguments) throws Exception {
        AMQConnection connection = (AMQConnection) new AMQConnectionFactory(arguments[0]).createConnection();
        connection.setConnectionListener(new Listener(connection));
        connection.start();
        String address = "ADDR:" + arguments[1] + "; {create: always, node: {durable: true}}";
        Session to = connection.createSession(true, Session.SESSION_TRANSACTED);
        Session from = connection.createSession(true, Session.SESSION_TRANSACTED);
        MessageProducer producer = to.createProducer(to.createQueue(address));
        MessageConsumer consumer = from.createConsumer(from.createQueue(address));
        Thread sends = started(() -> send(to, producer));
        Thread receives = started(() -> receive(from, consumer, sends));
        while (System.in.read() >= 0) {}
        isOver = true;
        receives.join();
        connection.close();
        System.exit(0);
    }

    static void send(Session session, MessageProducer producer) throws Exception {
        int first = 0;
        while (!isOver) {
            List<String> numbers = new ArrayList<>();
            int over = timesOver();
            boolean isWhole = true;
            for (int number = first; number < first + SENT_TOGETHER && isWhole; number++) {
                numbers.add(String.valueOf(number));
                try {
                    producer.send(session.createTextMessage(String.valueOf(number)));
                } catch (JMSException lost) {
                    isWhole = false;
                }
            }
            first += ended(session, isWhole, over, "sent", numbers) ? SENT_TOGETHER : 0;
            Thread.sleep(BETWEEN_MS);
        }
    }

    static void receive(Session session, MessageConsumer consumer, Thread sends) throws Exception {
        boolean isQuiet = false;
        while (!isQuiet) {
            boolean allIsSent = !sends.isAlive();
            List<String> numbers = new ArrayList<>();
            int over = timesOver();
            boolean isWhole = true;
            Message message = null;
            try {
                do {
                    message = consumer.receive(QUIET_MS);
                    if (message != null) {
                        numbers.add(((TextMessage) message).getText());
                    }
                } while (message != null && numbers.size() < GOT_TOGETHER);
            } catch (JMSException lost) {
                isWhole = false;
            }
            isQuiet = ended(session, isWhole, over, "got", numbers) && allIsSent && message == null;
        }
    }

    /** Commits a transaction whose work went well, rolls another back: whether it is committed. `over`: how often the client had gone over before. */
    static boolean ended(Session session, boolean isWhole, int over, String what, List<String> numbers) throws Exception {
        String outcome = isWhole ? "uncertain" : "rolled_back";
        try {
            if (isWhole) {
                session.commit();
                outcome = "committed";
            }
        } catch (TransactionRolledBackException surely) {
            outcome = "rolled_back"; // it was begun on the connection before
        } catch (JMSException lost) {
            // the connection ended before the answer came
        }
        if (!outcome.equals("committed")) {
            awaitOver(over);
            session.rollback();
        }
        tell(outcome + " " + what + " " + String.join(" ", numbers));
        return outcome.equals("committed");
    }

    /** Without a connection nothing can be rolled back. */
    static synchronized void awaitOver(int before) throws Exception {
        while (timesOver == before) {
            Jms010FailOver.class.wait();
        }
    }

    static synchronized int timesOver() {
        return timesOver;
    }

    static synchronized void tell(String line) {
        System.out.println(line);
    }

    interface Work {
        void run() throws Exception;
    }

    static Thread started(Work work) {
        Thread thread = new Thread(() -> {
            try {
                work.run();
            } catch (Exception error) {
                error.printStackTrace();
                System.exit(1);
            }
        });
        thread.start();
        return thread;
    }

    static class Listener implements org.apache.qpid.jms.ConnectionListener {
        final AMQConnection connection;

        Listener(AMQConnection connection) {
            this.connection = connection;
        }

        public void bytesSent(long count) {}

        public void bytesReceived(long count) {}

        public boolean preFailover(boolean redirect) {
            return true;
        }

        public boolean preResubscribe() {
            return true;
        }

        public void failoverComplete() {
            synchronized (Jms010FailOver.class) {
                timesOver++;
                Jms010FailOver.class.notifyAll();
            }
            tell("over " + connection.getActiveBrokerDetails().getPort());
        }
    }
}

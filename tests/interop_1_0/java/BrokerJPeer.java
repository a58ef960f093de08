import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import org.apache.qpid.server.SystemLauncher;

/** Qpid Broker-J as a peer: `BrokerJPeer PORT CONFIGURATION WORK_DIRECTORY`, in memory, guest/guest or anonymous; prints `ready`. */
public class BrokerJPeer {
    public static void main(String[] arguments) throws Exception {
        System.setProperty("qpid.amqp_port", arguments[0]);
        System.setProperty("qpid.work_dir", arguments[2]);
        Map<String, Object> attributes = new HashMap<>();
        attributes.put("type", "Memory");
        attributes.put("initialConfigurationLocation", Path.of(arguments[1]).toUri().toString());
        attributes.put("startupLoggedToSystemOut", "false");
        new SystemLauncher().startup(attributes);
        System.out.println("ready");
        Thread.currentThread().join();
    }
}

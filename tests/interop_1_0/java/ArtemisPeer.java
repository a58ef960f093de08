import java.util.HashSet;
import java.util.Set;
import org.apache.activemq.artemis.api.core.RoutingType;
import org.apache.activemq.artemis.core.config.Configuration;
import org.apache.activemq.artemis.core.config.impl.ConfigurationImpl;
import org.apache.activemq.artemis.core.config.impl.SecurityConfiguration;
import org.apache.activemq.artemis.core.security.Role;
import org.apache.activemq.artemis.core.server.embedded.EmbeddedActiveMQ;
import org.apache.activemq.artemis.core.settings.impl.AddressSettings;
import org.apache.activemq.artemis.spi.core.security.ActiveMQJAASSecurityManager;
import org.apache.activemq.artemis.spi.core.security.jaas.InVMLoginModule;

/** ActiveMQ Artemis as a peer: `ArtemisPeer PORT [DIRECTORY]`, AMQP 1.0 on 127.0.0.1, in memory, or with its journal in a directory,
 * guest/guest or anonymous; prints `ready`. */
public class ArtemisPeer {
    public static void main(String[] arguments) throws Exception {
        Configuration configuration = new ConfigurationImpl();
        configuration.setPersistenceEnabled(arguments.length > 1).setSecurityEnabled(true).setName("peer").setJMXManagementEnabled(false);
        if (arguments.length > 1) {
            String place = arguments[1] + "/artemis/";
            configuration.setJournalDirectory(place + "journal").setBindingsDirectory(place + "bindings");
            configuration.setPagingDirectory(place + "paging").setLargeMessagesDirectory(place + "large");
        }
        configuration.addAcceptorConfiguration(
                "amqp", "tcp://127.0.0.1:" + arguments[0] + "?protocols=AMQP;saslMechanisms=PLAIN,ANONYMOUS;multicastPrefix=topic://");
        AddressSettings settings = new AddressSettings().setAutoDeleteQueues(false).setAutoDeleteAddresses(false);
        // A bare name is a queue, whoever uses it first; a topic is named with the prefix.
        settings.setDefaultAddressRoutingType(RoutingType.ANYCAST).setDefaultQueueRoutingType(RoutingType.ANYCAST);
        configuration.addAddressSetting("#", settings);
        Set<Role> roles = new HashSet<>();
        roles.add(new Role("all", true, true, true, true, true, true, true, true, true, true, true, true));
        configuration.putSecurityRoles("#", roles);
        SecurityConfiguration users = new SecurityConfiguration();
        users.addUser("guest", "guest");
        users.addRole("guest", "all");
        users.setDefaultUser("guest");
        EmbeddedActiveMQ broker = new EmbeddedActiveMQ();
        broker.setConfiguration(configuration);
        broker.setSecurityManager(new ActiveMQJAASSecurityManager(InVMLoginModule.class.getName(), users));
        broker.start();
        System.out.println("ready");
        Thread.currentThread().join();
    }
}

import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.util.*;
import java.util.stream.Collectors;
import org.apache.qpid.transport.*;
import org.apache.qpid.transport.codec.BBEncoder;
import org.apache.qpid.transport.network.Frame;

/**
 * What Qpid's JMS client 6.4 writes for each control, command and struct of AMQP 0-10 that it knows, all fields set: JSON, a row a line, name,
 * fields, octets in hexadecimal. `python tests/vectors/record_0_10.py` calls it.
 */
public class Octets010 {
    static final Xid XID = new Xid().setFormat(7).setGlobalId(new byte[] {1, 2}).setBranchId(new byte[] {3});
    static final int TYPES = 0x1000; // class codes are below 16
    static final Set<String> LISTS_OF_STRUCTS = Set.of("fragments", "in_doubt");

    public static void main(String[] arguments) throws Exception {
        List<String> rows = new ArrayList<>();
        for (int code = 0; code < TYPES; code++) {
            for (boolean isMethod : new boolean[] {true, false}) {
                Struct made = make(code, isMethod);
                if (made != null) {
                    rows.add(row(made, isMethod));
                }
            }
        }
        System.out.println("[\n" + String.join(",\n", rows) + "\n]");
    }

    static Struct make(int code, boolean isMethod) {
        try {
            return isMethod ? org.apache.qpid.transport.Method.create(code) : Struct.create(code);
        } catch (IllegalArgumentException none) {
            return null;
        }
    }

    static String row(Struct made, boolean isMethod) throws Exception {
        Map<String, Object> fields = new TreeMap<>();
        for (Method setter : made.getClass().getMethods()) {
            String name = setter.getName();
            if (!name.startsWith("set") || setter.getParameterCount() != 1 || setter.getReturnType() != made.getClass()) {
                continue;
            }
            String field = name.substring(3).replaceAll("(?<=[a-z])(?=[A-Z])", "_").toLowerCase();
            if (made instanceof MessageRelease && field.equals("redelivered")) {
                continue; // another name of set_redelivered
            }
            Object value = LISTS_OF_STRUCTS.contains(field) ? List.of() : sample(setter.getParameterTypes()[0]);
            setter.invoke(made, value);
            fields.put(field, value);
        }
        BBEncoder encoder = new BBEncoder(1024);
        encoder.init();
        String title = made.getClass().getSimpleName().replaceAll("(?<=[a-z])(?=[A-Z])", isMethod ? "_" : "-").toLowerCase();
        if (isMethod) {
            encoder.writeUint16(made.getEncodedType());
            if (((org.apache.qpid.transport.Method) made).getEncodedTrack() == Frame.L4) {
                encoder.writeUint16(0x0100); // the session header: as Disassembler writes it
            }
            made.write(encoder);
        } else {
            encoder.writeStruct32(made);
        }
        ByteBuffer octets = encoder.segment();
        StringBuilder hex = new StringBuilder();
        while (octets.hasRemaining()) {
            hex.append(String.format("%02x", octets.get()));
        }
        return "[\"" + title + "\", " + json(fields) + ", \"" + hex + "\"]";
    }

    static Object sample(Class<?> type) {
        if (type == boolean.class) {
            return true;
        } else if (type == short.class) {
            return (short) 1;
        } else if (type == int.class) {
            return 2;
        } else if (type == long.class) {
            return 3L;
        } else if (type == String.class) {
            return "name";
        } else if (type == byte[].class) {
            return new byte[] {(byte) 0xff, 0};
        } else if (type == UUID.class) {
            return new UUID(0x0001020304050607L, 0x08090a0b0c0d0e0fL);
        } else if (type == RangeSet.class) {
            RangeSet set = RangeSetFactory.createRangeSet();
            set.add(0, 2);
            set.add(5, 6);
            set.add(15);
            return set;
        } else if (type == Xid.class) {
            return XID;
        } else if (type == ReplyTo.class) {
            return new ReplyTo().setExchange("e").setRoutingKey("k");
        } else if (type == Struct.class) {
            return new XaResult().setStatus(DtxXaStatus.XA_RDONLY);
        } else if (type == Map.class) {
            return Map.of("key", "text");
        } else if (type == List.class) {
            return List.of("one", "two");
        } else if (type.isEnum()) {
            return type.getEnumConstants()[type.getEnumConstants().length - 1];
        }
        throw new IllegalArgumentException("a field of " + type);
    }

    static String json(Object value) throws Exception {
        if (value instanceof Map) {
            return ((Map<?, ?>) value).entrySet().stream().map(each -> {
                try {
                    return "\"" + each.getKey() + "\": " + json(each.getValue());
                } catch (Exception error) {
                    throw new IllegalStateException(error);
                }
            }).collect(Collectors.joining(", ", "{", "}"));
        } else if (value instanceof Boolean || value instanceof Number) {
            return value.toString();
        } else if (value instanceof byte[]) {
            StringBuilder hex = new StringBuilder();
            for (byte octet : (byte[]) value) {
                hex.append(String.format("%02x", octet));
            }
            return "{\"octets\": \"" + hex + "\"}";
        } else if (value instanceof UUID) {
            return "{\"octets\": \"" + value.toString().replace("-", "") + "\"}";
        } else if (value instanceof RangeSet) {
            List<String> ranges = new ArrayList<>();
            for (Range range : (RangeSet) value) {
                ranges.add("[" + range.getLower() + ", " + range.getUpper() + "]");
            }
            return ranges.toString();
        } else if (value instanceof List) {
            return ((List<?>) value).stream().map(each -> "\"" + each + "\"").collect(Collectors.joining(", ", "[", "]"));
        } else if (value instanceof Enum) {
            return value.getClass().getMethod("getValue").invoke(value).toString();
        } else if (value instanceof Struct) {
            return json(((Struct) value).getFields().entrySet().stream().collect(Collectors.toMap(
                each -> each.getKey().replaceAll("(?<=[a-z])(?=[A-Z])", "_").toLowerCase(), Map.Entry::getValue)));
        }
        return "\"" + value + "\"";
    }
}

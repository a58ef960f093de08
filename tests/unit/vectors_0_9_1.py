"""Golden octets, recorded: made by tests/vectors/record.py from amqp_0_9_1.json beside it; do not edit.

Each of TEXTS is JSON: [sender, type, name, channel, fields, frame]; tests/vectors/vectors.py tells the form of fields.
"""

TEXTS = (
    '["client", "method", "connection.start-ok", 0, [["client_properties", [["product", "S", "Pika Python Client Library"], ['
    '"platform", "S", "Python 3.11.7"], ["capabilities", "F", [["authentication_failure_close", "t", true], ["basic.nack", "t'
    '", true], ["connection.blocked", "t", true], ["consumer_cancel_notify", "t", true], ["exchange_exchange_bindings", "t", '
    'true], ["publisher_confirms", "t", true]]], ["information", "S", "See https://pika.rtfd.org"], ["version", "S", "1.4.4"]'
    ']], ["mechanism", "PLAIN"], ["response", "006775657374006775657374"], ["locale", "en_US"]], "01000000000140000a000b00000'
    '11c0770726f64756374530000001a50696b6120507974686f6e20436c69656e74204c69627261727908706c6174666f726d530000000d507974686f6'
    'e20332e31312e370c6361706162696c6974696573460000008c1c61757468656e7469636174696f6e5f6661696c7572655f636c6f736574010a62617'
    '369632e6e61636b740112636f6e6e656374696f6e2e626c6f636b6564740116636f6e73756d65725f63616e63656c5f6e6f7469667974011a6578636'
    '8616e67655f65786368616e67655f62696e64696e67737401127075626c69736865725f636f6e6669726d7374010b696e666f726d6174696f6e53000'
    '000195365652068747470733a2f2f70696b612e727466642e6f72670776657273696f6e5300000005312e342e3405504c41494e0000000c006775657'
    '37400677565737405656e5f5553ce"]',
    '["client", "method", "connection.tune-ok", 0, [["channel_max", 2047], ["frame_max", 131072], ["heartbeat", 1]], "0100000'
    '000000c000a001f07ff000200000001ce"]',
    '["client", "method", "connection.open", 0, [["virtual_host", "/"], ["reserved_1", ""], ["reserved_2", true]], "010000000'
    '00008000a0028012f0001ce"]',
    '["client", "method", "channel.open", 1, [["reserved_1", ""]], "010001000000050014000a00ce"]',
    '["client", "method", "exchange.declare", 1, [["reserved_1", 0], ["exchange", "rec.topic"], ["type", "topic"], ["passive"'
    ', false], ["durable", false], ["auto_delete", false], ["internal", false], ["no_wait", false], ["arguments", [["alternat'
    'e-exchange", "S", "amq.fanout"]]]], "0100010000003d0028000a0000097265632e746f70696305746f706963000000002212616c7465726e6'
    '174652d65786368616e6765530000000a616d712e66616e6f7574ce"]',
    '["client", "method", "exchange.declare", 1, [["reserved_1", 0], ["exchange", "rec.other"], ["type", "fanout"], ["passive'
    '", false], ["durable", true], ["auto_delete", false], ["internal", false], ["no_wait", false], ["arguments", []]], "0100'
    '010000001c0028000a0000097265632e6f746865720666616e6f75740200000000ce"]',
    '["client", "method", "exchange.bind", 1, [["reserved_1", 0], ["destination", "rec.other"], ["source", "rec.topic"], ["ro'
    'uting_key", "x.#"], ["no_wait", false], ["arguments", []]], "010001000000230028001e0000097265632e6f74686572097265632e746'
    'f70696303782e230000000000ce"]',
    '["client", "method", "exchange.unbind", 1, [["reserved_1", 0], ["destination", "rec.other"], ["source", "rec.topic"], ["'
    'routing_key", "x.#"], ["no_wait", false], ["arguments", []]], "01000100000023002800280000097265632e6f74686572097265632e7'
    '46f70696303782e230000000000ce"]',
    '["client", "method", "queue.declare", 1, [["reserved_1", 0], ["queue", ""], ["passive", false], ["durable", false], ["ex'
    'clusive", true], ["auto_delete", false], ["no_wait", false], ["arguments", [["x-max-length", "I", 100]]]], "010001000000'
    '1e0032000a00000004000000120c782d6d61782d6c656e6774684900000064ce"]',
    '["client", "method", "queue.bind", 1, [["reserved_1", 0], ["queue", "amq.gen-8d7zSfupdIywa_oOTkECCg"], ["exchange", "rec'
    '.topic"], ["routing_key", "a.*"], ["no_wait", false], ["arguments", [["note", "I", 1]]]], "010001000000420032001400001e6'
    '16d712e67656e2d3864377a5366757064497977615f6f4f546b45434367097265632e746f70696303612e2a000000000a046e6f74654900000001ce"'
    ']',
    '["client", "method", "basic.publish", 1, [["reserved_1", 0], ["exchange", "rec.topic"], ["routing_key", "a.b"], ["mandat'
    'ory", false], ["immediate", false]], "01000100000015003c00280000097265632e746f70696303612e6200ce"]',
    '["client", "header", "header", 1, [["class_id", 60], ["weight", 0], ["body_size", 5], ["content_type", "text/plain"], ["'
    'content_encoding", "utf-8"], ["headers", [["text", "S", "\\u20ac"], ["whole", "I", 42], ["big", "l", 1099511627776], ["li'
    'st", "A", [["I", 1], ["S", "two"]]], ["table", "F", [["deep", "t", false]]], ["none", "V", null]]], ["delivery_mode", 2]'
    ', ["priority", 5], ["correlation_id", "correlation"], ["reply_to", "reply"], ["expiration", "60000"], ["message_id", "id'
    '"], ["timestamp", 1700000000], ["type", "type"], ["user_id", "guest"], ["app_id", "app"], ["cluster_id", "cluster"]], "0'
    '20001000000b3003c00000000000000000005fffc0a746578742f706c61696e057574662d380000005404746578745300000003e282ac0577686f6c6'
    '5490000002a036269676c0000010000000000046c697374410000000d4900000001530000000374776f057461626c654600000007046465657074000'
    '46e6f6e655602050b636f7272656c6174696f6e057265706c79053630303030026964000000006553f10004747970650567756573740361707007636'
    'c7573746572ce"]',
    '["client", "body", "body", 1, [], "030001000000056669727374ce"]',
    '["client", "method", "confirm.select", 1, [["nowait", false]], "010001000000050055000a00ce"]',
    '["client", "method", "basic.publish", 1, [["reserved_1", 0], ["exchange", ""], ["routing_key", "amq.gen-8d7zSfupdIywa_oO'
    'TkECCg"], ["mandatory", true], ["immediate", false]], "01000100000027003c00280000001e616d712e67656e2d3864377a53667570644'
    '97977615f6f4f546b4543436701ce"]',
    '["client", "header", "header", 1, [["class_id", 60], ["weight", 0], ["body_size", 0]], "0200010000000e003c00000000000000'
    '0000000000ce"]',
    '["client", "header", "header", 1, [["class_id", 60], ["weight", 0], ["body_size", 4]], "0200010000000e003c00000000000000'
    '0000040000ce"]',
    '["client", "body", "body", 1, [], "030001000000046261636bce"]',
    '["client", "method", "basic.qos", 1, [["prefetch_size", 0], ["prefetch_count", 7], ["global", false]], "0100010000000b00'
    '3c000a00000000000700ce"]',
    '["client", "method", "basic.consume", 1, [["reserved_1", 0], ["queue", "amq.gen-8d7zSfupdIywa_oOTkECCg"], ["consumer_tag'
    '", "ctag1.b38134bbff3743b59d3e9111a148a6ca"], ["no_local", false], ["no_ack", false], ["exclusive", false], ["no_wait", '
    'false], ["arguments", []]], "01000100000051003c001400001e616d712e67656e2d3864377a5366757064497977615f6f4f546b45434367266'
    '3746167312e62333831333462626666333734336235396433653931313161313438613663610000000000ce"]',
    '["client", "method", "basic.nack", 1, [["delivery_tag", 1], ["multiple", false], ["requeue", true]], "0100010000000d003c'
    '0078000000000000000102ce"]',
    '["client", "method", "basic.reject", 1, [["delivery_tag", 2], ["requeue", false]], "0100010000000d003c005a00000000000000'
    '0200ce"]',
    '["client", "method", "basic.ack", 1, [["delivery_tag", 3], ["multiple", true]], "0100010000000d003c005000000000000000030'
    '1ce"]',
    '["client", "method", "basic.cancel", 1, [["consumer_tag", "ctag1.b38134bbff3743b59d3e9111a148a6ca"], ["no_wait", false]]'
    ', "0100010000002c003c001e2663746167312e623338313334626266663337343362353964336539313131613134386136636100ce"]',
    '["client", "method", "basic.get", 1, [["reserved_1", 0], ["queue", "amq.gen-8d7zSfupdIywa_oOTkECCg"], ["no_ack", false]]'
    ', "01000100000026003c004600001e616d712e67656e2d3864377a5366757064497977615f6f4f546b4543436700ce"]',
    '["client", "method", "basic.recover", 1, [["requeue", true]], "01000100000005003c006e01ce"]',
    '["client", "method", "queue.purge", 1, [["reserved_1", 0], ["queue", "amq.gen-8d7zSfupdIywa_oOTkECCg"], ["no_wait", fals'
    'e]], "010001000000260032001e00001e616d712e67656e2d3864377a5366757064497977615f6f4f546b4543436700ce"]',
    '["client", "method", "queue.unbind", 1, [["reserved_1", 0], ["queue", "amq.gen-8d7zSfupdIywa_oOTkECCg"], ["exchange", "r'
    'ec.topic"], ["routing_key", "a.*"], ["arguments", [["note", "I", 1]]]], "010001000000410032003200001e616d712e67656e2d386'
    '4377a5366757064497977615f6f4f546b45434367097265632e746f70696303612e2a0000000a046e6f74654900000001ce"]',
    '["client", "method", "queue.delete", 1, [["reserved_1", 0], ["queue", "amq.gen-8d7zSfupdIywa_oOTkECCg"], ["if_unused", f'
    'alse], ["if_empty", false], ["no_wait", false]], "010001000000260032002800001e616d712e67656e2d3864377a536675706449797761'
    '5f6f4f546b4543436700ce"]',
    '["client", "method", "exchange.delete", 1, [["reserved_1", 0], ["exchange", "rec.other"], ["if_unused", false], ["no_wai'
    't", false]], "01000100000011002800140000097265632e6f7468657200ce"]',
    '["client", "method", "exchange.delete", 1, [["reserved_1", 0], ["exchange", "rec.topic"], ["if_unused", false], ["no_wai'
    't", false]], "01000100000011002800140000097265632e746f70696300ce"]',
    '["client", "heartbeat", "heartbeat", 0, [], "08000000000000ce"]',
    '["client", "method", "channel.open", 2, [["reserved_1", ""]], "010002000000050014000a00ce"]',
    '["client", "method", "tx.select", 2, [], "01000200000004005a000ace"]',
    '["client", "method", "tx.commit", 2, [], "01000200000004005a0014ce"]',
    '["client", "method", "tx.rollback", 2, [], "01000200000004005a001ece"]',
    '["client", "method", "channel.flow", 2, [["active", true]], "010002000000050014001401ce"]',
    '["client", "method", "channel.close", 2, [["reply_code", 0], ["reply_text", "Normal shutdown"], ["class_id", 0], ["metho'
    'd_id", 0]], "0100020000001a0014002800000f4e6f726d616c2073687574646f776e00000000ce"]',
    '["client", "method", "channel.close", 1, [["reply_code", 200], ["reply_text", "Normal shutdown"], ["class_id", 0], ["met'
    'hod_id", 0]], "0100010000001a0014002800c80f4e6f726d616c2073687574646f776e00000000ce"]',
    '["client", "method", "connection.close", 0, [["reply_code", 200], ["reply_text", "Normal shutdown"], ["class_id", 0], ["'
    'method_id", 0]], "0100000000001a000a003200c80f4e6f726d616c2073687574646f776e00000000ce"]',
    '["server", "method", "connection.start", 0, [["version_major", 0], ["version_minor", 9], ["server_properties", [["capabi'
    'lities", "F", [["publisher_confirms", "t", true], ["exchange_exchange_bindings", "t", true], ["basic.nack", "t", true], '
    '["consumer_cancel_notify", "t", true], ["connection.blocked", "t", true], ["consumer_priorities", "t", true], ["authenti'
    'cation_failure_close", "t", true], ["per_consumer_qos", "t", true], ["direct_reply_to", "t", true]]], ["cluster_name", "'
    'S", "test57679@vm"], ["copyright", "S", "Copyright (c) 2007-2022 VMware, Inc. or its affiliates."], ["information", "S",'
    ' "Licensed under the MPL 2.0. Website: https://rabbitmq.com"], ["platform", "S", "Erlang/OTP 25.2.3"], ["product", "S", '
    '"RabbitMQ"], ["version", "S", "3.10.8"]]], ["mechanisms", "414d51504c41494e20504c41494e"], ["locales", "656e5f5553"]], "'
    '010000000001f3000a000a0009000001ce0c6361706162696c697469657346000000c7127075626c69736865725f636f6e6669726d7374011a657863'
    '68616e67655f65786368616e67655f62696e64696e677374010a62617369632e6e61636b740116636f6e73756d65725f63616e63656c5f6e6f746966'
    '79740112636f6e6e656374696f6e2e626c6f636b6564740113636f6e73756d65725f7072696f72697469657374011c61757468656e7469636174696f'
    '6e5f6661696c7572655f636c6f73657401107065725f636f6e73756d65725f716f7374010f6469726563745f7265706c795f746f74010c636c757374'
    '65725f6e616d65530000000c74657374353736373940766d09636f707972696768745300000037436f707972696768742028632920323030372d3230'
    '323220564d776172652c20496e632e206f722069747320616666696c69617465732e0b696e666f726d6174696f6e53000000394c6963656e73656420'
    '756e64657220746865204d504c20322e302e20576562736974653a2068747470733a2f2f7261626269746d712e636f6d08706c6174666f726d530000'
    '001145726c616e672f4f54502032352e322e330770726f6475637453000000085261626269744d510776657273696f6e5300000006332e31302e3800'
    '00000e414d51504c41494e20504c41494e00000005656e5f5553ce"]',
    '["server", "method", "connection.tune", 0, [["channel_max", 2047], ["frame_max", 131072], ["heartbeat", 60]], "010000000'
    '0000c000a001e07ff00020000003cce"]',
    '["server", "method", "connection.open-ok", 0, [["reserved_1", ""]], "01000000000005000a002900ce"]',
    '["server", "method", "channel.open-ok", 1, [["reserved_1", ""]], "010001000000080014000b00000000ce"]',
    '["server", "method", "exchange.declare-ok", 1, [], "010001000000040028000bce"]',
    '["server", "method", "exchange.bind-ok", 1, [], "010001000000040028001fce"]',
    '["server", "method", "exchange.unbind-ok", 1, [], "0100010000000400280033ce"]',
    '["server", "method", "queue.declare-ok", 1, [["queue", "amq.gen-8d7zSfupdIywa_oOTkECCg"], ["message_count", 0], ["consum'
    'er_count", 0]], "0100010000002b0032000b1e616d712e67656e2d3864377a5366757064497977615f6f4f546b454343670000000000000000ce"'
    ']',
    '["server", "method", "queue.bind-ok", 1, [], "0100010000000400320015ce"]',
    '["server", "method", "confirm.select-ok", 1, [], "010001000000040055000bce"]',
    '["server", "method", "basic.ack", 1, [["delivery_tag", 1], ["multiple", false]], "0100010000000d003c00500000000000000001'
    '00ce"]',
    '["server", "method", "basic.return", 1, [["reply_code", 312], ["reply_text", "NO_ROUTE"], ["exchange", "rec.topic"], ["r'
    'outing_key", "nowhere"]], "01000100000021003c00320138084e4f5f524f555445097265632e746f706963076e6f7768657265ce"]',
    '["server", "header", "header", 1, [["class_id", 60], ["weight", 0], ["body_size", 4]], "0200010000000e003c00000000000000'
    '0000040000ce"]',
    '["server", "body", "body", 1, [], "030001000000046261636bce"]',
    '["server", "method", "basic.ack", 1, [["delivery_tag", 2], ["multiple", false]], "0100010000000d003c00500000000000000002'
    '00ce"]',
    '["server", "method", "basic.qos-ok", 1, [], "01000100000004003c000bce"]',
    '["server", "method", "basic.consume-ok", 1, [["consumer_tag", "ctag1.b38134bbff3743b59d3e9111a148a6ca"]], "0100010000002'
    'b003c00152663746167312e6233383133346262666633373433623539643365393131316131343861366361ce"]',
    '["server", "method", "basic.deliver", 1, [["consumer_tag", "ctag1.b38134bbff3743b59d3e9111a148a6ca"], ["delivery_tag", 1'
    '], ["redelivered", false], ["exchange", "rec.topic"], ["routing_key", "a.b"]], "01000100000042003c003c2663746167312e6233'
    '383133346262666633373433623539643365393131316131343861366361000000000000000100097265632e746f70696303612e62ce"]',
    '["server", "header", "header", 1, [["class_id", 60], ["weight", 0], ["body_size", 5], ["content_type", "text/plain"], ["'
    'content_encoding", "utf-8"], ["headers", [["text", "S", "\\u20ac"], ["whole", "I", 42], ["big", "l", 1099511627776], ["li'
    'st", "A", [["I", 1], ["S", "two"]]], ["table", "F", [["deep", "t", false]]], ["none", "V", null]]], ["delivery_mode", 2]'
    ', ["priority", 5], ["correlation_id", "correlation"], ["reply_to", "reply"], ["expiration", "60000"], ["message_id", "id'
    '"], ["timestamp", 1700000000], ["type", "type"], ["user_id", "guest"], ["app_id", "app"], ["cluster_id", "cluster"]], "0'
    '20001000000b3003c00000000000000000005fffc0a746578742f706c61696e057574662d380000005404746578745300000003e282ac0577686f6c6'
    '5490000002a036269676c0000010000000000046c697374410000000d4900000001530000000374776f057461626c654600000007046465657074000'
    '46e6f6e655602050b636f7272656c6174696f6e057265706c79053630303030026964000000006553f10004747970650567756573740361707007636'
    'c7573746572ce"]',
    '["server", "body", "body", 1, [], "030001000000056669727374ce"]',
    '["server", "method", "basic.deliver", 1, [["consumer_tag", "ctag1.b38134bbff3743b59d3e9111a148a6ca"], ["delivery_tag", 2'
    '], ["redelivered", false], ["exchange", ""], ["routing_key", "amq.gen-8d7zSfupdIywa_oOTkECCg"]], "01000100000054003c003c'
    '2663746167312e6233383133346262666633373433623539643365393131316131343861366361000000000000000200001e616d712e67656e2d3864'
    '377a5366757064497977615f6f4f546b45434367ce"]',
    '["server", "header", "header", 1, [["class_id", 60], ["weight", 0], ["body_size", 0]], "0200010000000e003c00000000000000'
    '0000000000ce"]',
    '["server", "method", "basic.cancel-ok", 1, [["consumer_tag", "ctag1.b38134bbff3743b59d3e9111a148a6ca"]], "0100010000002b'
    '003c001f2663746167312e6233383133346262666633373433623539643365393131316131343861366361ce"]',
    '["server", "method", "basic.get-empty", 1, [["reserved_1", ""]], "01000100000005003c004800ce"]',
    '["server", "method", "basic.recover-ok", 1, [], "01000100000004003c006fce"]',
    '["server", "method", "queue.purge-ok", 1, [["message_count", 0]], "010001000000080032001f00000000ce"]',
    '["server", "method", "queue.unbind-ok", 1, [], "0100010000000400320033ce"]',
    '["server", "method", "queue.delete-ok", 1, [["message_count", 0]], "010001000000080032002900000000ce"]',
    '["server", "method", "exchange.delete-ok", 1, [], "0100010000000400280015ce"]',
    '["server", "heartbeat", "heartbeat", 0, [], "08000000000000ce"]',
    '["server", "method", "channel.open-ok", 2, [["reserved_1", ""]], "010002000000080014000b00000000ce"]',
    '["server", "method", "tx.select-ok", 2, [], "01000200000004005a000bce"]',
    '["server", "method", "tx.commit-ok", 2, [], "01000200000004005a0015ce"]',
    '["server", "method", "tx.rollback-ok", 2, [], "01000200000004005a001fce"]',
    '["server", "method", "channel.flow-ok", 2, [["active", true]], "010002000000050014001501ce"]',
    '["server", "method", "channel.close-ok", 2, [], "0100020000000400140029ce"]',
    '["server", "method", "channel.close-ok", 1, [], "0100010000000400140029ce"]',
    '["server", "method", "connection.close-ok", 0, [], "01000000000004000a0033ce"]',
    '["client", "method", "connection.start-ok", 0, [["client_properties", [["product", "S", "py-amqp"], ["product_version", '
    '"S", "5.4.2"], ["capabilities", "F", [["consumer_cancel_notify", "t", true], ["connection.blocked", "t", true], ["authen'
    'tication_failure_close", "t", true]]]]], ["mechanism", "AMQPLAIN"], ["response", "054c4f47494e53000000056775657374085041'
    '5353574f524453000000056775657374"], ["locale", "en_US"]], "010000000000cb000a000b0000008d0770726f64756374530000000770792'
    'd616d71700f70726f647563745f76657273696f6e5300000005352e342e320c6361706162696c6974696573460000004d16636f6e73756d65725f636'
    '16e63656c5f6e6f74696679740112636f6e6e656374696f6e2e626c6f636b656474011c61757468656e7469636174696f6e5f6661696c7572655f636'
    'c6f7365740108414d51504c41494e00000023054c4f47494e530000000567756573740850415353574f52445300000005677565737405656e5f5553c'
    'e"]',
    '["client", "method", "connection.tune-ok", 0, [["channel_max", 2047], ["frame_max", 131072], ["heartbeat", 0]], "0100000'
    '000000c000a001f07ff000200000000ce"]',
    '["client", "method", "connection.open", 0, [["virtual_host", "/"], ["reserved_1", ""], ["reserved_2", false]], "01000000'
    '000008000a0028012f0000ce"]',
    '["client", "method", "queue.declare", 1, [["reserved_1", 0], ["queue", "rec.py-amqp"], ["passive", false], ["durable", f'
    'alse], ["exclusive", false], ["auto_delete", false], ["no_wait", false], ["arguments", []]], "010001000000170032000a0000'
    '0b7265632e70792d616d71700000000000ce"]',
    '["client", "method", "basic.qos", 1, [["prefetch_size", 0], ["prefetch_count", 1], ["global", true]], "0100010000000b003'
    'c000a00000000000101ce"]',
    '["client", "method", "basic.publish", 1, [["reserved_1", 0], ["exchange", ""], ["routing_key", "rec.py-amqp"], ["mandato'
    'ry", false], ["immediate", false]], "01000100000014003c00280000000b7265632e70792d616d717000ce"]',
    '["client", "header", "header", 1, [["class_id", 60], ["weight", 0], ["body_size", 5], ["content_type", "text/plain"], ["'
    'content_encoding", "utf-8"], ["headers", [["text", "S", "\\u20ac"], ["whole", "I", 42], ["big", "L", 1099511627776], ["li'
    'st", "A", [["I", 1], ["S", "two"]]], ["table", "F", [["deep", "t", false]]], ["none", "V", null]]], ["priority", 1]], "0'
    '2000100000078003c00000000000000000005e8000a746578742f706c61696e057574662d380000005404746578745300000003e282ac0577686f6c6'
    '5490000002a036269674c0000010000000000046c697374410000000d4900000001530000000374776f057461626c654600000007046465657074000'
    '46e6f6e655601ce"]',
    '["client", "body", "body", 1, [], "0300010000000568656c6c6fce"]',
    '["client", "method", "basic.get", 1, [["reserved_1", 0], ["queue", "rec.py-amqp"], ["no_ack", false]], "0100010000001300'
    '3c004600000b7265632e70792d616d717000ce"]',
    '["client", "method", "basic.ack", 1, [["delivery_tag", 1], ["multiple", false]], "0100010000000d003c00500000000000000001'
    '00ce"]',
    '["client", "method", "basic.consume", 1, [["reserved_1", 0], ["queue", "rec.py-amqp"], ["consumer_tag", "tag"], ["no_loc'
    'al", false], ["no_ack", true], ["exclusive", false], ["no_wait", false], ["arguments", []]], "0100010000001b003c00140000'
    '0b7265632e70792d616d7170037461670200000000ce"]',
    '["client", "method", "basic.cancel", 1, [["consumer_tag", "tag"], ["no_wait", false]], "01000100000009003c001e0374616700'
    'ce"]',
    '["client", "method", "queue.delete", 1, [["reserved_1", 0], ["queue", "rec.py-amqp"], ["if_unused", true], ["if_empty", '
    'true], ["no_wait", false]], "010001000000130032002800000b7265632e70792d616d717003ce"]',
    '["client", "method", "channel.close", 1, [["reply_code", 0], ["reply_text", ""], ["class_id", 0], ["method_id", 0]], "01'
    '00010000000b0014002800000000000000ce"]',
    '["client", "method", "connection.close", 0, [["reply_code", 0], ["reply_text", ""], ["class_id", 0], ["method_id", 0]], '
    '"0100000000000b000a003200000000000000ce"]',
    '["server", "method", "queue.declare-ok", 1, [["queue", "rec.py-amqp"], ["message_count", 0], ["consumer_count", 0]], "01'
    '0001000000180032000b0b7265632e70792d616d71700000000000000000ce"]',
    '["server", "method", "basic.get-ok", 1, [["delivery_tag", 1], ["redelivered", false], ["exchange", ""], ["routing_key", '
    '"rec.py-amqp"], ["message_count", 0]], "0100010000001e003c0047000000000000000100000b7265632e70792d616d717000000000ce"]',
    '["server", "header", "header", 1, [["class_id", 60], ["weight", 0], ["body_size", 5], ["content_type", "text/plain"], ["'
    'content_encoding", "utf-8"], ["headers", [["text", "S", "\\u20ac"], ["whole", "I", 42], ["big", "L", 1099511627776], ["li'
    'st", "A", [["I", 1], ["S", "two"]]], ["table", "F", [["deep", "t", false]]], ["none", "V", null]]], ["priority", 1]], "0'
    '2000100000078003c00000000000000000005e8000a746578742f706c61696e057574662d380000005404746578745300000003e282ac0577686f6c6'
    '5490000002a036269674c0000010000000000046c697374410000000d4900000001530000000374776f057461626c654600000007046465657074000'
    '46e6f6e655601ce"]',
    '["server", "body", "body", 1, [], "0300010000000568656c6c6fce"]',
    '["server", "method", "basic.consume-ok", 1, [["consumer_tag", "tag"]], "01000100000008003c001503746167ce"]',
    '["server", "method", "basic.cancel-ok", 1, [["consumer_tag", "tag"]], "01000100000008003c001f03746167ce"]',
    '["client", "method", "connection.start-ok", 0, [["client_properties", [["capabilities", "F", [["authentication_failure_c'
    'lose", "t", true], ["basic.nack", "t", true], ["connection.blocked", "t", true], ["consumer_cancel_notify", "t", true], '
    '["publisher_confirms", "t", true]]], ["information", "S", "See https://github.com/mosquito/aiormq/"], ["platform", "S", '
    '"CPython 3.11.7 (main build May  9 2026 07:35:25)"], ["product", "S", "aiormq"], ["version", "S", "7.2.4"]]], ["mechanis'
    'm", "PLAIN"], ["response", "006775657374006775657374"], ["locale", "en_US"]], "01000000000140000a000b0000011c0c636170616'
    '2696c6974696573460000006f1c61757468656e7469636174696f6e5f6661696c7572655f636c6f736574010a62617369632e6e61636b740112636f6'
    'e6e656374696f6e2e626c6f636b6564740116636f6e73756d65725f63616e63656c5f6e6f746966797401127075626c69736865725f636f6e6669726'
    'd7374010b696e666f726d6174696f6e53000000275365652068747470733a2f2f6769746875622e636f6d2f6d6f73717569746f2f61696f726d712f0'
    '8706c6174666f726d530000003043507974686f6e20332e31312e3720286d61696e206275696c64204d617920203920323032362030373a33353a323'
    '5290770726f64756374530000000661696f726d710776657273696f6e5300000005372e322e3405504c41494e0000000c00677565737400677565737'
    '405656e5f5553ce"]',
    '["client", "method", "connection.tune-ok", 0, [["channel_max", 2047], ["frame_max", 131072], ["heartbeat", 60]], "010000'
    '0000000c000a001f07ff00020000003cce"]',
    '["client", "method", "channel.open", 1, [["reserved_1", "0"]], "010001000000060014000a0130ce"]',
    '["client", "method", "exchange.declare", 1, [["reserved_1", 0], ["exchange", "rec.aio"], ["type", "headers"], ["passive"'
    ', false], ["durable", false], ["auto_delete", true], ["internal", false], ["no_wait", false], ["arguments", []]], "01000'
    '10000001b0028000a0000077265632e61696f07686561646572730400000000ce"]',
    '["client", "method", "queue.declare", 1, [["reserved_1", 0], ["queue", ""], ["passive", false], ["durable", false], ["ex'
    'clusive", true], ["auto_delete", false], ["no_wait", false], ["arguments", []]], "0100010000000c0032000a0000000400000000'
    'ce"]',
    '["client", "method", "queue.bind", 1, [["reserved_1", 0], ["queue", "amq.gen-jVDA4ezYyAYL80xaX1n2PA"], ["exchange", "rec'
    '.aio"], ["routing_key", "amq.gen-jVDA4ezYyAYL80xaX1n2PA"], ["no_wait", false], ["arguments", [["a", "b", 1], ["x-match",'
    ' "S", "any"]]]], "010001000000650032001400001e616d712e67656e2d6a56444134657a597941594c3830786158316e325041077265632e6169'
    '6f1e616d712e67656e2d6a56444134657a597941594c3830786158316e32504100000000140161620107782d6d617463685300000003616e79ce"]',
    '["client", "method", "basic.publish", 1, [["reserved_1", 0], ["exchange", "rec.aio"], ["routing_key", ""], ["mandatory",'
    ' true], ["immediate", false]], "01000100000010003c00280000077265632e61696f0001ce"]',
    '["client", "header", "header", 1, [["class_id", 60], ["weight", 0], ["body_size", 150], ["headers", [["a", "b", 1]]], ["'
    'delivery_mode", 1], ["priority", 0], ["message_id", "6c3ae2dcf88043e289968538786a1838"]], "02000100000039003c00000000000'
    '000000096388000000004016162010100203663336165326463663838303433653238393936383533383738366131383338ce"]',
    '["client", "body", "body", 1, [], "0300010000009661696f61696f61696f61696f61696f61696f61696f61696f61696f61696f61696f61696'
    'f61696f61696f61696f61696f61696f61696f61696f61696f61696f61696f61696f61696f61696f61696f61696f61696f61696f61696f61696f61696'
    'f61696f61696f61696f61696f61696f61696f61696f61696f61696f61696f61696f61696f61696f61696f61696f61696f61696f61696fce"]',
    '["client", "method", "basic.get", 1, [["reserved_1", 0], ["queue", "amq.gen-jVDA4ezYyAYL80xaX1n2PA"], ["no_ack", false]]'
    ', "01000100000026003c004600001e616d712e67656e2d6a56444134657a597941594c3830786158316e32504100ce"]',
    '["client", "method", "queue.unbind", 1, [["reserved_1", 0], ["queue", "amq.gen-jVDA4ezYyAYL80xaX1n2PA"], ["exchange", "r'
    'ec.aio"], ["routing_key", "amq.gen-jVDA4ezYyAYL80xaX1n2PA"], ["arguments", [["a", "b", 1], ["x-match", "S", "any"]]]], "'
    '010001000000640032003200001e616d712e67656e2d6a56444134657a597941594c3830786158316e325041077265632e61696f1e616d712e67656e'
    '2d6a56444134657a597941594c3830786158316e325041000000140161620107782d6d617463685300000003616e79ce"]',
    '["client", "method", "connection.close", 0, [["reply_code", 200], ["reply_text", "normally closed"], ["class_id", 0], ["'
    'method_id", 0]], "0100000000001a000a003200c80f6e6f726d616c6c7920636c6f73656400000000ce"]',
    '["server", "method", "queue.declare-ok", 1, [["queue", "amq.gen-jVDA4ezYyAYL80xaX1n2PA"], ["message_count", 0], ["consum'
    'er_count", 0]], "0100010000002b0032000b1e616d712e67656e2d6a56444134657a597941594c3830786158316e3250410000000000000000ce"'
    ']',
    '["server", "method", "basic.get-ok", 1, [["delivery_tag", 1], ["redelivered", false], ["exchange", "rec.aio"], ["routing'
    '_key", ""], ["message_count", 0]], "0100010000001a003c0047000000000000000100077265632e61696f0000000000ce"]',
    '["server", "header", "header", 1, [["class_id", 60], ["weight", 0], ["body_size", 150], ["headers", [["a", "b", 1]]], ["'
    'delivery_mode", 1], ["priority", 0], ["message_id", "6c3ae2dcf88043e289968538786a1838"]], "02000100000039003c00000000000'
    '000000096388000000004016162010100203663336165326463663838303433653238393936383533383738366131383338ce"]',
    '["server", "body", "body", 1, [], "0300010000009661696f61696f61696f61696f61696f61696f61696f61696f61696f61696f61696f61696'
    'f61696f61696f61696f61696f61696f61696f61696f61696f61696f61696f61696f61696f61696f61696f61696f61696f61696f61696f61696f61696'
    'f61696f61696f61696f61696f61696f61696f61696f61696f61696f61696f61696f61696f61696f61696f61696f61696f61696f61696fce"]',
    '["client", "method", "connection.start-ok", 0, [["client_properties", [["product", "S", "raw test client"], ["capabiliti'
    'es", "F", [["publisher_confirms", "t", true], ["exchange_exchange_bindings", "t", true], ["basic.nack", "t", true], ["co'
    'nsumer_cancel_notify", "t", true], ["connection.blocked", "t", true], ["authentication_failure_close", "t", true]]]]], ['
    '"mechanism", "PLAIN"], ["response", "006775657374006775657374"], ["locale", "en_US"]], "010000000000de000a000b000000ba07'
    '70726f64756374530000000f726177207465737420636c69656e740c6361706162696c6974696573460000008c127075626c69736865725f636f6e66'
    '69726d7374011a65786368616e67655f65786368616e67655f62696e64696e677374010a62617369632e6e61636b740116636f6e73756d65725f6361'
    '6e63656c5f6e6f74696679740112636f6e6e656374696f6e2e626c6f636b656474011c61757468656e7469636174696f6e5f6661696c7572655f636c'
    '6f7365740105504c41494e0000000c00677565737400677565737405656e5f5553ce"]',
    '["client", "method", "queue.declare", 1, [["reserved_1", 0], ["queue", "rec.raw"], ["passive", false], ["durable", false'
    '], ["exclusive", false], ["auto_delete", false], ["no_wait", false], ["arguments", []]], "010001000000130032000a00000772'
    '65632e7261770000000000ce"]',
    '["client", "method", "basic.publish", 1, [["reserved_1", 0], ["exchange", ""], ["routing_key", "rec.raw"], ["mandatory",'
    ' false], ["immediate", false]], "01000100000010003c0028000000077265632e72617700ce"]',
    '["client", "header", "header", 1, [["class_id", 60], ["weight", 0], ["body_size", 5], ["headers", [["t", "t", true], ["b'
    '", "b", -1], ["B", "B", 255], ["s", "s", -3], ["u", "u", 65535], ["I", "I", -5], ["i", "i", 4000000000], ["l", "l", -461'
    '1686018427387904], ["f", "f", 1.5], ["d", "d", 2.5], ["D", "D", [2, 314]], ["S", "S", "text"], ["A", "A", [["I", 1], ["S'
    '", "two"], ["A", [["I", 3]]], ["F", [["four", "I", 4]]]]], ["T", "T", 1700000000], ["F", "F", [["nested", "F", [["deeper'
    '", "V", null]]]]], ["V", "V", null], ["x", "x", "00ff"]]]], "020001000000c5003c000000000000000000052000000000b3017474010'
    '16262ff014242ff017373fffd017575ffff014949fffffffb016969ee6b2800016c6cc0000000000000000166663fc00000016464400400000000000'
    '0014444020000013a0153530000000474657874014141000000264900000001530000000374776f41000000054900000003460000000a04666f75724'
    '900000004015454000000006553f10001464600000014066e6573746564460000000806646565706572560156560178780000000200ffce"]',
    '["client", "body", "body", 1, [], "030001000000057479706573ce"]',
    '["client", "method", "basic.get", 1, [["reserved_1", 0], ["queue", "rec.raw"], ["no_ack", false]], "0100010000000f003c00'
    '460000077265632e72617700ce"]',
    '["client", "method", "basic.recover-async", 1, [["requeue", true]], "01000100000005003c006401ce"]',
    '["client", "method", "basic.consume", 2, [["reserved_1", 0], ["queue", "rec.raw"], ["consumer_tag", "raw"], ["no_local",'
    ' false], ["no_ack", false], ["exclusive", true], ["no_wait", false], ["arguments", [["t", "t", true], ["b", "b", -1], ["'
    'B", "B", 255], ["s", "s", -3], ["u", "u", 65535], ["I", "I", -5], ["i", "i", 4000000000], ["l", "l", -461168601842738790'
    '4], ["f", "f", 1.5], ["d", "d", 2.5], ["D", "D", [2, 314]], ["S", "S", "text"], ["A", "A", [["I", 1], ["S", "two"], ["A"'
    ', [["I", 3]]], ["F", [["four", "I", 4]]]]], ["T", "T", 1700000000], ["F", "F", [["nested", "F", [["deeper", "V", null]]]'
    ']], ["V", "V", null], ["x", "x", "00ff"]]]], "010002000000ca003c00140000077265632e7261770372617704000000b301747401016262'
    'ff014242ff017373fffd017575ffff014949fffffffb016969ee6b2800016c6cc0000000000000000166663fc0000001646440040000000000000144'
    '44020000013a0153530000000474657874014141000000264900000001530000000374776f41000000054900000003460000000a04666f7572490000'
    '0004015454000000006553f10001464600000014066e6573746564460000000806646565706572560156560178780000000200ffce"]',
    '["client", "method", "queue.delete", 1, [["reserved_1", 0], ["queue", "rec.raw"], ["if_unused", false], ["if_empty", fal'
    'se], ["no_wait", false]], "0100010000000f003200280000077265632e72617700ce"]',
    '["client", "method", "queue.declare", 1, [["reserved_1", 0], ["queue", "rec.missing"], ["passive", true], ["durable", fa'
    'lse], ["exclusive", false], ["auto_delete", false], ["no_wait", false], ["arguments", []]], "010001000000170032000a00000'
    'b7265632e6d697373696e670100000000ce"]',
    '["client", "method", "channel.close-ok", 1, [], "0100010000000400140029ce"]',
    '["client", "method", "basic.qos", 1, [["prefetch_size", 0], ["prefetch_count", 0], ["global", false]], "0100010000000b00'
    '3c000a00000000000000ce"]',
    '["client", "method", "connection.close-ok", 0, [], "01000000000004000a0033ce"]',
    '["server", "method", "queue.declare-ok", 1, [["queue", "rec.raw"], ["message_count", 0], ["consumer_count", 0]], "010001'
    '000000140032000b077265632e7261770000000000000000ce"]',
    '["server", "method", "basic.get-ok", 1, [["delivery_tag", 1], ["redelivered", false], ["exchange", ""], ["routing_key", '
    '"rec.raw"], ["message_count", 0]], "0100010000001a003c004700000000000000010000077265632e72617700000000ce"]',
    '["server", "header", "header", 1, [["class_id", 60], ["weight", 0], ["body_size", 5], ["headers", [["t", "t", true], ["b'
    '", "b", -1], ["B", "B", 255], ["s", "s", -3], ["u", "u", 65535], ["I", "I", -5], ["i", "i", 4000000000], ["l", "l", -461'
    '1686018427387904], ["f", "f", 1.5], ["d", "d", 2.5], ["D", "D", [2, 314]], ["S", "S", "text"], ["A", "A", [["I", 1], ["S'
    '", "two"], ["A", [["I", 3]]], ["F", [["four", "I", 4]]]]], ["T", "T", 1700000000], ["F", "F", [["nested", "F", [["deeper'
    '", "V", null]]]]], ["V", "V", null], ["x", "x", "00ff"]]]], "020001000000c5003c000000000000000000052000000000b3017474010'
    '16262ff014242ff017373fffd017575ffff014949fffffffb016969ee6b2800016c6cc0000000000000000166663fc00000016464400400000000000'
    '0014444020000013a0153530000000474657874014141000000264900000001530000000374776f41000000054900000003460000000a04666f75724'
    '900000004015454000000006553f10001464600000014066e6573746564460000000806646565706572560156560178780000000200ffce"]',
    '["server", "body", "body", 1, [], "030001000000057479706573ce"]',
    '["server", "method", "basic.consume-ok", 2, [["consumer_tag", "raw"]], "01000200000008003c001503726177ce"]',
    '["server", "method", "basic.deliver", 2, [["consumer_tag", "raw"], ["delivery_tag", 1], ["redelivered", true], ["exchang'
    'e", ""], ["routing_key", "rec.raw"]], "0100020000001a003c003c0372617700000000000000010100077265632e726177ce"]',
    '["server", "header", "header", 2, [["class_id", 60], ["weight", 0], ["body_size", 5], ["headers", [["t", "t", true], ["b'
    '", "b", -1], ["B", "B", 255], ["s", "s", -3], ["u", "u", 65535], ["I", "I", -5], ["i", "i", 4000000000], ["l", "l", -461'
    '1686018427387904], ["f", "f", 1.5], ["d", "d", 2.5], ["D", "D", [2, 314]], ["S", "S", "text"], ["A", "A", [["I", 1], ["S'
    '", "two"], ["A", [["I", 3]]], ["F", [["four", "I", 4]]]]], ["T", "T", 1700000000], ["F", "F", [["nested", "F", [["deeper'
    '", "V", null]]]]], ["V", "V", null], ["x", "x", "00ff"]]]], "020002000000c5003c000000000000000000052000000000b3017474010'
    '16262ff014242ff017373fffd017575ffff014949fffffffb016969ee6b2800016c6cc0000000000000000166663fc00000016464400400000000000'
    '0014444020000013a0153530000000474657874014141000000264900000001530000000374776f41000000054900000003460000000a04666f75724'
    '900000004015454000000006553f10001464600000014066e6573746564460000000806646565706572560156560178780000000200ffce"]',
    '["server", "body", "body", 2, [], "030002000000057479706573ce"]',
    '["server", "method", "basic.cancel", 2, [["consumer_tag", "raw"], ["no_wait", true]], "01000200000009003c001e0372617701c'
    'e"]',
    '["server", "method", "channel.close", 1, [["reply_code", 404], ["reply_text", "NOT_FOUND - no queue \'rec.missing\' in vho'
    'st \'/\'"], ["class_id", 50], ["method_id", 10]], "0100010000003a0014002801942f4e4f545f464f554e44202d206e6f207175657565202'
    '77265632e6d697373696e672720696e2076686f737420272f270032000ace"]',
    '["server", "method", "connection.close", 0, [["reply_code", 504], ["reply_text", "CHANNEL_ERROR - expected \'channel.open'
    '\'"], ["class_id", 60], ["method_id", 10]], "01000000000032000a003201f8274348414e4e454c5f4552524f52202d206578706563746564'
    '20276368616e6e656c2e6f70656e27003c000ace"]',
    '["server", "method", "connection.secure", 0, [["challenge", "6368616c6c656e6765"]], "01000000000011000a00140000000963686'
    '16c6c656e6765ce"]',
    '["client", "method", "connection.secure-ok", 0, [["response", "616e73776572"]], "0100000000000e000a001500000006616e73776'
    '572ce"]',
    '["server", "method", "connection.blocked", 0, [["reason", "low on memory"]], "01000000000012000a003c0d6c6f77206f6e206d65'
    '6d6f7279ce"]',
    '["server", "method", "connection.unblocked", 0, [], "01000000000004000a003dce"]',
    '["client", "method", "connection.update-secret", 0, [["new_secret", "6e657720736563726574"], ["reason", "reason"]], "010'
    '00000000019000a00460000000a6e65772073656372657406726561736f6ece"]',
    '["server", "method", "connection.update-secret-ok", 0, [], "01000000000004000a0047ce"]',
    '["server", "method", "channel.flow", 3, [["active", false]], "010003000000050014001400ce"]',
    '["client", "method", "channel.flow-ok", 3, [["active", false]], "010003000000050014001500ce"]',
    '["client", "method", "basic.cancel-ok", 3, [["consumer_tag", "tag"]], "01000300000008003c001f03746167ce"]',
    '["server", "method", "basic.nack", 3, [["delivery_tag", 4611686018427387904], ["multiple", true], ["requeue", false]], "'
    '0100030000000d003c0078400000000000000001ce"]',
    '["client", "method", "connection.close", 0, [["reply_code", 320], ["reply_text", "\\u20ac"], ["class_id", 60], ["method_i'
    'd", 40]], "0100000000000e000a0032014003e282ac003c0028ce"]',
    '["server", "method", "basic.ack", 3, [["delivery_tag", 8589934592], ["multiple", true]], "0100030000000d003c005000000002'
    '0000000001ce"]',
)

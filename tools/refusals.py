"""What to do about each refusal that a user can meet: the advice of core/REFUSALS.md (tools/generate_refusals.py reads the sentences from
the sources and sets the advice of the first row that fits beside each).

A sentence for which there is no row fails `dev.py check`: who writes a new refusal says here what its reader is to do.
"""

# Reply codes of AMQP 0-9-1 (its reference, section 1.2): what closes, and what to do where no row below says more.
CONDITIONS = {
    "content-too-large": "Send a smaller message, or raise the limit that the sentence names in `[limits]` of the broker's file.",
    "connection-forced": "Connect again, after a pause.",
    "access-refused": "Have an administrator give the user the permission (configure, write or read) or the tag that is named.",
    "not-found": "Declare or bind what is named before using it; look for a misspelt name with `leveret definitions export`.",
    "resource-locked": "Use the queue from the connection that declared it exclusive, or wait until that one has gone.",
    "precondition-failed": "Declare it as it is, or delete it and declare it anew; a policy changes most settings without that.",
    "frame-error": "The client breaks the framing of section 4.2: update the client library, and look for a proxy that changes octets.",
    "syntax-error": "The client sends what AMQP 0-9-1 cannot read: update the client library.",
    "command-invalid": "The client sends a method where the protocol does not allow it: update the client library.",
    "channel-error": "The client uses a channel that is not open: open it first, and open a new one after a channel error.",
    "unexpected-frame": "The client sends frames out of their order: do not use one channel from several threads.",
    "resource-error": "A limit is reached: remove what is not needed, or raise the limit that is named in `[limits]` of the broker's file.",
    "not-allowed": "Change what is asked for as the sentence says: the operator or the protocol does not allow it.",
    "not-implemented": "This broker, or this build of it, does not have what is asked for: core/SPEC.md says what it has.",
    "internal-error": "A fault of the broker: report it with the line of the broker's log (SECURITY.md says how); what others do goes on.",
}

# (a part of the source's path, words of the sentence, what to do). The first row that fits counts; "" fits everything.
ADVICE = (
    # To clients
    ("core/", "refused for user '%s'", "Have an administrator give the user the permission (configure, write or read) or the tag that is "
     "named."),
    ("core/", "deletion of system", "Leave it: exchanges whose names begin with amq. are always there."),
    ("core/", "cannot publish to internal", "Publish to another exchange: an internal one gets messages from exchanges only."),
    ("core/users.py", "is deleted", "The user was removed: log in as another one."),
    ("core/", "to answer a management request", "Declare the queue of the answer before asking."),
    ("core/", "there is no policy", "Look for the name with `leveret definitions export`."),
    ("core/", "on channel", "The client uses a channel in a way that the protocol does not allow: update the client library."),
    ("core/amqp_0_9/field_table.py", "cannot hold", "Said to an application: give the header or argument a value that AMQP 0-9-1 has."),
    ("core/amqp_0_9/field_table.py", "a short string has", "Said to an application: take a shorter name."),
    ("core/", "in exclusive use", "End the exclusive consumer, or consume without `exclusive`: an exclusive consumer is the only one."),
    ("core/", "attempt to reuse consumer tag", "Give each consumer of a channel its own tag, or none: the broker then makes one."),
    ("core/", "content_size_max", "Send a smaller body, or raise `content_size_max` in `[limits]`."),
    ("core/", "a body of %d octets", "Send a smaller body, or raise `content_size_max` in `[limits]`."),
    ("core/", "properties of %d octets", "Send fewer or shorter headers, or raise `properties_size_max` in `[limits]`."),
    ("core/", "inequivalent arg", "Declare it with the arguments that it has, or passively, or delete it first. Policies change it in "
     "place."),
    ("core/", "contains reserved prefix", "Take another name: this prefix is the broker's own."),
    ("core/", "name is longer than", "Take a shorter name, or raise `name_size_max` in `[limits]` (255 at most: the protocol's own "
     "limit)."),
    ("core/", "the arguments are larger than", "Use fewer arguments, or raise `argument_size_max` in `[limits]`."),
    ("core/", "channels at most", "Close channels that are not used, or raise `channel_count_max` in `[limits]`."),
    ("core/", "consumers at most", "Cancel consumers that are not used, or raise `consumer_count_max` in `[limits]`."),
    ("core/", "This broker holds %d queues", "Delete queues that are not used, or raise `queue_count_max` in `[limits]`."),
    ("core/", "one connection declares", "Declare from several connections, or raise `queue_share_max` in `[limits]`."),
    ("core/", "one connection makes", "Bind from several connections, or raise `binding_share_max` in `[limits]`."),
    ("core/", "queue '%s' in vhost '%s' is the broker's own", "Leave it alone: the broker makes and removes it by itself."),
    ("core/", "the broker's own", "Leave it alone: the broker makes and removes it by itself."),
    ("core/", "operation not permitted on the default exchange", "Bind to another exchange: the default one leads to every queue by its "
     "name."),
    ("core/", "in use", "Delete without if-unused, or end its consumers and bindings first."),
    ("core/", "not empty", "Delete without if-empty, or purge it first."),
    ("core/", "of an exchange", "Take one of the types that core/SPEC.md lists."),
    ("core/", "exchange type", "Take one of the types that core/SPEC.md lists."),
    ("core/", "a stream is durable", "Declare a stream durable, and neither exclusive nor auto-delete."),
    ("core/", "cannot use no_ack", "Consume a stream with acknowledgements: they are what lets the broker send more."),
    ("core/", "prefetch count is not set", "Call basic.qos with a prefetch-count before consuming a stream."),
    ("core/", "keeps the offsets of as many consumers", "Keep the offset in the application, or give consumers that read the same the "
     "same name."),
    ("core/", "with acknowledgement on stream", "Consume a stream; basic.get with no-ack tells where it begins and ends."),
    ("core/", "user_id property set to", "Leave user-id out, or set it to the name of the user who is logged in."),
    ("core/", "invalid expiration", "Set expiration to whole milliseconds as text, as \"60000\"."),
    ("core/", "invalid message: ", "Make CC and BCC lists of texts, and shorter ones where the sentence names octets (`copy_size_max`)."),
    ("core/", "immediate=true", "Publish without immediate, as to RabbitMQ: a queue with x-message-ttl 0 does the same."),
    ("core/", "prefetch_size!=0", "Leave prefetch-size at 0 and use prefetch-count."),
    ("core/", "requeue=false", "Recover with requeue, or reject with requeue false what is to go."),
    ("core/", "cannot switch from", "Use one channel for transactions and another for confirms."),
    ("core/", "channel is not transactional", "Call tx.select first."),
    ("core/", "active=false", "Slow the consumer with basic.qos: the broker does not take channel.flow from clients, as RabbitMQ."),
    ("core/", "no previously declared queue", "Name the queue, or declare one on this channel first."),
    ("core/", "unknown delivery tag", "Acknowledge each delivery once, on the channel that it came on, and not after its time-out."),
    ("core/", "fast reply consumer does not exist", "Reply while the requester's channel is open: it or its consumer has gone."),
    ("core/", "reply consumer", "Consume from amq.rabbitmq.reply-to once a channel, with no-ack."),
    ("core/", "no room for another unfinished", "Commit or finish what was begun before publishing more, or raise `arena_size` in "
     "`[limits]`."),
    ("core/", "has not moved for", "Send a content's frames without a pause; `content_timeout_ms` is how long the broker waits for one."),
    ("core/", "which is one frame, and frame-max", "Connect with a frame-max of at least the size that is named: a content header is "
     "not split (section 4.2.6)."),
    ("core/", "a method or header frame of", "Send smaller methods and headers, or raise `receive_buffer_size` in `[limits]`."),
    ("core/", "is higher than the maximum allowed", "Let the client take what connection.tune offers, or raise the broker's limit."),
    ("core/", "is lower than the minimum allowed", "Let the client take a frame-max of 4096 or more (section 4.2.3)."),
    ("core/", "vhost %s not found", "Connect to the virtual host that the broker serves: `/`, unless its file names another."),
    ("core/", "access to vhost", "Give the user permissions in `[[user]]` or with definitions."),
    ("core/", "Login was refused", "Look at the name and the password; guest logs in from the broker's own machine only. The broker's "
     "log says the reason."),
    ("core/", "mechanism '%s'", "Take one of the mechanisms that are named."),
    ("core/", "a response of", "Take a shorter user name or password."),
    ("core/", "PLAIN response", "The client builds the PLAIN response wrongly (RFC 4616): update the client library."),
    ("core/", "cannot obtain exclusive access", "Use the queue from the connection that declared it, or declare it without exclusive."),
    ("core/", "the broker is out of memory", "Board: give it smaller limits (`leveret board`). Elsewhere: report it, memory is fixed at "
     "start."),
    ("core/", "an error of this broker", "Report it with the line of the broker's log (SECURITY.md says how)."),
    ("core/", "does not carry", "Use a build that carries this part (boards/README.md), or do without."),
    ("core/", "invalid arg", "Give the argument a value of the type and range that the sentence names; core/SPEC.md lists them."),
    ("core/", "invalid type", "Give the argument a value of another type; core/SPEC.md lists them."),
    ("core/", "invalid property", "Declare it with other properties, as the sentence says."),
    ("core/", "does not serve the argument", "Leave it out; core/SPEC.md lists the arguments that have an effect."),
    ("core/selector", "", "Mend the selector at the place that is named; core/SPEC.md has its grammar."),
    # Management, users, policies, definitions
    ("core/users.py", "users at most", "Remove users, or raise `user_count_max` in `[limits]`."),
    ("core/users.py", "configuration file", "Remove the `[[user]]` from the broker's file and start the broker again."),
    ("core/users.py", "", "Look for the name with `leveret definitions export`."),
    ("core/policies.py", "policies at most", "Remove policies, or raise `policy_count_max` in `[limits]`."),
    ("core/policies.py", "", "Mend the policy as the sentence says; nothing of it was kept."),
    ("core/pattern", "", "Write the pattern with what core/SPEC.md lists: no references back and no looks around; shorter where a size "
     "is named."),
    ("core/bridge_requests.py", "no queue", "Declare or bind what is named before using it; look for a misspelt name with `leveret "
     "definitions "
     "export`."),
    ("core/bridge_requests.py", "", "Said to a bridge by the broker that it drains: bridge and broker are of different versions, or its "
     "queue is gone."),
    ("core/portable_definitions.py", "", "Mend the item in the file; all other items are loaded."),
    ("core/management.py", "octets; this broker takes", "Ask in smaller pieces, or raise `management_size_max` in `[limits]`."),
    ("core/management.py", "", "Write the request as core/management.py lists them; a reply-to names the queue of the answer."),
    ("core/paging.py", "", "Give back `next` of the page before, unchanged."),
    ("core/password.py", "", "Write the hash that `leveret password` prints, or RabbitMQ's password_hash."),
    ("core/access.py", "", "Write each permission as a regular expression in quotes."),
    ("core/limits.py", "", "Change the limit in `[limits]` of the broker's file; `core/limits.py` has units, ranges and effects."),
    ("core/link", "", "Change the setting of the serial line; ports/SERIAL.md has them."),
    ("core/record_check.py", "", "Told of a record of the log that makes no sense: it is passed over; `leveret log check` says where "
     "it is."),
    ("core/parts.py", "", "Use a build that carries this part (boards/README.md), or do without."),
    ("bridge_marks.py", "", "Mend the template or the header of the `[[bridge]]`; ports/bridge/settings.py lists them."),
    ("packed.py", "", "Bring bridge, Spark part and broker to the same version."),
    # At the start of a command
    ("tools/serve.py", "[limits]", "Change the limit in the file, or leave it out: the broker then fits itself to the machine (`leveret "
     "limits` prints where memory goes)."),
    ("tools/serve.py", "--vhost", "Give `--vhost` together with `--definitions`, or leave it out."),
    ("tools/memory.py", "", "Write the size as 256M or 2G."),
    ("tools/serve.py", "this process may open", "Raise the number of open files as the sentence says (systemd: `LimitNOFILE=`)."),
    ("tools/serve.py", "cannot listen", "Choose a free port and an address of this machine; end the other program (`ss -ltnp` names it)."),
    ("tools/config.py", "[limits]", "Change the limit in the file; `core/limits.py` has units, ranges and effects."),
    ("tools/config.py", "cannot be read", "Look at the path and at who may read the file."),
    ("tools/config.py", "not TOML", "Mend the line that is named: texts in quotes, tables in brackets (toml.io)."),
    ("tools/config.py", "bridge", "Change the `[[bridge]]` in the file; ports/bridge/settings.py lists its settings."),
    ("tools/config.py", "", "Change the setting in the file; the head of tools/config.py shows each."),
    ("tools/data.py", "", "Change `--data` and its options, or `[data]` in the file, as the sentence says; the head of tools/data.py "
     "lists them."),
    ("tools/address.py", "", "Write the listener's URL in the form that is named."),
    ("tools/definitions.py", "", "Look at the path; the file is what `leveret definitions export` or RabbitMQ writes."),
    ("tools/manage.py", "no answer in", "The broker is overloaded, or stopped: look at its log, and ask again."),
    ("tools/manage.py", "no Leveret", "Ask a Leveret; RabbitMQ has its own tools."),
    ("tools/manage.py", "", "Look at the URL: host, port, user and password; is the broker running?"),
    ("tools/bridge", "", "Change the command line as the sentence says; `leveret bridge --help` lists the options."),
    ("tools/board", "", "Change the `[board]` table of the file, or the limits; boards/README.md lists them."),
    ("tools/flash", "", "Do as the sentence says and run the same command again: what is on the board stays right until then."),
    ("tools/attach", "", "Change the command line as the sentence says; ports/SERIAL.md shows the usual one."),
    ("tools/password.py", "", "Run the command again."),
    ("tools/perf", "", "Change the command line as the sentence says; `leveret perf --help` lists the options."),
    ("tools/readings.py", "", "Give a file whose lines are `timestamp,value` under that heading."),
    ("tools/sensors.py", "", "Name groups that there are."),
    ("tools/demo", "", "Change the command line as the sentence says."),
    ("tools/log.py", "", "Give the directory of a broker that does not run (`--data`)."),
    ("tools/pipeline", "is missing; install", "Run the command that the sentence names."),
    ("tools/pipeline", "", "Change the command line or pipeline.toml; the head of tools/pipeline_config.py lists every key."),
    ("ports/tls.py", "", "Give PEM files: the certificate with its chain, its key, the authority's certificate; the broker must be able "
     "to read them."),
    ("ports/url.py", "", "Write the URL as amqp[s]://user:password@host:port/vhost."),
    ("ports/serial_line.py", "", "Plug the device in, or give this user the right to open it (group dialout)."),
    ("ports/store", "", "Change `[board.store]` as the sentence says."),
    ("ports/bridge", "", "Change the `[[bridge]]`; ports/bridge/settings.py lists its settings with their ranges."),
    ("ports/spark/sink.py", "needs a column", "Give the frame this column, or the option that is named."),
    ("ports/spark/sink.py", "", "Change the options of the sink, or what it writes to, as the sentence says (the head of "
     "ports/spark/sink.py)."),
    ("ports/spark/", "", "Change the option that is named; the head of ports/spark/options.py lists them."),
)

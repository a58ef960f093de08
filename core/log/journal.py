"""The journal: which changes of the broker go into the log, and when a confirm may leave.

Messages that are persistent and lie in durable queues, everything in streams, settlements as ranges, and definitions. A confirm leaves
after the sync that covers its message (`durable`), and so does the reply to a method that makes, removes or commits (`promised`); a stream
shows its readers only durable messages, because they remember offsets. Each commit holds all that has happened since the one before, so
that the log always holds a state that the broker was in; nothing is committed in the middle of a verb, nor while a transaction takes effect
in turns: all others wait with it for one group.

Places: a message in a queue is (queue id, position); ids are never given twice, positions count up by one for each message of the queue.
"""

import struct

from ..memory import layout
from ..parts import part
from ..shim import elapsed, table
from . import definition_records, figures, flat_records, message_record, publish, segments, settlements
from .beyond_memory import Pager

if False:  # for the type checker alone
    from typing import Any

EACH = "each"
BATCH = "batch"
NONE = "none"

IDLE_MS = 1000  # how often the journal is run when nothing happens

RUNS = 32  # of settled places that one call gets from the engine

RANGES_MAX = 256  # settled ranges that are gathered before they are written

RETRY_MS = 100  # after a write that failed

TURNS_MAX = 4  # segments that go behind the newest after one commit

SEGMENTS_MAX = 64  # with more of them small ones are put together
SEGMENTS_FEW = 8  # with fewer none is copied while there is room

COPIES_TURN = 512  # messages that are copied after one commit; a KiB counts as one more
SNAPSHOT_TURN = 65536  # octets of definitions that are written anew after one commit

SETTLED_MS = 5  # behind a write, that settlements wait alone: the messages that its confirms let come are written with them

BIG = layout.MASK + 1

NOT_WRITTEN = BIG  # Segment.needs while its last settlement is gathered


class Journal:
    """The broker's side of a log. `mode` EACH, BATCH (after `batch_ms` or `batch_size` octets) or NONE."""

    publish = publish  # for Broker.put, which imports no log
    definitions = definition_records  # the same for topology.py

    def __init__(self, broker, writer, mode, batch_ms, batch_size):
        self.broker = broker
        self.log = writer
        self.mode = mode
        self.batch_ms = batch_ms
        self.batch_size = batch_size
        self.began_ms = broker.uptime_ms
        self.message_octets = 0  # octets of the messages logged in this run, without the log's own octets
        self.dirty_since = 0
        self.was_dirty = False
        self.queue_ids = 0  # given so far
        self.settled = settlements.Settlements()
        self.rests = False  # a write beside the broker has ended, SETTLED_MS ago at most when it was last looked
        self.rests_since = 0
        self.waiting: dict = {}  # keys: sessions that have something to write when the log is durable
        self.resumed: dict = {}  # those of the last time, while they are resumed
        self.promised = 0  # the number of the newest change that a client waits for: a batch does not delay it
        self.held_to = 0  # the number of the last change of a transaction that took effect in turns
        self.defining: dict = {}  # name -> number of the newest definition of it, of those that may not be durable yet
        self.window_ms = 0 if mode != NONE else None  # a power cut loses confirmed changes of no more than this time; None: not known
        self.failed_at = 0  # when a write failed
        self.taken = 0  # counts up, in 30 bits, with each publish that the log gets, also when it has the message already
        self.definitions_size = 0  # octets of the last snapshot
        self.grown = []  # streams with messages that are not written yet
        self.written = []  # (stream, the offset behind its last message then) of messages in the log that are not durable yet
        self.runs = table(4 * RUNS)  # see flat_records.gather_settled
        self.runs_at = broker.tables.engine.integers(self.runs)
        self.run_at = self.run_end = 0  # the runs in `runs` still to be noted
        streams, engine = part("stream.stream") is not None, broker.tables.engine
        self.stream_runs = table(
            1 + flat_records.RUN_WIDTH * flat_records.RUNS if streams or engine.limits else 1
        )  # see flat_records.write_pushed
        self.stream_runs_at = broker.tables.engine.integers(self.stream_runs)
        self.settled_in = []  # segments of which something is in `settled`
        self.turns = 0  # segments that may still be copied behind the newest, until there is a new record to write
        self.may_snapshot = False
        self.turning = 0  # the segment that is being copied, or was last
        self.goes_on = False  # copying, or writing definitions anew, has had its turn and is not done
        self.anew: "Any" = None  # the definitions that are still to be written anew
        self.anew_from = self.anew_size = 0  # the segment that this began in, and the octets so far
        self.anew_end = -1  # the number of the last of them, when it was done the last time
        self.weighed = 0  # the newest segment when it was last seen that the log is not mostly unwanted
        self.pager = Pager(self)

    # Messages

    def wants(self, message, targets):
        """True when a message has to be logged for some of the queues `targets`. In a stream it is; then in the others with it."""
        durable = self.broker.tables.is_durable(message)
        for queue in targets:
            if queue.id_in_log and (durable or queue.is_stream):
                return True
        return False

    def position(self, queue, low):
        """The whole position of a queue for its low 30 bits: the one nearest to the last logged."""
        return flat_records.whole_position(self.broker.tables.queues, queue.handle, low)

    def begin_message(self, message):
        """A message is about to be pushed that is to be logged: so that the log knows the message even if its queues' rules drop it at
        once."""
        self.broker.tables.messages[message + layout.MESSAGE_SEGMENT] = self.log.current().number

    def pushed(self, queue, low):
        """A queue in the log has a new message at the position with these low bits. Returns its place."""
        position = self.position(queue, low)
        flat_records.see_position(self.broker.tables.queues, queue.handle, position)
        if queue.is_stream and queue not in self.grown:
            self.grown.append(queue)
        return message_record.place(queue.id_in_log, position)

    def message(self, message, places, before):
        """Log a message in the places that `pushed` returned; without places MESSAGE_SEGMENT gets its value `before` again."""
        self.taken = (self.taken + 1) & layout.MASK
        if places:
            return self.write_message(message, places)
        self.broker.tables.messages[message + layout.MESSAGE_SEGMENT] = before
        return 0

    def log_pushed(self):
        """Log the messages that `ingest` has pushed since it was called, in their order. When that raises, `withdraw` is to follow."""
        publish.log_pushed(self)

    def withdraw(self):
        """Drop the messages that `ingest` has pushed and that are neither logged nor confirmed."""
        publish.withdraw_pushed(self.broker)

    def write_message(self, message, places, type_=segments.MESSAGE):
        """Append the record of a message in these places. Returns its offset among the appended records (chunk_index.SKIP)."""
        tables = self.broker.tables
        messages = tables.messages
        skip = self.append_message(type_, self.parts_of(message, places), len(places))
        self.message_octets += tables.size_of(message)
        if type_ == segments.MESSAGE:
            messages[message + layout.MESSAGE_SEGMENT] = self.log.current().number
        if messages[message + layout.MESSAGE_KIND] & layout.KIND_CHANGED:
            self.log.current().changed += 1
        return skip

    def parts_of(self, message, places):
        """The parts of a message's record."""
        tables = self.broker.tables
        head = bytearray(message_record.HEAD_SIZE)
        message_record.put_head(head, 0, tables.messages, message, len(places))
        return [head] + list(places) + [tables.octets(message, 0, tables.size_of(message))]

    def append_message(self, type_, parts, places_count):
        """Append a message with so many live places. Returns its offset among the appended records."""
        skip = self.log.gathered.size
        self.touch()
        self.log.append(type_, parts)
        segment = self.log.current()
        segment.live += places_count
        segment.written += places_count
        return skip

    def rewrite(self, message, places):
        """Append a message in memory again; `places`: (queue id, position)."""
        self.write_message(message, [message_record.place(*each) for each in places])
        self.log.counters["log_copied_forward"] += 1

    def durable(self, number):
        """True when everything up to record `number` of this run is durable (in mode NONE: the operating system has it)."""
        return self.log.synced >= number

    def last(self):
        """The number of the newest record."""
        return self.log.appended

    # Settlements

    def gather_settled(self):
        """Collect the settled entries that the hot functions have listed, and free them."""
        self.settle_runs()
        while True:
            self.run_at, self.run_end = 0, 4 * self.broker.tables.engine.gather_settled(self.runs_at, RUNS)
            full = self.run_end == 4 * RUNS
            self.settle_runs()
            if not full:
                return

    def settle_runs(self):
        """Note the runs from the engine; if that raises, the rest is noted the next time."""
        runs = self.runs
        while self.run_at < self.run_end:
            at = self.run_at
            self.settle(runs[at], runs[at + 1], runs[at + 2], runs[at + 3])
            self.run_at = at + 4

    def settle(self, handle, low, count, segment_number):
        """Note that `count` places in a row, from the one with these low bits, are settled; their segment has so many live places less."""
        queue = self.broker.queue_objects.get(handle)
        if queue is not None and queue.id_in_log:
            first = self.position(queue, low)
            self.settle_range(queue, first, first + count, count, segment_number)

    def settling(self, segment):
        """A settlement of a message in a segment is to be written: the segment stays until the settlement is durable."""
        if segment.needs != NOT_WRITTEN:
            segment.needs = NOT_WRITTEN
            self.settled_in.append(segment)

    def moved_out(self, segment):
        """A place of a segment has been written again elsewhere: the segment stays until that is durable."""
        segment.live -= 1
        if segment.needs != NOT_WRITTEN:
            segment.needs = self.log.appended
        self.log.owes_sync = True

    def note_settled(self, queue, first, end):
        """Write records that settle these positions."""
        if first >= end:
            return  # recovery would refuse the record, with all that stands in it
        if self.broker.queues.get(queue.name) is not queue:
            self.touch()  # the log knows that the queue is deleted; its messages may be freed with the next commit
            return
        self.settled.add(queue.id_in_log, first, end)
        if self.settled.count >= RANGES_MAX:
            self.write_settled()

    def settle_range(self, queue, first, end, count, segment_number):
        """Note that `count` places of a segment, the positions from `first` up to `end`, are settled.

        The count of live places is reduced last, after everything that may raise: the segment must not be freed too early.
        """
        self.note_settled(queue, first, end)
        segment = self.log.by_number.get(segment_number)
        if segment is not None:
            self.settling(segment)
            segment.live -= count

    def write_settled(self):
        """Append the settled places as compact ranges."""
        if self.settled.identities:
            self.touch()
            self.settled.write(self.log)
        for segment in self.settled_in:
            segment.needs = self.log.appended
        self.settled_in.clear()

    # Definitions

    def define(self, definition):
        """Log a definition (a dict); the client is answered when it is durable."""
        self.touch()
        self.taken = (self.taken + 1) & layout.MASK
        self.promised = self.defining[definition["name"]] = self.log.append(segments.DEFINED, (definition_records.written(definition),))
        self.log.current().defines = True

    def defined(self, name=None):
        """The number that has to be durable before a client may learn how queues and exchanges of this name (None: all) are defined."""
        return max(self.defining.values(), default=0) if name is None else self.defining.get(name, 0)

    def promise(self):
        """A client is to be answered when all changes so far are durable. Returns their number."""
        self.gather_settled()
        self.write_settled()
        self.promised = self.log.appended
        return self.promised

    def queue_made(self, queue):
        """A durable queue gets its id."""
        self.queue_ids += 1
        queue.id_in_log = self.queue_ids
        if queue.is_stream:
            queue.durable_offset = queue.next_offset()
        self.pager.watch(queue)
        queue.update_plain()
        self.define(definition_records.queue_definition(queue))  # last: a queue that cannot be made is not to come with the next start

    def kept(self, queue, name):
        """A stream keeps an offset for a consumer's name."""
        if name in queue.kept:
            self.touch()
            self.log.append(segments.KEPT, (struct.pack(">IQ", queue.id_in_log, queue.kept[name]), name.encode()))
            self.log.current().defines = True

    def queue_gone(self, queue):
        """A queue was deleted: its record may soon be another queue's, so its settled places are noted now."""
        self.gather_settled()
        if not queue.id_in_log:
            return
        if queue in self.pager.queues:
            self.pager.queues.remove(queue)
        self.settled.forget(queue.id_in_log)
        if queue in self.grown:
            self.grown.remove(queue)
        self.written = [each for each in self.written if each[0] is not queue]
        self.define({"gone": "queue", "id": queue.id_in_log, "name": queue.name})

    # Time

    def touch(self):
        """Note when the oldest record that is not yet written was appended: call it before each append."""
        if not self.was_dirty:
            self.was_dirty = True
            self.dirty_since = self.broker.now

    def run(self):
        """After a round of the broker: write and sync what the mode asks for, free what is no longer wanted, let go on who waits for it.

        With a store that can, writing goes on meanwhile: what happens until it is done is written together then.
        """
        self.gather_settled()
        if self.log.is_busy():
            if not self.log.poll():
                return
            self.ended()
            if self.log.is_busy():
                return
            self.rests = self.mode == EACH
            self.rests_since = self.broker.now
        if self.broker.commit is not None:
            return
        if not self.was_dirty and not self.settled.identities:
            self.find_room()
            return
        if self.mode == BATCH and not self.due() or self.rests and self.rest_ms():
            return
        if self.log.trouble and elapsed(self.broker.now, self.failed_at) < RETRY_MS:
            return
        self.allow_turns()
        self.rests = False
        self.commit(self.mode != NONE)
        if not self.log.is_busy():
            self.ended()

    def run_guarded(self):
        """`run`, and the pager's part. Never raises: records that could not be written are written later."""
        try:
            self.run()
        except Exception as error:  # an error of ours: told, and written later
            self.broker.guard.trouble("the log%s", "", error)
            self.was_dirty = True
        try:
            self.pager.run()
        except Exception as error:  # an error of ours: told, and read later
            self.broker.guard.trouble("reading from the log%s", "", error)

    def ended(self):
        """A background write has ended: resume the connections that wait for it, and free segments."""
        good = self.log.doubtful is None
        if not good:
            self.was_dirty = True
            self.failed_at = self.broker.now
        else:
            if self.defining:
                self.defining = {name: self.defining[name] for name in self.defining if not self.durable(self.defining[name])}
            for stream, offset in self.written:
                stream.durable_offset = offset
                self.broker.activate(stream)
            self.written.clear()
        self.free_segments()
        if good:
            self.waiting, self.resumed = self.resumed, self.waiting
            for session in self.resumed:
                self.broker.guard.resume(session.connection)
            self.resumed.clear()

    def wait_for(self, session):
        """Resume a session after the next commit."""
        self.waiting[session] = True

    def due(self):
        """True when a batch has waited long enough or is large enough."""
        if not self.was_dirty:
            self.touch()
        if self.goes_on or self.promised > self.log.synced or self.log.gathered.size >= self.batch_size or self.log.crowded:
            return True
        return not 0 <= elapsed(self.broker.now, self.dirty_since) < self.batch_ms

    def rest_ms(self):
        """Milliseconds that settlements wait yet: a publisher's next window is not to wait for a sync of theirs and then for its own.
        0: there is more than settlements, or somebody waits for the log."""
        if self.was_dirty or not self.settled.identities or self.goes_on or self.waiting or self.log.crowded:
            return 0
        left = SETTLED_MS - elapsed(self.broker.now, self.rests_since)
        self.rests = 0 < left <= SETTLED_MS
        return left if self.rests else 0

    def wait_ms(self):
        """Milliseconds after which `run` should be called again at the latest."""
        if self.log.trouble or self.log.is_busy():
            return IDLE_MS
        if self.goes_on:
            return 0
        if self.rests and self.settled.identities:
            return self.rest_ms()
        if self.mode != BATCH or not self.was_dirty:
            return IDLE_MS
        return max(0, self.batch_ms - elapsed(self.broker.now, self.dirty_since))

    def finish(self):
        """The broker ends: write and sync everything, in every mode; false when that fails."""
        if self.broker.commit is not None:
            try:
                self.broker.commit.finish(self.broker)
            except Exception as error:  # an error of ours: told, and the rest is still written
                self.broker.guard.trouble("a commit%s", "", error)
        self.log.wait()
        self.commit(self.mode != NONE)
        self.log.wait()
        return self.log.doubtful is None and (self.mode != NONE or self.log.sync())

    def figures(self):
        """Figures of writing and of the wear of the medium: a dict, see figures.py."""
        return figures.figures(self)

    def commit(self, syncs):
        """Write all changes, and sync them where the mode asks for it, or begin to; true when that is done."""
        if self.broker.commit is not None:
            return False
        self.gather_settled()
        self.write_settled()
        for stream in self.grown:
            self.written.append((stream, stream.next_offset()))
        self.grown.clear()
        self.was_dirty = False
        return self.log.commit(syncs)

    def may_hold(self):
        """True when a transaction may take effect in turns: the changes of the one before are being written or are written."""
        return self.log.begun >= self.held_to

    def held(self):
        """A transaction has taken effect in turns."""
        self.held_to = self.log.appended

    # Room

    def allow_turns(self):
        """There are new records to write: after them segments may be turned, and definitions written anew."""
        self.turns = TURNS_MAX
        self.may_snapshot = True

    def free_segments(self):
        """Remove the oldest segments as long as nothing in them is wanted, copying a few stragglers forward.

        What was copied is durable before, whatever the mode: these messages may have been for a long time. While the log cannot be
        written those go that need no writing. What takes long is done a turn's part at a time, each in another commit (`goes_on`).
        """
        writer = self.log
        self.goes_on = False
        self.pager.left = COPIES_TURN
        while len(writer.segments) > 2 or len(writer.segments) == 2 and writer.current().size and writer.lacks_room():
            oldest = writer.segments[0]
            if oldest.pinned or writer.trouble and (oldest.live > 0 or oldest.defines or oldest.needs > writer.synced):
                return
            if oldest.live > 0:
                turning = oldest.live * 4 > oldest.written and oldest.number != self.turning
                if turning and not (self.turns and self.worth_turning()):
                    break
                here = self.pager.chunks_in(oldest)
                if here is None:
                    self.goes_on = True
                    return
                if not self.pager.may_copy(here):
                    break
                if turning:
                    self.turns -= 1
                self.turning = oldest.number
                if not self.pager.copy_forward(oldest, here):
                    if self.pager.left > 0:
                        break
                    self.goes_on = True
                    return
            if oldest.defines:
                if self.anew is None and not (self.may_snapshot and self.worth_snapshot()):
                    break
                self.may_snapshot = False
                if not self.snapshot(SNAPSHOT_TURN):
                    self.goes_on = True
                    return
                oldest.needs = writer.appended
                writer.owes_sync = True
            if oldest.needs > writer.synced and not (writer.owes_sync and self.written_before(oldest)):
                return
            self.pager.reader.forget(oldest.number)
            if not writer.remove_oldest():
                return
        if writer.lacks_room():
            self.shorten_streams()
        writer.asked = 0

    def written_before(self, oldest):
        """Write the records that have to be durable before a segment is removed: true when that is done, and the segment needs no more."""
        writer = self.log
        done = self.commit(True)
        if writer.doubtful is not None:
            self.was_dirty = True
            self.failed_at = self.broker.now
        return done and oldest.needs <= writer.synced

    def find_room(self):
        """There are no records to write: if publishers wait for room in the log, free segments all the same."""
        if self.broker.held and self.log.lacks_room():
            self.allow_turns()
        elif not self.goes_on:
            return
        self.free_segments()

    def worth_turning(self):
        """True when the oldest segment is to go behind the newest: the log has no room, and a quarter of it is not wanted.

        The octets of one segment are enough when what is kept for settlements and definitions is half used up. With room three quarters
        are: so what stays for long, as in a stream, costs a third of what others write, and the log is four times what is wanted at most.
        """
        writer = self.log
        if not writer.lacks_room():
            return self.is_mostly_unwanted()
        unwanted = sum([segment.size - segment.size * segment.live // (segment.written or 1) for segment in writer.segments])
        pressing = writer.size() + writer.largest // 2 > writer.size_max
        return unwanted * 4 >= writer.octets or pressing and unwanted > writer.largest

    def is_mostly_unwanted(self):
        """True when three quarters of a log of many segments are dead; while false, it is computed once a segment."""
        writer = self.log
        if self.weighed == writer.current().number or len(writer.segments) < SEGMENTS_FEW:
            return False
        wanted = sum([segment.size * segment.live // (segment.written or 1) for segment in writer.segments])
        if wanted * 4 <= writer.octets:
            return True
        self.weighed = writer.current().number
        return False

    def worth_snapshot(self):
        """True when writing all definitions anew costs little against the size of the log, or the log has no room or too many segments."""
        writer = self.log
        return writer.octets > 3 * writer.segment_size + 4 * self.definitions_size or (
            self.anew_end != writer.appended
            and (writer.lacks_room() or len(writer.segments) > SEGMENTS_MAX + 4 * self.definitions_size // writer.segment_size)
        )

    def shorten_streams(self):
        """The log has no room: streams drop their messages in its oldest segment, and all older ones."""
        oldest = self.log.segments[0].number
        for queue in self.broker.queues.values():
            if queue.is_stream:
                queue.pages.let_go_of_segment(oldest)

    def snapshot(self, most=layout.MASK):
        """Write definitions again, `most` octets of them: true when all are, so that those in older segments are not needed.

        The rest is written when this is called again. What is changed meanwhile is logged as ever, before or behind: a definition is
        written as it is then, and one that is gone is not. After an error all of them are written anew.
        """
        anew, self.anew = self.anew, None
        if anew is None:
            anew = definition_records.all_definitions(self.broker)
            self.anew_from, self.anew_size = self.log.current().number, 0
        self.touch()
        self.log.current().defines = True
        before = self.log.gathered.size
        for definition in anew:
            self.log.append(segments.DEFINED, (definition_records.written(definition),))
            if self.log.gathered.size - before >= most:
                self.anew = anew
                self.anew_size += self.log.gathered.size - before
                self.log.anew = max(self.log.anew, self.anew_size)
                self.log.see_largest()
                return False
        self.definitions_size = self.log.anew = self.anew_size + self.log.gathered.size - before
        self.log.see_largest()
        self.anew_end = self.log.appended
        for segment in self.log.segments:
            if segment.number < self.anew_from:
                segment.defines = False
        return True

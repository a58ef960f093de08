"""What `leveret pipeline run` is asked for: the command line, or a TOML file, every key checked.

The tables below have a row for each key; tools/SETTINGS.md shows them.
A mistake is a UsageError of one sentence that names the file, the key and what is allowed; an unknown key is a mistake.
"""

import os
from urllib.parse import unquote, urlsplit

from leveret.ports.setting_rows import TABLE, TRUTH, is_texts, number, passing, rows
from leveret.ports.settings import Table

from .pipeline_session import MASTER
from .usage import UsageError, checked, read_toml

PATIENCE_S = 60  # of a run that has an end
PASSWORD_VARIABLE = "LEVERET_PIPELINE_PASSWORD"
SOURCE_OPTIONS = {
    "streams": "stream",
    "password_env": "passwordEnv",
    "password_file": "passwordFile",
    "starting_offsets": "startingOffsets",
    "fail_on_data_loss": "failOnDataLoss",
    "max_rows_per_trigger": "maxRowsPerTrigger",
    "min_partitions": "minPartitions",
}


def choice(*words):
    """One of a few words."""
    return passing(", ".join(words), lambda value: value in words, "{path}: {section}{name} is one of {words}, not {value!r}")


def section(title):
    """The kind of a section of the file."""
    return passing("a table", lambda value: isinstance(value, dict), f"{{path}}: {title} is a table, written [{title}]")


def table(text, *relations):
    """A Table of a section; its sentences say where it is: `section` is its name with a dot."""
    return Table(
        rows(text, KINDS),
        "{path}: [{title}] has no setting {name!r}; it has {names}",
        "{path}: {section}{name} must be {words}, not {value!r}",
        relations,
    )


KINDS = {
    "text": passing("a text", lambda value: isinstance(value, str)),
    "full": passing("a text that is not empty", lambda value: isinstance(value, str) and value.strip() != ""),
    "texts": passing("a text or a list of texts", lambda value: isinstance(value, str) or is_texts(value) and value != []),
    "whole": passing("a whole number from 1", lambda value: type(value) is int and value >= 1),
    "from-0": number("a number from 0", lambda value: value >= 0),
    "number": number("a number"),
    "share": number("a number above 0, at most 1", lambda value: 0 < value <= 1),
    "truth": TRUTH,
    "table": TABLE,
    "format": choice("auto", "json", "senml+json", "senml+cbor", "number"),
    "by": choice("gateway", "reading"),
}
PASSWORDS = """
password_env | full | | | the environment variable that has the password, where executors run, too
password_file | full | | | or the file
""".strip()
SECTIONS = {
    "source": table(
        f"""
url | texts | | | one or several; amqps:// with ?ca=FILE
streams | texts | | | one or several
{PASSWORDS}
starting_offsets | full | | | earliest, latest, a number, a time as 2026-01-31T12:00:00Z; for a new `out` only
fail_on_data_loss | truth | true | | what is gone is an error; false: it is passed over and counted
max_rows_per_trigger | whole | | rows | of one batch
min_partitions | whole | | partitions | ranges read in parallel
patience_s | from-0 | | s | how long a broker may be away, 0: for ever; left out: for ever, and 60 with --seconds and --available-now
files | texts | | | instead of url and streams: the same job over old files, a message a line
""",
        (
            ("url", *SOURCE_OPTIONS, "patience_s"),
            lambda values: values["files"] is None,
            "{path}: [source] has files or url and streams, not both",
        ),
    ),
    "decode": table('format | format | "auto" | | ports/spark/decode.py'),
    "doubles": table(
        """
by | by | "gateway" | | x-gateway and x-sequence; or device, metric and sequence
watermark | whole | 200000 | messages | back that a double is recognised at least
"""
    ),
    "windows": table(
        """
length_s | whole | 60 | s | of a window
lateness_s | from-0 | 86400 | s | 0: windows never close, and are computed from all of raw
"""
    ),
    "detector": table(
        """
enabled | truth | true | | look for anomalies
alarm | share | 0.5 | score | the least score of an alert
"""
    ),
    "alerts": table(
        f"""
url | full | | | one broker; without [alerts] they are a table only
{PASSWORDS}
exchange | text | | | where
routing_key | text | | | and how
""",
        ((), lambda values: None not in (values["url"], values["routing_key"]), "{path}: [alerts] needs url and routing_key"),
    ),
    "spark": table(
        """
master | full | "local[*]" | | local[N], spark://HOST:PORT, yarn or k8s://HOST:PORT
trigger_s | from-0 | 1.0 | s | between two batches
settings | table | {} | | Spark's own, with names in quotes
"""
    ),
}
DEFAULTS = {name: section.full({}) for name, section in SECTIONS.items() if name != "alerts"}
METRIC = table(
    """
unit | text | | | the one wanted
min | number | | the metric's | less is a dead letter
max | number | | the metric's | more is a dead letter
""",
    (
        (),
        lambda values: None in (values["min"], values["max"]) or values["min"] <= values["max"],
        "{path}: {section}min is above its max: nothing would be in range",
    ),
)
FILE = Table(
    rows(
        """
out | full | | | the folder of the tables
keep_days | whole | | days | raw readings and dead letters older than that are removed; left out: nothing is
metrics | metrics | {} | | [metrics.NAME], any number: what is in range
"""
        + "\n".join(f"{name} | {name} | | | below" for name in SECTIONS),
        {**KINDS, **{name: section(name) for name in ("metrics", *SECTIONS)}},
    ),
    "{path}: there is no setting {name!r}; there are {names}",
    "{path}: {name} must be {words}, not {value!r}",
)
ALERT_OPTIONS = {"routing_key": "routingkey", "password_env": "passwordenv", "password_file": "passwordfile"}


class Plan:
    """All settings; a file that leaves one out and a command line without a file mean the same job.

    `source`: options of format("amqp"), or None with `files`; `alerts`: options of the sink, or None; `lateness_s` None: windows never
    close; `patience_s`: how long a broker may be away, 0 for ever, None: for ever in a run without an end, else PATIENCE_S.
    """

    watermark: int
    master: str
    settings: dict

    def __init__(self, values):
        """`values`: {section: {row: value}}; the rows of [decode], [doubles] and [spark] are attributes."""
        self.out = self.keep_days = self.files = None
        self.source: dict | None = None
        self.alerts: dict | None = None
        self.metrics: dict = {}
        for section in ("decode", "doubles", "spark"):
            vars(self).update(values[section])
        self.window_s, self.lateness_s = values["windows"]["length_s"], values["windows"]["lateness_s"] or None
        self.detector, self.alarm = values["detector"]["enabled"], values["detector"]["alarm"]
        self.fail_on_data_loss, self.patience_s = values["source"]["fail_on_data_loss"], values["source"]["patience_s"]

    @property
    def bounded(self):
        """True when it reads files, not a stream."""
        return self.files is not None


def of_arguments(options):
    """The Plan of a command line. Raises UsageError."""
    plan = _read_plan(options.config) if options.config else Plan(DEFAULTS)
    if not options.config and options.source is None and options.stream is None and options.out is None:
        raise UsageError("--out DIR or --config FILE is needed")
    if options.config is None or options.source is not None or options.stream is not None:
        url, password = split_source(options.source or "amqp://127.0.0.1:5672")
        plan.source = dict(plan.source or {}, url=url)
        if options.stream is not None or "stream" not in plan.source:
            plan.source["stream"] = options.stream or "readings"
        if password is not None:
            os.environ[PASSWORD_VARIABLE] = password
        elif "@" in url and PASSWORD_VARIABLE not in os.environ and not {"passwordEnv", "passwordFile"} & set(plan.source):
            raise UsageError(f"--source names a user but no password: put it in the environment variable {PASSWORD_VARIABLE}")
        if PASSWORD_VARIABLE in os.environ:
            plan.source["passwordEnv"] = PASSWORD_VARIABLE
            plan.source.pop("passwordFile", None)
    plan.out = options.out or plan.out
    if plan.out is None:
        raise UsageError(f"--out DIR is needed, or out in {options.config}")
    plan.window_s = options.window or plan.window_s
    plan.watermark = options.watermark or plan.watermark
    plan.master = options.master or plan.master
    _see_what_belongs_together(plan, options)
    return plan


def _see_what_belongs_together(plan, options):
    path = options.config
    if plan.files is not None and plan.source is not None:
        raise UsageError(f"{path} reads files: --source and --stream do not go with that")
    if plan.files is None and plan.source is None:
        raise UsageError(f"{path} has no [source], and there is no --source")
    if plan.keep_days is not None and plan.lateness_s is None:
        raise UsageError(f"{path}: keep_days needs windows that close: windows.lateness_s above 0")
    if not MASTER.fullmatch(plan.master):
        raise UsageError(f"the Spark master is local[N], spark://HOST:PORT, yarn or k8s://HOST:PORT, not {plan.master!r}")


def split_source(source):
    """(URL without password, password or None). Raises UsageError."""
    try:
        parts = urlsplit(source)
        port = parts.port
    except ValueError as error:
        raise UsageError(f"--source {source!r} is not a URL: {error}") from None
    if parts.scheme not in ("amqp", "amqps") or not parts.hostname:
        raise UsageError(f"--source must be amqp[s]://[user[:password]@]host[:port][/vhost], not {source!r}")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    login = f"{parts.username}@" if parts.username else ""
    settings = "?" + parts.query if parts.query else ""
    url = f"{parts.scheme}://{login}{host}:{port or (5671 if parts.scheme == 'amqps' else 5672)}{parts.path}{settings}"
    return url, None if parts.password is None else unquote(parts.password)


def _read_plan(path):
    settings = _read(path)
    values = {
        name: checked(look.full, settings[name], path=path, title=name, section=name + ".") if name in settings else DEFAULTS[name]
        for name, look in SECTIONS.items()
        if name != "alerts" or name in settings
    }
    plan, source = Plan(values), values["source"]
    if source["files"] is not None:
        plan.files = _texts(source["files"])
    elif settings.get("source"):
        if source["url"] is None or source["streams"] is None:
            raise UsageError(f"{path}: [source] needs url and streams, or files")
        plan.source = {"url": ",".join(_texts(source["url"])), "stream": ",".join(_texts(source["streams"]))}
        for key in set(settings["source"]) & (set(SOURCE_OPTIONS) - {"streams"}):
            plan.source[SOURCE_OPTIONS[key]] = str(source[key]).lower() if key == "fail_on_data_loss" else str(source[key])
    plan.out, plan.keep_days, plan.metrics = settings.get("out"), settings.get("keep_days"), settings.get("metrics", {})
    if "alerts" in settings:
        plan.alerts = {ALERT_OPTIONS.get(key, key): value for key, value in settings["alerts"].items()}
    for name, value in plan.settings.items():
        if not isinstance(value, (str, int, float)):
            raise UsageError(
                f'{path}: spark.settings has names in quotes with texts or numbers, as "spark.driver.memory" = "2g"; {name} is {value!r}'
            )
    return plan


def _read(path):
    settings = read_toml(path, "--config {path}: {reason}")
    checked(FILE.check, settings, path=path, section="")
    for metric, rules in settings.get("metrics", {}).items():
        if not isinstance(rules, dict):
            raise UsageError(f"{path}: metrics.{metric} must be a table, not {rules!r}")
        checked(METRIC.full, rules, path=path, title=f"metrics.{metric}", section=f"metrics.{metric}.")
    return settings


def _texts(value):
    return [value] if isinstance(value, str) else value

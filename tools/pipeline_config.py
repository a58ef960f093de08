"""What `leveret pipeline run` is asked for: the command line, or a TOML file, every key checked.

    out = "/var/lib/leveret/tables"
    keep_days = 400                         # raw readings and dead letters older than that are removed; left out: nothing is
    [source]
    url = "amqp://sensors@127.0.0.1:5672"   # one, or a list; amqps:// with ?ca=FILE
    streams = ["telemetry-0", "telemetry-1"]
    password_file = "/etc/leveret/password" # or password_env; where executors run, too
    starting_offsets = "earliest"           # latest, a number, a time as 2026-01-31T12:00:00Z; for a new `out` only
    fail_on_data_loss = true
    max_rows_per_trigger = 100000
    patience_s = 0                          # how long a broker may be away before the job ends, 0: for ever; left out: for ever, and
                                            # 60 with --seconds and --available-now
    files = ["old/*.jsonl"]                 # instead of url and streams: the same job over old files, a message a line
    [decode]
    format = "auto"                         # json, senml+json, senml+cbor, number (ports/spark/decode.py)
    [metrics.temperature]                   # any number: the unit wanted, and what is in range
    unit = "Cel"
    min = -60
    max = 1800
    [doubles]
    by = "gateway"                          # x-gateway and x-sequence; "reading": device, metric and sequence
    watermark = 200000                      # messages back that a double is recognised at least
    [windows]
    length_s = 60
    lateness_s = 86400                      # 0: windows never close, and are computed from all of raw
    [detector]
    enabled = true
    alarm = 0.5                             # the least score of an alert
    [alerts]                                # also as messages; left out: as a table only
    url = "amqp://127.0.0.1:5672"
    exchange = ""
    routing_key = "alerts"
    [spark]
    master = "local[*]"
    trigger_s = 1.0
    settings = { "spark.driver.memory" = "2g" }

A mistake is a UsageError of one sentence that names the file, the key and what is allowed; an unknown key is a mistake.
"""
import math
import os
import tomllib
from urllib.parse import unquote, urlsplit

from .pipeline_session import MASTER
from .usage import UsageError

PATIENCE_S = 60  # of a run that has an end
PASSWORD_VARIABLE = "LEVERET_PIPELINE_PASSWORD"
TEXT, FULL_TEXT, WHOLE = "text", "a text that is not empty", "a whole number from 1"
NUMBER, FROM_0, SHARE = "a number", "a number from 0", "a number above 0, at most 1"
TRUTH, TEXTS, TABLE = "true or false", "a text or a list of texts", "a table"
KEYS = {
    "source": {"url": TEXTS, "streams": TEXTS, "password_env": FULL_TEXT, "password_file": FULL_TEXT, "starting_offsets": FULL_TEXT,
               "fail_on_data_loss": TRUTH, "max_rows_per_trigger": WHOLE, "min_partitions": WHOLE, "patience_s": FROM_0,
               "files": TEXTS},
    "decode": {"format": TEXT},
    "doubles": {"by": TEXT, "watermark": WHOLE},
    "windows": {"length_s": WHOLE, "lateness_s": FROM_0},
    "detector": {"enabled": TRUTH, "alarm": SHARE},
    "alerts": {"url": FULL_TEXT, "password_env": FULL_TEXT, "password_file": FULL_TEXT, "exchange": TEXT, "routing_key": TEXT},
    "spark": {"master": FULL_TEXT, "trigger_s": FROM_0, "settings": TABLE},
}
ALONE = {"out": FULL_TEXT, "keep_days": WHOLE}
METRIC_KEYS = {"unit": TEXT, "min": NUMBER, "max": NUMBER}
SOURCE_OPTIONS = {"streams": "stream", "password_env": "passwordEnv", "password_file": "passwordFile",
                  "starting_offsets": "startingOffsets", "fail_on_data_loss": "failOnDataLoss",
                  "max_rows_per_trigger": "maxRowsPerTrigger", "min_partitions": "minPartitions"}


class Plan:
    """All settings; a file that leaves one out and a command line without a file mean the same job.

    `source`: options of format("amqp"), or None with `files`; `alerts`: options of the sink, or None; `lateness_s` None: windows never
    close; `patience_s`: how long a broker may be away, 0 for ever, None: for ever in a run without an end, else PATIENCE_S.
    """

    out = keep_days = None
    source = files = alerts = None
    format, metrics, by, watermark = "auto", {}, "gateway", 200_000
    window_s, lateness_s = 60, 86400
    detector, alarm = True, 0.5
    master, trigger_s, settings = "local[*]", 1.0, {}
    patience_s = None
    fail_on_data_loss = True

    @property
    def bounded(self):
        """True when it reads files, not a stream."""
        return self.files is not None


def of_arguments(options):
    """The Plan of a command line. Raises UsageError."""
    plan = Plan()
    if options.config:
        _fill(plan, options.config)
    elif options.source is None and options.stream is None and options.out is None:
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
    for metric, rules in plan.metrics.items():
        if rules.get("min", -math.inf) > rules.get("max", math.inf):
            raise UsageError(f"{path}: metrics.{metric}.min is above its max: nothing would be in range")
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


def _fill(plan, path):
    settings = _read(path)
    source = settings.get("source", {})
    if "files" in source:
        if set(source) != {"files"}:
            raise UsageError(f"{path}: [source] has files or url and streams, not both")
        plan.files = _texts(source["files"])
    elif source:
        if "url" not in source or "streams" not in source:
            raise UsageError(f"{path}: [source] needs url and streams, or files")
        plan.source = {"url": ",".join(_texts(source["url"])), "stream": ",".join(_texts(source["streams"]))}
        for key in set(source) & (set(SOURCE_OPTIONS) - {"streams"}):
            plan.source[SOURCE_OPTIONS[key]] = str(source[key]).lower() if KEYS["source"][key] is TRUTH else str(source[key])
        plan.fail_on_data_loss = source.get("fail_on_data_loss", True)
    plan.out, plan.keep_days = settings.get("out"), settings.get("keep_days")
    plan.patience_s = source.get("patience_s")
    plan.format, plan.metrics = settings.get("decode", {}).get("format", plan.format), settings.get("metrics", {})
    doubles, windows, detector, spark = (settings.get(name, {}) for name in ("doubles", "windows", "detector", "spark"))
    plan.by, plan.watermark = doubles.get("by", plan.by), doubles.get("watermark", plan.watermark)
    plan.window_s, plan.lateness_s = windows.get("length_s", plan.window_s), windows.get("lateness_s", plan.lateness_s) or None
    plan.detector, plan.alarm = detector.get("enabled", plan.detector), detector.get("alarm", plan.alarm)
    plan.master, plan.trigger_s = spark.get("master", plan.master), spark.get("trigger_s", plan.trigger_s)
    plan.settings = spark.get("settings", {})
    if "alerts" in settings:
        plan.alerts = _alerts(path, settings["alerts"])
    _choice(path, "decode.format", plan.format, ("auto", "json", "senml+json", "senml+cbor", "number"))
    _choice(path, "doubles.by", plan.by, ("gateway", "reading"))


def _alerts(path, given):
    if "url" not in given or "routing_key" not in given:
        raise UsageError(f"{path}: [alerts] needs url and routing_key")
    names = {"routing_key": "routingkey", "password_env": "passwordenv", "password_file": "passwordfile"}
    return {names.get(key, key): value for key, value in given.items()}


def _read(path):
    try:
        with open(path, "rb") as file:
            settings = tomllib.load(file)
    except OSError as error:
        raise UsageError(f"--config {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not TOML: {error}") from None
    known = tuple(ALONE) + ("metrics",) + tuple(KEYS)
    for section, keys in settings.items():
        if section not in known:
            raise UsageError(f"{path}: there is no setting {section!r}; there are {', '.join(known)}")
        if section in ALONE:
            _check(path, section, keys, ALONE[section])
        elif not isinstance(keys, dict):
            raise UsageError(f"{path}: {section} is a table, written [{section}]")
        elif section == "metrics":
            for metric, rules in keys.items():
                _check(path, f"metrics.{metric}", rules, TABLE)
                _check_keys(path, f"metrics.{metric}", rules, METRIC_KEYS)
        else:
            _check_keys(path, section, keys, KEYS[section])
    for name, value in settings.get("spark", {}).get("settings", {}).items():
        if not isinstance(value, (str, int, float)):
            raise UsageError(f"{path}: spark.settings has names in quotes with texts or numbers, as \"spark.driver.memory\" = \"2g\"; "
                             f"{name} is {value!r}")
    return settings


def _check_keys(path, section, given, known):
    for key, value in given.items():
        if key not in known:
            raise UsageError(f"{path}: [{section}] has no setting {key!r}; it has {', '.join(known)}")
        _check(path, f"{section}.{key}", value, known[key])


def _check(path, name, value, kind):
    number = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    fits = {TEXT: isinstance(value, str), FULL_TEXT: isinstance(value, str) and value.strip() != "",
            WHOLE: number and isinstance(value, int) and value >= 1,
            NUMBER: number, FROM_0: number and value >= 0, SHARE: number and 0 < value <= 1,
            TRUTH: isinstance(value, bool), TABLE: isinstance(value, dict),
            TEXTS: isinstance(value, str) or (isinstance(value, list) and value and all(isinstance(one, str) for one in value))}
    if not fits[kind]:
        raise UsageError(f"{path}: {name} must be {kind}, not {value!r}")


def _choice(path, name, value, known):
    if value not in known:
        raise UsageError(f"{path}: {name} is one of {', '.join(known)}, not {value!r}")


def _texts(value):
    return [value] if isinstance(value, str) else value

"""Which panels of RabbitMQ's Grafana dashboards have data here: ports/http/DASHBOARDS.md is what this broker tells.

python tests/http/test_dashboards.py        writes the page anew, of a broker that it starts
"""

import os
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "interop"))

from api import Api, Served
from dashboards import PANELS
from prometheus_client.parser import text_string_to_metric_families

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "ports", "http", "DASHBOARDS.md")
HEAD = """# RabbitMQ's Grafana dashboards, and what of them has data here
A row is what one or more panels ask for: all their metrics are told (`yes`), some (`in part`), or none. Queries join everything with
`rabbitmq_identity_info`, which is there. What has no data, nothing here counts (README.md,
Metrics), or it speaks of Erlang or of a cluster. Written by `python tests/http/test_dashboards.py`; a test holds it.
"""


def told(api):
    """The names of the samples of a scrape."""
    text = api.call("GET", "/metrics")[2].decode()
    return {sample.name for family in text_string_to_metric_families(text) for sample in family.samples}


def page(names):
    """The page, for a broker that tells metrics with these names."""
    lines = [HEAD]
    for board, panels in PANELS.items():
        found = [[name in names for name in panel.split()] for panel in panels]
        lines.append(f"\n## {board}: {sum(all(each) for each in found)} of {len(panels)}\n| metrics | data |\n|---|---|\n")
        for panel, each in zip(panels, found, strict=True):
            shown = ", ".join(f"`{name}`" for name in panel.split())
            lines.append(f"| {shown} | {'yes' if all(each) else 'in part' if any(each) else ''} |\n")
    return "".join(lines)


def test_the_page_says_which_panels_have_data(api):
    with open(PAGE, encoding="utf-8") as file:
        assert file.read() == page(told(api)), "run python tests/http/test_dashboards.py"


if __name__ == "__main__":
    process = Served()
    try:
        with open(PAGE, "w", encoding="utf-8") as made:
            made.write(page(told(Api(process.http_port, "guest"))))
    finally:
        process.stop()

"""The page in a real browser: log-in, every view, wide and narrow, light and dark; a hostile name of a queue stays a text."""

import axe
import pika
import pytest
from api import Api, Served
from browser import CHROMIUM, Browser

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed: apt install chromium")

HOSTILE = "<img src=x onerror=alert(1)>\"'&"
LABELLED = (
    "[...document.querySelectorAll('button, input, select, meter')]"
    ".every((each) => each.ariaLabel || each.textContent || each.labels.length)"
)
VIEWS = ("Overview", "Queues", "Exchanges", "Connections", "Bridges", "Limits", "Log", "Users")


@pytest.fixture(scope="module")
def served():
    process = Served()
    api = Api(process.http_port, "guest")
    api.put_queue(HOSTILE)
    api.put_queue("page.plain")
    api.publish("page.plain", "<b>hej</b>")
    api.call("POST", "/api/bindings/%2F/e/amq.direct/q/page.plain", {"routing_key": "k"})
    yield process
    assert process.stop() == 0


@pytest.fixture
def browser():
    made = Browser()
    yield made
    made.close()


@pytest.mark.parametrize("width, scheme", [(1200, "light"), (360, "dark"), (1200, "dark"), (360, "light")])
def test_every_view(served, browser, width, scheme):
    browser.open(f"http://127.0.0.1:{served.http_port}/", width, scheme)
    browser.wait("document.querySelector('input[name=password]') !== null")
    browser.fill("name", "guest")
    browser.fill("password", "guest")
    browser.press("Log in")
    for view in VIEWS:
        browser.press(view)
        browser.wait(f"document.querySelector('main h2') && document.querySelector('main h2').textContent === '{view}'")
        assert browser.run("document.documentElement.scrollWidth <= document.documentElement.clientWidth"), view
        assert browser.run("document.images.length") == 0
        assert browser.run(LABELLED)
        assert axe.findings(browser) == [], view
    browser.press("Overview")
    browser.wait("document.querySelectorAll('polyline').length === 5")
    assert "No alarm" in browser.run("document.body.innerText") and browser.run("document.title") == "Overview - Leveret"
    browser.press("Queues")
    browser.wait("document.querySelector('main h2').textContent === 'Queues'")
    assert HOSTILE in browser.run("document.body.innerText")
    browser.press("Look into page.plain")
    browser.wait("document.querySelector('pre') !== null")
    assert "<b>hej</b>" in browser.run("document.querySelector('pre').textContent")
    assert [each for each in browser.errors if "401" not in str(each)] == []  # of the question who is logged in


def test_the_log_in_is_a_cookie_that_no_script_reads(served, browser):
    """It outlives a reload and nothing of it is in the page's reach; logging out ends it."""
    place = f"http://127.0.0.1:{served.http_port}/#Limits"
    browser.open(place, 1000, "light")
    browser.wait("document.querySelector('input[name=password]') !== null")
    assert browser.run("document.getElementById('told').textContent") == ""
    browser.fill("name", "guest")
    browser.fill("password", "guest")
    browser.press("Log in")
    browser.wait("document.body.innerText.includes('message_count_max')")
    assert browser.run("document.cookie") == "" and browser.run("sessionStorage.length + localStorage.length") == 0
    browser.run("window.isBefore = true")
    browser.call("Page.reload")
    browser.wait("window.isBefore === undefined && document.body !== null && document.body.innerText.includes('message_count_max')")
    asked = [f"http://127.0.0.1:{served.http_port}/api/"]
    (cookie,) = browser.call("Network.getCookies", urls=asked)["cookies"]
    assert (cookie["name"], cookie["httpOnly"], cookie["sameSite"], cookie["path"]) == ("leveret", True, "Strict", "/api")
    browser.press("Log out")
    browser.wait("document.querySelector('input[name=password]') !== null")
    assert browser.call("Network.getCookies", urls=asked)["cookies"] == []
    api = Api(served.http_port, "guest")
    assert api.call("GET", "/api/whoami", headers={"Authorization": "", "Cookie": "leveret=" + cookie["value"]})[0] == 401
    assert [each for each in browser.errors if "401" not in str(each)] == []


def declare_as_guest(browser):
    """Log in on the page of queues, and declare page.made."""
    browser.fill("name", "guest")
    browser.fill("password", "guest")
    browser.press("Log in")
    browser.wait("document.querySelectorAll('input[name=name]').length === 2")
    browser.fill("name", "page.made", 1)
    browser.press("Declare")


def test_a_virtual_host_with_another_name(browser, tmp_path):
    (tmp_path / "leveret.toml").write_text('vhost = "a/plant"')
    process = Served("--config", str(tmp_path / "leveret.toml"))
    try:
        browser.open(f"http://127.0.0.1:{process.http_port}/#Queues", 1000, "light")
        browser.wait("document.querySelector('input[name=password]') !== null")
        declare_as_guest(browser)
        browser.wait("document.body.innerText.includes('Declared page.made')")
        assert Api(process.http_port, "guest").get("/queues/a%2Fplant/page.made")["durable"]
    finally:
        assert process.stop() == 0


def test_a_queue_and_a_connection_come_and_go(served, browser):
    connection = pika.BlockingConnection(pika.URLParameters(served.url))
    browser.open(f"http://127.0.0.1:{served.http_port}/#Queues", 1000, "light")
    browser.wait("document.querySelector('input[name=password]') !== null")
    browser.fill("name", "guest")
    browser.fill("password", "wrong")
    browser.press("Log in")
    browser.wait("document.getElementById('told').textContent === 'Log in: Login failed'")
    declare_as_guest(browser)
    browser.wait("document.body.innerText.includes('page.made')")
    assert Api(served.http_port, "guest").get("/queues/%2F/page.made")["durable"]
    api = Api(served.http_port, "guest")
    api.put_queue("page.other")
    api.publish("page.other", "x")
    browser.fill("from", "page.other")
    browser.fill("to", "page.made")
    browser.press("Move")
    browser.wait("document.getElementById('told').textContent === 'Moved 1 messages, 0 are left'")
    assert api.get("/queues/%2F/page.made")["messages"] == 1
    api.do("DELETE", "/queues/%2F/page.other")
    browser.press("Delete page.made")
    browser.wait("[...document.querySelectorAll('td')].every((each) => each.textContent !== 'page.made')")
    browser.press("Connections")
    browser.wait("document.body.innerText.includes('1 connection')")
    (row,) = Api(served.http_port, "guest").get("/connections")
    browser.press("Close " + row["name"])
    browser.wait("document.body.innerText.includes('0 connections')")
    with pytest.raises(pika.exceptions.AMQPError):
        connection.process_data_events(10)
        connection.channel()
    assert [each for each in browser.errors if "401" not in str(each)] == []


def test_an_exchange_a_binding_a_user_and_a_policy_are_made_and_removed(served, browser):
    api = Api(served.http_port, "guest")
    browser.open(f"http://127.0.0.1:{served.http_port}/#Exchanges", 1000, "light")
    browser.wait("document.querySelector('input[name=password]') !== null")
    browser.fill("name", "guest")
    browser.fill("password", "guest")
    browser.press("Log in")
    browser.wait("document.querySelector('input[name=source]') !== null")
    browser.fill("name", "page.made")
    browser.press("Declare")
    browser.wait("document.body.innerText.includes('Declared page.made')")
    browser.fill("source", "page.made")
    browser.fill("queue", "page.plain")
    browser.fill("key", "k")
    browser.press("Bind")
    browser.wait("document.body.innerText.includes('Bound page.plain to page.made')")
    browser.wait("[...document.querySelectorAll('svg text')].some((each) => each.textContent.startsWith('page.made'))")
    assert [row["routing_key"] for row in api.get("/exchanges/%2F/page.made/bindings/source")] == ["k"]
    browser.press("Unbind page.plain from page.made, key k")
    browser.wait("document.body.innerText.includes('key k: done')")
    assert api.get("/exchanges/%2F/page.made/bindings/source") == []
    browser.press("Delete page.made")
    browser.wait("document.body.innerText.includes('Delete page.made: done')")
    assert api.call("GET", "/api/exchanges/%2F/page.made")[0] == 404
    browser.press("Users")
    browser.wait("document.querySelector('input[name=policy]') !== null")
    for name, value in (("name", "mia"), ("password", "x" * 12), ("write", "^readings$")):
        browser.fill(name, value)
    browser.press("Save")
    browser.wait("document.body.innerText.includes('Saved mia')")
    assert api.get("/permissions/%2F/mia")["write"] == "^readings$"
    browser.press("Delete mia")
    browser.wait("document.body.innerText.includes('Delete mia: done')")
    assert api.call("GET", "/api/users/mia")[0] == 404
    for name, value in (("policy", "short"), ("pattern", "^page"), ("value", "100")):
        browser.fill(name, value)
    browser.press("Set policy")
    browser.wait("document.body.innerText.includes('Set short')")
    assert api.get("/policies/%2F/short")["definition"] == {"max-length": 100}
    browser.press("Delete the policy short")
    browser.wait("document.body.innerText.includes('Delete the policy short: done')")
    assert api.get("/policies") == [] and [each for each in browser.errors if "401" not in str(each)] == []

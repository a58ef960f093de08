"""The page without a mouse: each view's controls are reached by the key Tab, in the order of the page, each is seen to have the focus, and
does its work by Enter or Space."""

import pytest
from api import Api, Served, queue
from browser import CHROMIUM, Browser

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed: apt install chromium")

VIEWS = ("Overview", "Queues", "Exchanges", "Connections", "Bridges", "Limits", "Log", "Users")
CONTROLS = "[...document.querySelectorAll('a[href], button, input, select, textarea, summary')].filter((each) => each.checkVisibility())"
KEYS = {"Tab": 9, "Enter": 13, " ": 32}
# What has the focus: its place among the controls, its label, and whether it shows that it has it.
FOCUSED = (
    "(() => { const each = document.activeElement, style = getComputedStyle(each);"
    " const label = each.labels && each.labels.length ? each.labels[0].firstChild.textContent.trim() : each.textContent;"
    f" return [{CONTROLS}.indexOf(each), each.ariaLabel || label,"
    " style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0 || style.boxShadow !== 'none']; })()"
)


@pytest.fixture(scope="module")
def served():
    process = Served()
    api = Api(process.http_port, "guest")
    api.put_queue("keys.q")
    api.call("POST", "/api/bindings/%2F/e/amq.direct/q/keys.q", {"routing_key": "k"})
    yield process
    assert process.stop() == 0


@pytest.fixture
def browser():
    made = Browser()
    yield made
    made.close()


def press(browser, key):
    """A key of the keyboard goes down and up."""
    text = {"Enter": "\r", " ": " "}.get(key, key if len(key) == 1 else "")
    about = {"key": key, "code": key, "windowsVirtualKeyCode": KEYS.get(key, 0), **({"text": text} if text else {})}
    browser.call("Input.dispatchKeyEvent", type="keyDown", **about)
    browser.call("Input.dispatchKeyEvent", type="keyUp", **about)


def type_text(browser, text):
    """Letters, into what has the focus."""
    for letter in text:
        press(browser, letter)


def go_to(browser, label, most=200):
    """Press Tab until the control with this label has the focus."""
    for _ in range(most):
        if browser.run(FOCUSED)[1] == label:
            return
        press(browser, "Tab")
    raise AssertionError((label, browser.run(CONTROLS + ".map((each) => each.ariaLabel || each.name || each.textContent)")))


def log_in(browser, served):
    """With the keyboard alone."""
    browser.open(f"http://127.0.0.1:{served.http_port}/", 1000, "light")
    browser.wait("document.querySelector('input[name=password]') !== null")
    browser.wait("document.hasFocus()")
    while browser.run("document.activeElement.name") != "name":
        press(browser, "Tab")
    type_text(browser, "guest")
    press(browser, "Tab")
    type_text(browser, "guest")
    press(browser, "Enter")
    browser.wait("document.querySelector('main h2') && document.querySelector('main h2').textContent === 'Overview'")


def test_every_control_of_every_view_is_reached_and_seen(served, browser):
    log_in(browser, served)
    for view in VIEWS:
        go_to(browser, view)
        press(browser, "Enter")
        browser.wait(f"document.querySelector('main h2').textContent === '{view}'")
        count = browser.run(CONTROLS + ".length")
        browser.run("document.activeElement.blur()")
        reached = set()
        for _ in range(3 * count + 10):
            press(browser, "Tab")
            place, label, is_seen = browser.run(FOCUSED)
            if place >= 0:
                assert is_seen, (view, label)
                reached.add(place)
            if len(reached) >= browser.run(CONTROLS + ".length"):
                break
        missing = browser.run(CONTROLS + ".map((each) => each.ariaLabel || each.name || each.textContent)")
        assert len(reached) >= len(missing), (view, [label for at, label in enumerate(missing) if at not in reached])


def test_a_queue_is_declared_published_to_and_deleted_without_a_mouse(served, browser):
    """Enter in a field sends its form; Space presses a button."""
    log_in(browser, served)
    go_to(browser, "Queues")
    press(browser, "Enter")
    browser.wait("document.querySelector('main h2').textContent === 'Queues'")
    browser.wait("document.querySelector('input[name=name]') !== null")
    go_to(browser, "Name")
    type_text(browser, "keys.made")
    press(browser, "Enter")
    browser.wait("document.body.innerText.includes('Declared keys.made')")
    api = Api(served.http_port, "guest")
    assert api.get(queue("keys.made"))["durable"]
    go_to(browser, "Delete keys.made")
    press(browser, " ")
    browser.wait("document.body.innerText.includes('Delete keys.made: done')")
    assert api.get(queue("keys.made"), 404)
    assert [each for each in browser.errors if "401" not in str(each)] == []

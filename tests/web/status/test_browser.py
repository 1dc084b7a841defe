"""The page in a real browser: light and dark, on a phone, without JavaScript, kept current, hostile names and all."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import Any

import pytest
from aiohttp import web
from aiohttp.typedefs import Handler

from exporter.fairness.audit import CAPPED, UNCAPPED
from exporter.fairness.events import Event
from exporter.fairness.values import WorkspaceUsage
from exporter.queue.values import WorkspaceWait
from exporter.snapshot import CollectorStatus, Snapshot
from exporter.web.security.access import Access
from exporter.web.security.web_config import parse_web_config
from exporter.web.status import html
from exporter.web.status.past import Past
from exporter.web.status.values import Sparkline
from tests.metrics.scenes import NOISY, NOW, QUIET, fairness, queue, snapshot, tag
from tests.web.certificates import PASSWORD, USERS
from tests.web.serving import Service, listening
from tests.web.status.browser import Browser, BrowserError, Tab, connected, launched
from tests.web.status.scenes import ENABLED

pytestmark = pytest.mark.needs("chromium")

LINE = Sparkline(((0.0, 24.0), (60.0, 0.0), (120.0, 12.0)), 9.0, NOW - 1_800, 4.0)
LONG = "workspace" + "-" + "x" * 245
ATTACK = "<img src=x onerror='window.pwned=1'><script>window.pwned=1</script>\u202egnp"
# The page's own timers, twenty times as fast: five seconds between two updates become a quarter.
FASTER = "const given = setTimeout; window.setTimeout = (call, ms) => given(call, ms / 20);"
HIDDEN = "Object.defineProperty(document, 'hidden', {get: () => window.away === true});"
TURNED = "document.dispatchEvent(new Event('visibilitychange'))"
TEXT = "document.body.innerText.replaceAll('\\u00a0', ' ')"

# Each element with a text of its own, with the contrast of the text against the nearest ground below it.
CONTRASTS = """
(() => {
  const parts = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const luminance = (colour) => {
    const [r, g, b] = parts(colour).slice(0, 3).map((c) => c / 255).map(
      (c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (element) => {
    for (let each = element; each; each = each.parentElement) {
      const [, , , alpha = 1] = parts(getComputedStyle(each).backgroundColor);
      if (alpha > 0) return getComputedStyle(each).backgroundColor;
    }
  };
  const texts = [...document.body.querySelectorAll('*')].filter((element) => element.checkVisibility()
    && [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim()));
  return texts.map((element) => {
    const style = getComputedStyle(element);
    const ink = element instanceof SVGElement ? style.fill : style.color;
    const [high, low] = [luminance(ink), luminance(ground(element))].sort((a, b) => b - a);
    return [`${element.tagName} ${element.textContent.slice(0, 30)}`, (high + 0.05) / (low + 0.05)];
  });
})()
"""

# Pairs of cells of one row that lie upon each other, by the boxes of what is in them.
OVERLAPS = """
(() => {
  const box = (cell) => {
    const edges = [...cell.childNodes].map((node) => {
      const range = document.createRange();
      range.selectNode(node);
      return (node instanceof Element ? node : range).getBoundingClientRect();
    });
    return {
      cell: cell.textContent.slice(0, 30),
      left: Math.min(...edges.map((edge) => edge.left)) + 1,
      right: Math.max(...edges.map((edge) => edge.right)) - 1,
      top: Math.min(...edges.map((edge) => edge.top)) + 1,
      bottom: Math.max(...edges.map((edge) => edge.bottom)) - 1,
    };
  };
  const meet = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
  return [...document.querySelectorAll('tbody tr')].flatMap((row) => {
    const boxes = [...row.children].filter((cell) => cell.checkVisibility()).map(box);
    return boxes.flatMap((a, place) => boxes.slice(place + 1).filter((b) => meet(a, b)).map((b) => [a.cell, b.cell]));
  });
})()
"""


def held(seconds: int) -> list[WorkspaceUsage]:
    """What the workspaces with the strange names hold."""
    return [WorkspaceUsage(name, seconds * 1_000_000, NOISY.service) for name in (LONG, ATTACK)]


def capping() -> Snapshot:
    """Somebody is capped, a tag has no worker, and something is wrong."""
    usage = [NOISY, QUIET, *held(1)]
    tags = [tag("bun", 1_402, running=12), tag("gpu", 7, workers=0), tag("idle"), tag(LONG, 3), tag(ATTACK, 4)]
    waits = [WorkspaceWait("quiet", 7, NOW - 90), WorkspaceWait(ATTACK, 2, NOW - 30)]
    state = snapshot(fairness(usage, settings=ENABLED), queue(tags, workspaces=waits, other_tags=1_234))
    broken = CollectorStatus(
        "retention", False, NOW - 90, f"lacks privileges: GRANT DELETE ON metrics TO {ATTACK}", "x"
    )
    return replace(state, collectors=(*state.collectors[:2], broken))


class Scene(Service):
    """The served state, how often the page was asked for, and whether the server asks for credentials."""

    def __init__(self) -> None:
        super().__init__(read=self.known_past)
        self.board.current = capping()
        self.pages = 0
        self.locked = False

    async def known_past(self, *_: Any) -> Past:
        """Lines of two tags, and transitions."""
        events = (Event(NOW - 42, CAPPED, "noisy", None), Event(NOW - 99_000, UNCAPPED, ATTACK, None))
        return Past({"bun": LINE, "gpu": LINE}, (*events, Event(NOW - 200_000, CAPPED, LONG, None)))

    def app(self) -> web.Application:
        """The application, which counts pages."""
        app = super().app()
        app.middlewares.insert(0, self.count)
        return app

    @web.middleware
    async def count(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Count, and refuse while locked."""
        self.pages += request.path == "/"
        return web.Response(status=401) if self.locked else await handler(request)


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """One browser for all tests here; each has a profile of its own in it."""
    with launched(tmp_path_factory.mktemp("chromium")) as address:
        yield address


@pytest.fixture
async def browser(endpoint: str) -> AsyncIterator[Browser]:
    async with connected(endpoint) as connection:
        yield connection


@pytest.fixture
def scene() -> Scene:
    return Scene()


@pytest.fixture
async def url(scene: Scene) -> AsyncIterator[str]:
    async with listening(scene.app()) as listener:
        yield f"{listener.urls[0]}/"


@pytest.fixture
async def tab(browser: Browser) -> AsyncIterator[Tab]:
    async with browser.tab() as tab:
        await tab.resize(1_100, 900)
        yield tab


async def test_it_renders_with_stylesheet_and_drawings_and_nothing_to_complain_about(tab: Tab, url: str) -> None:
    await tab.open(url)
    text = await tab.evaluate(TEXT)
    assert "noisy holds 72 % of the workers and is capped at 50 %" in text
    assert await tab.evaluate("document.title") == "capping · Windmill exporter"
    assert await tab.evaluate("parseFloat(getComputedStyle(document.querySelector('h1')).fontSize)") > 20
    [capped, other, *_] = await tab.evaluate(
        "[...document.querySelectorAll('rect:not(.track)')].map(bar => bar.getBoundingClientRect().width)"
    )
    assert capped > 2 * other > 0
    [bar, line] = await tab.evaluate(
        "['.bar[role=img]', '.cap'].map(name => document.querySelector(name).getBoundingClientRect())"
        ".map(box => [box.left, box.right])"
    )
    assert line[0] == pytest.approx((bar[0] + bar[1]) / 2, abs=1)
    assert await tab.evaluate("document.querySelector('.stroke').getTotalLength()") > 100
    assert tab.complaints == []


async def test_hostile_names_are_text_and_never_run(tab: Tab, url: str) -> None:
    await tab.open(url)
    shown = ATTACK.replace("\u202e", "\\u202e")
    text = await tab.evaluate("document.querySelector('main').textContent")
    assert text.count(shown) == 4
    assert await tab.evaluate("window.pwned") is None
    assert await tab.evaluate("document.querySelectorAll('main img, main script').length") == 0
    assert tab.complaints == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_every_text_has_contrast_in_light_and_dark(tab: Tab, url: str, scheme: str, scene: Scene) -> None:
    await tab.prefer(scheme)
    await tab.open(url)
    await tab.evaluate("document.querySelector('details').open = true")
    contrasts = await tab.evaluate(CONTRASTS)
    assert len(contrasts) > 80
    assert [each for each in contrasts if each[1] < 4.5] == []


async def test_light_and_dark_follow_the_reader_s_wish(tab: Tab, url: str) -> None:
    grounds = {}
    for scheme in ("light", "dark"):
        await tab.prefer(scheme)
        await tab.open(url)
        grounds[scheme] = await tab.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    assert sum(map(int, grounds["light"][4:-1].split(","))) > 600
    assert sum(map(int, grounds["dark"][4:-1].split(","))) < 150


@pytest.mark.parametrize("width", [320, 360, 700, 1_100, 2_000])
async def test_nothing_is_wider_than_the_window(tab: Tab, url: str, width: int) -> None:
    await tab.resize(width, 700, mobile=width < 500)
    await tab.open(url)
    assert await tab.evaluate("document.documentElement.scrollWidth") == width
    beyond = "[...document.querySelectorAll('main *')].filter(e => e.getBoundingClientRect().right > innerWidth + 0.5)"
    assert await tab.evaluate(f"{beyond}.map(e => e.outerHTML.slice(0, 80))") == []


async def test_names_and_numbers_do_not_overlap_on_a_phone(tab: Tab, url: str) -> None:
    await tab.resize(360, 700, mobile=True)
    await tab.open(url)
    assert await tab.evaluate(OVERLAPS) == []


async def test_a_screen_reader_finds_landmarks_tables_and_pictures_on_a_phone_too(tab: Tab, url: str) -> None:
    await tab.resize(360, 700, mobile=True)
    await tab.open(url)
    nodes = (await tab.send("Accessibility.getFullAXTree"))["nodes"]
    found = [
        (node["role"]["value"], node.get("name", {}).get("value", "").replace("\u00a0", " "))
        for node in nodes
        if not node["ignored"]
    ]
    roles = [role for role, _ in found]
    for landmark in ("banner", "main", "contentinfo", "navigation"):
        assert roles.count(landmark) == 1, landmark
    assert roles.count("table") == 4
    assert roles.count("rowheader") >= 10
    assert {"Who holds the workers", "What waits", "Last transitions", "Collectors", "What is wrong"} <= {
        name for role, name in found if role == "heading"
    }
    assert ("image", "72 %, above the cap of 50 %") in found
    assert ("image", "Jobs waiting in the last hour: 9 at the most (07:30 UTC), 4 at last") in found


async def test_the_keyboard_reaches_everything_and_shows_where_it_is(tab: Tab, url: str) -> None:
    await tab.open(url)
    reached = []
    for _ in range(5):
        await tab.press("Tab", 9)
        reached.append(await tab.evaluate("document.activeElement.textContent.replaceAll('\\u00a0', ' ')"))
        assert await tab.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    assert reached == ["1 thing is wrong", "What the words mean", "Metrics", "Health", "Readiness"]


async def test_it_works_without_javascript_and_reloads_itself(
    browser: Browser, url: str, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(html, "NO_SCRIPT_REFRESH_SECONDS", 1)
    async with browser.tab(javascript=False) as tab:
        await tab.open(url)
        assert "noisy holds 72 % of the workers" in await tab.evaluate(TEXT)
        scene.board.current = Snapshot()
        await tab.until(f"{TEXT}.includes('Nothing is known yet')")
        assert tab.complaints == []
    assert scene.pages >= 2


async def test_it_keeps_itself_current_and_leaves_the_reader_where_he_is(tab: Tab, url: str, scene: Scene) -> None:
    await tab.before_each_page(FASTER)
    await tab.resize(1_100, 500)
    await tab.open(url)
    await tab.evaluate(
        """
        document.querySelector('details').open = true;
        document.querySelector('nav a').focus();
        scrollTo(0, 300);
        window.kept = document.querySelector('.tags tbody th .name');
        getSelection().selectAllChildren(document.querySelector('.shares tbody .ratio'));
        """
    )
    scene.board.current = replace(capping(), fairness=fairness([NOISY, *held(60)], settings=ENABLED))
    await tab.until(f"{TEXT}.includes('noisy holds 75 % of the workers')")
    assert await tab.evaluate("document.querySelector('details').open")
    assert await tab.evaluate("document.activeElement.textContent") == "Metrics"
    assert await tab.evaluate("scrollY") == pytest.approx(300, abs=5)
    assert await tab.evaluate("getSelection().toString()") == "75\u00a0%"
    assert await tab.evaluate("window.kept.isConnected"), "what did not change is the same element"
    scene.board.current = Snapshot()
    await tab.until("document.title.startsWith('failed')")
    assert await tab.evaluate("document.querySelectorAll('.shares tbody tr').length") == 0
    assert await tab.evaluate("document.querySelector('#update').hidden")
    assert scene.pages >= 3
    assert tab.complaints == []


async def test_it_asks_for_credentials_and_then_loads_and_updates_with_them(
    browser: Browser, tab: Tab, scene: Scene
) -> None:
    access = Access()
    access.apply(parse_web_config("web.yml", USERS.encode()), public_metrics=False)
    scene.access = access
    await tab.before_each_page(FASTER)
    async with listening(scene.app()) as listener:
        async with browser.tab() as stranger:
            with pytest.raises(BrowserError, match="INVALID_AUTH_CREDENTIALS"):
                await stranger.open(f"{listener.urls[0]}/")
        # The address holds the password, as after a click on such a link: the page may not fetch that address again.
        await tab.open(f"{listener.urls[0]}/".replace("//", f"//alice:{PASSWORD}@", 1))
        assert "noisy holds 72 % of the workers" in await tab.evaluate(TEXT)
        assert await tab.evaluate("parseFloat(getComputedStyle(document.querySelector('h1')).fontSize)") > 20
        scene.board.current = Snapshot()
        await tab.until(f"{TEXT}.includes('Nothing is known yet')")
        assert tab.complaints == []
    access.close()


async def test_it_rests_while_nobody_sees_it_and_catches_up_at_once(tab: Tab, url: str, scene: Scene) -> None:
    await tab.before_each_page(FASTER + HIDDEN)
    await tab.open(url)
    await tab.evaluate(f"window.away = true; {TURNED}")
    before = scene.pages
    await tab.evaluate("new Promise(done => given(done, 800))")
    assert scene.pages <= before + 1, "one may have been under way"
    scene.board.current = Snapshot()
    await tab.evaluate(f"window.away = false; {TURNED}")
    await tab.until(f"{TEXT}.includes('Nothing is known yet')")


async def test_it_says_since_when_it_could_not_update_and_why_and_forgets_it_afterwards(tab: Tab, scene: Scene) -> None:
    await tab.before_each_page(FASTER)
    async with listening(scene.app()) as listener:
        address = listener.urls[0].removeprefix("http://")
        await tab.open(f"http://{address}/")
    notice = await tab.until("!document.querySelector('#update').hidden && document.querySelector('#update').innerText")
    assert "the exporter does not answer. Everything below is as it was then." in notice
    assert "UTC" in notice
    assert "s ago)" in notice
    assert "noisy holds 72 %" in await tab.evaluate(TEXT)
    scene.locked = True
    async with listening(scene.app(), address):
        await tab.until("document.querySelector('#update').innerText.includes('asks for credentials; reload the page')")
        scene.locked = False
        await tab.until("document.querySelector('#update').hidden")

"""Pure: the page as HTML: the state in words, then its sections in the order of importance."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType

from exporter import __version__
from exporter.fairness.values import FairnessMode, FairnessState
from exporter.web.status.markup import Html, element, joined, sentence
from exporter.web.status.sections import collectors_section, moment, shares_section, tags_section, transitions_section
from exporter.web.status.values import Moment, Page
from exporter.web.status.wording import counted

NO_SCRIPT_REFRESH_SECONDS = 10

# A shape beside the colour and the word: the state must not depend on seeing colours.
STATES: Mapping[FairnessState, tuple[str, str]] = MappingProxyType(
    {
        FairnessState.OFF: ("quiet", "○"),
        FairnessState.DISABLED: ("quiet", "○"),
        FairnessState.IDLE: ("quiet", "○"),
        FairnessState.FAIR: ("good", "●"),
        FairnessState.CAPPING: ("capped", "◆"),
        FairnessState.STALE: ("bad", "▲"),
        FairnessState.FAILED: ("bad", "▲"),
    }
)
LINKS = (
    ("/metrics", "Metrics"),
    ("/-/healthy", "Health"),
    ("/-/ready", "Readiness"),
    ("/api/fairness", "Fairness as JSON"),
    ("/api/queue/current", "Queue as JSON"),
    ("/api/openapi.json", "API description"),
)
WORDS = (
    ("worker-second", "One second that one job really held one worker."),
    ("share", "A workspace's worker-seconds in the window, out of everybody's."),
    (
        "capped",
        "A workspace whose share reached the cap. Dispatchers then take its jobs with the admission probability only.",
    ),
    (
        "admission probability",
        "How likely a pull may take a capped workspace's job, so that its share settles 5 points above the cap.",
    ),
    ("waiting", "Jobs that are due for over 3 s and not running."),
    ("head delay", "How long the job that the next pull would take has been due. Other jobs may have waited longer."),
    ("workers", "Workers that list the tag and reported within the last minute."),
)


def document(page: Page, prefix: str, paths: Collection[str]) -> str:
    """The whole document. `prefix` stands before every path; of the links those to `paths` are shown."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", f"{page.state.value} · Windmill exporter"),
        element("link", rel="icon", type="image/svg+xml", href=f"{prefix}/assets/icon.svg"),
        element("link", rel="stylesheet", href=f"{prefix}/assets/status.css"),
        element("script", src=f"{prefix}/assets/status.js", defer=True),
        element("noscript", element("meta", http_equiv="refresh", content=NO_SCRIPT_REFRESH_SECONDS)),
    )
    body = element(
        "body",
        element("header", element("p", "Windmill exporter", class_="brand")),
        element("p", role="status", id="update", hidden=True),
        _main(page),
        _footer(prefix, paths),
    )
    return "<!DOCTYPE html>\n" + element("html", head, body, lang="en")


def _main(page: Page) -> Html:
    return element(
        "main",
        _now(page),
        shares_section(page.shares, page.without_shares, page.edition_note),
        tags_section(page.tags, page.without_tags),
        transitions_section(page.transitions),
        collectors_section(page.collectors, page.troubles),
    )


def _now(page: Page) -> Html:
    colour, shape = STATES[page.state]
    wrong = len(page.troubles)
    link = element("a", counted(wrong, "thing is wrong", "things are wrong"), href="#wrong") if wrong else ""
    return element(
        "section",
        element(
            "p",
            element(
                "span", element("span", shape, aria_hidden="true"), f" {page.state.value}", class_=f"badge {colour}"
            ),
            element("span", f"{page.mode.value} mode", class_="badge quiet")
            if page.mode is not FairnessMode.OFF
            else "",
            element("span", link, class_="attention"),
            element("span", "as of ", moment(Moment(page.at, 0.0), exact=True), class_="as-of"),
            class_="badges",
        ),
        element("h1", sentence(page.headline)),
        element("div", *(element("p", sentence(remark)) for remark in page.remarks), class_="remarks"),
        class_="now",
        aria_label="The state now",
    )


def _footer(prefix: str, paths: Collection[str]) -> Html:
    links = [element("li", element("a", text, href=prefix + path)) for path, text in LINKS if path in paths]
    words = [joined(element("dt", word), element("dd", meaning)) for word, meaning in WORDS]
    return element(
        "footer",
        element("details", element("summary", "What the words mean"), element("dl", *words), id="words"),
        element(
            "div",
            element("p", f"windmill-exporter {__version__}"),
            element("nav", element("ul", *links), aria_label="Other pages"),
            class_="last",
        ),
    )

"""Pure: the sections of the page as HTML.

Tables carry their ARIA roles in so many words: on a narrow screen the stylesheet lays their rows out as blocks, which
would otherwise take the table's meaning from a screen reader.
"""

from __future__ import annotations

from collections.abc import Sequence

from exporter.web.status.lines import HEIGHT, WIDTH
from exporter.web.status.markup import Child, Html, element, joined, name
from exporter.web.status.values import (
    CollectorRow,
    Health,
    Mark,
    Moment,
    ShareRow,
    Shares,
    Sparkline,
    TagRow,
    Tags,
    Transition,
    Trouble,
)
from exporter.web.status.wording import ago, clock, count, counted, duration, percent, seconds_of_work, utc

NOTHING = "\N{EN DASH}"
BAR_HEIGHT = 26
LINE_MARGIN = 2


def moment(when: Moment, *, exact: bool = False) -> Html:
    """A time of day, with the whole date for programs and on hovering."""
    at = utc(when.at)
    text = clock(when.at, when.age_seconds, exact=exact)
    return element("time", text, datetime=f"{at:%Y-%m-%dT%H:%M:%SZ}", title=f"{at:%Y-%m-%d %H:%M:%S} UTC")


def shares_section(shares: Shares | None, without: str, note: str) -> Html:
    """Who holds the workers."""
    noted = element("p", note, class_="note") if note else ""
    if shares is None:
        return _section("shares", "Who holds the workers", element("p", without, class_="empty"), noted)
    total = seconds_of_work(shares.total_worker_seconds)
    caption = (
        f"{total} worker-seconds in the last {duration(shares.window_seconds)}, read {ago(shares.read.age_seconds)}. "
        f"The cap of {percent(shares.cap)} (dashed) counts from {count(shares.floor_worker_seconds)} worker-seconds on."
    )
    head = ("Workspace", _cap_label(shares.cap), "Worker-seconds", "Waiting", "Longest wait")
    rows = [_share_row(row, shares.cap) for row in shares.rows]
    if not rows:
        rows = [_row(_cell("No job held a worker.", class_="empty", colspan=5))]
    rest = ""
    if shares.other_workspaces:
        others = counted(shares.other_workspaces, "more workspace holds", "more workspaces hold")
        rest = element("p", f"and {others} {percent(shares.other_share)}", class_="rest")
    return _section("shares", "Who holds the workers", _table(caption, head, rows), rest, noted)


def tags_section(tags: Tags | None, without: str) -> Html:
    """What waits."""
    if tags is None:
        return _section("tags", "What waits", element("p", without, class_="empty"))
    caption = (
        f"By tag, read {ago(tags.read.age_seconds)}; tags that no worker takes first. The line is of jobs waiting."
    )
    head = ("Tag", "Waiting", "Head delay", "Running", "Workers", "Last hour")
    rows = [_tag_row(row, known=tags.has_lines) for row in tags.rows]
    if not rows:
        rows = [_row(_cell("No job waits and none runs.", class_="empty", colspan=6))]
    rest = ""
    if tags.other_tags:
        others = counted(tags.other_tags, "more tag", "more tags")
        rest = element(
            "p",
            f"and {others}: {count(tags.other_waiting)} waiting, {count(tags.other_running)} running",
            class_="rest",
        )
    return _section("tags", "What waits", _table(caption, head, rows), rest)


def transitions_section(transitions: Sequence[Transition] | None) -> Html:
    """When caps began and ended."""
    if not transitions:
        text = "Not read yet." if transitions is None else "No cap has begun or ended yet."
        return _section("transitions", "Last transitions", element("p", text, class_="empty"))
    rows = [
        _row(
            _cell(moment(one.when, exact=True), element("span", f" {ago(one.when.age_seconds)}", class_="muted")),
            element("th", name(one.workspace), scope="row", role="rowheader"),
            _cell(_badge("capped", "◆", "capped") if one.capped else _badge("quiet", "◇", "cap ended")),
        )
        for one in transitions
    ]
    table = _table("From Windmill's audit log, newest first.", ("When", "Workspace", "What"), rows)
    return _section("transitions", "Last transitions", table)


def collectors_section(collectors: Sequence[CollectorRow], troubles: Sequence[Trouble]) -> Html:
    """How fresh everything above is, and what is wrong."""
    rows = [_collector_row(row) for row in collectors]
    head = ("Collector", "State", "Last success")
    table = _table("What the exporter reads, and when it last could.", head, rows)
    items = [_trouble(trouble) for trouble in troubles]
    wrong = element("ul", *items, class_="troubles") if items else element("p", "Nothing.", class_="empty")
    return _section(
        "collectors",
        "Collectors",
        table if rows else element("p", "Everything is switched off.", class_="empty"),
        element("h3", "What is wrong", id="wrong"),
        wrong,
    )


def _section(key: str, title: str, *children: Child) -> Html:
    return element("section", element("h2", title, id=key), *children, class_=key, aria_labelledby=key)


def _table(caption: str, head: Sequence[Child], rows: Sequence[Html]) -> Html:
    heads = [element("th", title, scope="col", role="columnheader") for title in head]
    return element(
        "table",
        element("caption", caption),
        element("thead", element("tr", *heads, role="row"), role="rowgroup"),
        element("tbody", *rows, role="rowgroup"),
        role="table",
    )


def _row(*cells: Html, class_: str | None = None) -> Html:
    return element("tr", *cells, role="row", class_=class_)


def _cell(*children: Child, label: str | None = None, class_: str | None = None, colspan: int | None = None) -> Html:
    """`label` names the cell where the head of its column is not shown."""
    return element("td", *children, role="cell", data_label=label, class_=class_, colspan=colspan)


def _number(text: str, label: str, *, alarming: bool = False) -> Html:
    weight = " alarming" if alarming else " nought" if text in {"0", NOTHING} else ""
    return _cell(text, label=label, class_=f"number{weight}")


def _badge(colour: str, shape: str, *text: Child) -> Html:
    return element("span", element("span", f"{shape} ", aria_hidden="true"), *text, class_=f"badge {colour}")


def _share_row(row: ShareRow, cap: float) -> Html:
    badge: Child = ""
    if row.mark is Mark.CAPPED:
        badge = _badge("capped", "◆", "capped", *(() if row.since is None else (" since ", moment(row.since))))
    elif row.mark is Mark.WOULD_BE_CAPPED:
        badge = _badge("would", "◇", "would be capped")
    wait = NOTHING if row.longest_wait_seconds is None else duration(row.longest_wait_seconds)
    return _row(
        element("th", name(row.workspace), badge, scope="row", role="rowheader"),
        _cell(_bar(row, cap), element("span", percent(row.share), class_="ratio"), class_="share"),
        _number(seconds_of_work(row.worker_seconds), "worker-s"),
        _number(count(row.waiting), "waiting"),
        _number(wait, "longest wait"),
    )


def _cap_label(cap: float) -> Html:
    """Stands above the cap line of every row."""
    anchor = "start" if cap < 0.15 else "end" if cap > 0.85 else "middle"
    text = element("text", f"cap {percent(cap)}", x=f"{cap * 100:g}%", y=13, text_anchor=anchor)
    return joined(element("svg", text, class_="bar", width="100%", height=18), element("span", "Share", class_="ratio"))


def _bar(row: ShareRow, cap: float) -> Html:
    """Percentages as coordinates: the drawing stretches with its column, its lines stay as thin as they are."""
    side = "above" if row.share > cap else "at" if row.share == cap else "below"
    return element(
        "svg",
        element("rect", class_="track", x=0, y=7, width="100%", height=12, rx=2),
        element(
            "rect", class_=f"held {row.mark.value}", x=0, y=7, width=f"{min(row.share, 1) * 100:.1f}%", height=12, rx=2
        ),
        element("line", class_="cap", x1=f"{cap * 100:g}%", x2=f"{cap * 100:g}%", y1=0, y2=BAR_HEIGHT),
        class_="bar",
        width="100%",
        height=BAR_HEIGHT,
        role="img",
        aria_label=f"{percent(row.share)}, {side} the cap of {percent(cap)}",
    )


def _tag_row(row: TagRow, *, known: bool) -> Html:
    badge = _badge("bad", "▲", "no worker") if row.unattended else ""
    workers = NOTHING if row.workers is None else count(row.workers)
    delay = NOTHING if row.delay_seconds is None else duration(row.delay_seconds)
    return _row(
        element("th", name(row.tag), badge, scope="row", role="rowheader"),
        _number(count(row.waiting), "waiting"),
        _number(delay, "head delay"),
        _number(count(row.running), "running"),
        _number(workers, "workers", alarming=row.unattended),
        _cell(_line(row.line, known=known), class_="line"),
        class_="unattended" if row.unattended else None,
    )


def _line(line: Sparkline | None, *, known: bool) -> Html:
    if line is None:
        text = "none stored" if known else NOTHING
        return element("span", text, class_="muted")
    drawn = " ".join(f"{x:g},{y:g}" for x, y in line.points)
    area = f"M{line.points[0][0]:g},{HEIGHT} L{drawn} L{line.points[-1][0]:g},{HEIGHT}Z" if line.points else ""
    peak, at = count(round(line.peak)), f"{utc(line.peak_at):%H:%M} UTC"
    return joined(
        element(
            "svg",
            element("path", class_="area", d=area),
            element("path", class_="stroke", d=f"M{drawn}"),
            class_="sparkline",
            width=WIDTH,
            height=HEIGHT + 2 * LINE_MARGIN,
            viewBox=f"0 {-LINE_MARGIN} {WIDTH} {HEIGHT + 2 * LINE_MARGIN}",
            role="img",
            aria_label=f"Jobs waiting in the last hour: {peak} at the most ({at}), {count(round(line.last))} at last",
        ),
        element("span", f"max {peak}", class_="muted", aria_hidden="true"),
    )


def _collector_row(row: CollectorRow) -> Html:
    colours = {
        Health.WORKING: ("good", "●"),
        Health.FAILING: ("bad", "▲"),
        Health.STALE: ("bad", "▲"),
        Health.STARTING: ("quiet", "○"),
    }
    last: tuple[Child, ...] = ("never",)
    if row.last_success is not None:
        age = element("span", f" {ago(row.last_success.age_seconds)}", class_="muted")
        last = (moment(row.last_success, exact=True), age)
    return _row(
        element("th", row.name, element("span", row.purpose, class_="muted"), scope="row", role="rowheader"),
        _cell(_badge(*colours[row.health], row.health.value)),
        _cell(*last),
    )


def _trouble(trouble: Trouble) -> Html:
    return element(
        "li",
        element("p", element("strong", ", ".join(trouble.concerns)), ": ", element("bdi", trouble.sentence, dir="ltr")),
        element("p", trouble.advice, class_="advice") if trouble.advice else "",
    )

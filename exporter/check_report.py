"""Pure: the report of `check-database` as text. Plain ASCII and at most 80 columns, for any terminal and any ticket.

What stands below "Run" is SQL to copy: never cut, broken only between its tokens, and ASCII as well.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from types import MappingProxyType

from exporter.check_database import Finding, Survey
from exporter.database.server import NEWEST_SUPPORTED, OLDEST_SUPPORTED

COLUMNS = 80
NAME_CHARACTERS = 26
LACKS = MappingProxyType(
    {
        "missing_schema": "schema",
        "missing_table": "table",
        "missing_column": "column",
        "missing_privilege": "grant",
        "row_security": "policy",
    }
)
HINT = "deploy/sql/ has roles with exactly these rights; docs/database-roles.md says how to use them."

TOKEN = re.compile(r"""(?:"(?:[^"]|"")*"|'(?:[^']|'')*'|[^\s"'])+""")
IDENTIFIER = re.compile(r'"(?:[^"]|"")*"')
PLAIN = re.compile(r"[ -~]*")


def render(survey: Survey) -> str:
    """The whole report, without a last newline."""
    return "\n".join([*_head(survey), "", *_table(survey.findings), "", *_verdict(survey)])


def _head(survey: Survey) -> Iterator[str]:
    server = survey.server
    state = "standby, " if server.standby else "read-only by default, " if server.read_only else ""
    lines = {
        "server": f"PostgreSQL {server.version} ({state}supported: {OLDEST_SUPPORTED} to {NEWEST_SUPPORTED})",
        "database": server.database,
        "role": server.role,
        "schema": survey.schema,
        "modes": survey.modes,
    }
    for name, text in lines.items():
        yield from _paragraph(f"{name:<11}", text)


def _table(findings: Sequence[Finding]) -> Iterator[str]:
    rows = [("collector", "relation", "needs", "state")]
    rows += [
        (finding.collector, _short(finding.requirement.relation), _needs(finding), _state(finding))
        for finding in findings
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    rows.insert(1, ("-" * widths[0], "-" * widths[1], "-" * widths[2], "-----"))
    for collector, relation, needs, state in rows:
        yield f"{collector:<{widths[0]}}  {relation:<{widths[1]}}  {needs:<{widths[2]}}  {state}"


def _needs(finding: Finding) -> str:
    privileges = finding.requirement.privileges
    return ", ".join((*privileges, "USAGE") if finding.requirement.usage else privileges)


def _state(finding: Finding) -> str:
    lacks = ", ".join(dict.fromkeys(LACKS[problem.reason] for problem in finding.problems))
    return f"no {lacks}" if lacks else "ok"


def _verdict(survey: Survey) -> Iterator[str]:
    if survey.complete:
        yield "Nothing is missing."
        return
    yield "Missing:"
    for sentence in survey.server_problems:
        yield from _paragraph("  ", sentence)
    for what, collectors in _merged(survey.findings).items():
        yield from _paragraph(f"  {', '.join(collectors)}: ", what, indent="    ")
    problems = [problem for finding in survey.findings for problem in finding.problems]
    if remedies := dict.fromkeys(problem.remedy for problem in problems if problem.remedy):
        yield ""
        yield "Run as the owner of the tables, or as a superuser, in this database:"
        yield ""
        for remedy in remedies:
            yield from _sql(f"{remedy};")
    yield ""
    yield from _paragraph("", HINT)


def _merged(findings: Iterable[Finding]) -> dict[str, list[str]]:
    """What is missing, once each, with the collectors that lack it."""
    merged: dict[str, list[str]] = {}
    for finding in findings:
        for problem in finding.problems:
            collectors = merged.setdefault(problem.what, [])
            if finding.collector not in collectors:
                collectors.append(finding.collector)
    return merged


def _paragraph(first: str, text: str, indent: str | None = None) -> list[str]:
    indent = " " * len(first) if indent is None else indent
    return textwrap.wrap(_ascii(text), COLUMNS, initial_indent=first, subsequent_indent=indent, break_on_hyphens=False)


def _sql(statement: str) -> Iterator[str]:
    """One statement in lines of at most 80 characters where its tokens allow that."""
    line = ""
    for token in TOKEN.findall(IDENTIFIER.sub(lambda match: _ascii_identifier(match[0]), statement)):
        if line and len(line) + 1 + len(token) > COLUMNS:
            yield line
            line = f"    {token}"
        else:
            line = f"{line} {token}" if line else token
    yield line


def _ascii_identifier(quoted: str) -> str:
    """A quoted identifier in ASCII: as it is, or in SQL's own form with code points."""
    if PLAIN.fullmatch(quoted):
        return quoted
    characters = quoted[1:-1].replace("\\", r"\\")
    return 'U&"' + "".join(char if " " <= char <= "~" else rf"\+{ord(char):06x}" for char in characters) + '"'


def _short(name: str) -> str:
    shown = _ascii(name)
    return shown if len(shown) <= NAME_CHARACTERS else shown[: NAME_CHARACTERS - 3] + "..."


def _ascii(text: str) -> str:
    return "".join(char if " " <= char <= "~" else char.encode("unicode_escape").decode() for char in text)

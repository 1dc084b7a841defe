"""The configuration file: YAML bytes to one text per key, with every problem located.

Only the node graph is walked, and only as far as the configuration tree reaches: no YAML value is ever constructed, so
anchors cannot multiply, tags cannot build objects, and a document that refers to itself ends at the first unknown key.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import yaml

from exporter.config_keys import config_keys, config_sections, show

# The YAML reader is plain Python and takes seconds for a megabyte; every key with its comments needs less than 8 KiB.
MAX_FILE_BYTES = 256 * 1024
MAX_PROBLEMS = 50
SUGGESTION_CHARACTERS = 60

PLAIN_KEY = re.compile(r"[\w-]{1,60}")
SCALAR_TAGS = frozenset(f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "bool", "null", "timestamp"))
NULL_TAG = "tag:yaml.org,2002:null"
# The reader quotes names of anchors and tags, which may be a password that somebody forgot to quote.
QUOTED_CONTENT = re.compile(r" '(?![<\\])[^']{2,}'")


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """A file as read: the name to show, and at most `MAX_FILE_BYTES + 1` bytes of it."""

    name: str
    content: bytes


@dataclass(frozen=True, slots=True)
class FileValues:
    """The text of each key given (None: null), and one located sentence for each problem."""

    texts: Mapping[str, str | None]
    problems: Sequence[str]


def parse_file(file: ConfigFile) -> FileValues:
    """The texts of `file`. Pure, and never raises: what cannot be used is a problem."""
    try:
        root = compose_yaml(file.content)
    except NotYaml as error:
        return FileValues({}, [f"{file.name}{error}"])
    if root is None or root.tag == NULL_TAG:
        return FileValues({}, [])
    if not isinstance(root, yaml.MappingNode):
        return FileValues({}, [f"{file.name}: expected keys and values at the top, got {describe(root)}"])
    walk = _Walk()
    walk.section(root, "")
    return FileValues(walk.texts, walk.all_problems())


class NotYaml(Exception):
    """The file has no node graph; the text continues the file's name."""


def compose_yaml(content: bytes) -> yaml.Node | None:
    """The node graph of a YAML file, of which nothing is constructed; None when it is empty. Raises `NotYaml`."""
    if len(content) > MAX_FILE_BYTES:
        raise NotYaml(f": larger than {MAX_FILE_BYTES // 1024} KiB")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise NotYaml(f", line {line}: not UTF-8 text") from None
    try:
        return yaml.compose(text, yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        raise NotYaml(f"{_place(error)}: {_reason(error)}") from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise NotYaml(f", line {line}: holds the control character U+{ord(text[error.position]):04X}") from None
    except RecursionError:
        raise NotYaml(": nested too deeply") from None


def suggest(word: str, candidates: Iterable[str]) -> str:
    """`; did you mean ...?` with the candidate most like `word`, or nothing."""
    close = difflib.get_close_matches(word[:SUGGESTION_CHARACTERS], list(candidates), n=1)
    return f"; did you mean {close[0]}?" if close else ""


class _Walk:
    """Collects texts and problems over the sections of one document."""

    def __init__(self) -> None:
        self.texts: dict[str, str | None] = {}
        self._problems: list[str] = []
        self._left_out = 0

    def all_problems(self) -> Sequence[str]:
        rest = [f"and {self._left_out} more problems in this file"] if self._left_out else []
        return [*self._problems, *rest]

    def section(self, node: yaml.MappingNode, prefix: str) -> None:
        lines: dict[str, int] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                self._report(f"line {line}: expected a key, got {describe(key_node)}")
                continue
            name = key_node.value
            path = prefix + (name if PLAIN_KEY.fullmatch(name) else show(name))
            if name in lines:
                self._report(f"{path}: given twice, in lines {lines[name]} and {line}")
            elif path in config_sections():
                self._subsection(value_node, path)
            elif path in config_keys():
                self._leaf(value_node, path)
            else:
                self._unknown(prefix, name, f"{path}: unknown key (line {line})")
            lines.setdefault(name, line)

    def _subsection(self, node: yaml.Node, path: str) -> None:
        if isinstance(node, yaml.MappingNode):
            self.section(node, path + ".")
        elif node.tag != NULL_TAG:
            self._report(f"{path}: expected keys and values below it, got {describe(node)}")

    def _leaf(self, node: yaml.Node, path: str) -> None:
        if not isinstance(node, yaml.ScalarNode):
            self._report(f"{path}: expected {config_keys()[path].expected}, got {describe(node)}")
        elif node.tag not in SCALAR_TAGS:
            self._report(f"{path}: a YAML tag cannot be used here (line {node.start_mark.line + 1})")
        else:
            self.texts[path] = None if node.tag == NULL_TAG else node.value

    def _unknown(self, prefix: str, name: str, problem: str) -> None:
        if len(self._problems) < MAX_PROBLEMS:
            paths = [*config_sections(), *config_keys()]
            siblings = [path.removeprefix(prefix) for path in paths if path.startswith(prefix)]
            elsewhere = [path for path in paths if path.rpartition(".")[2] == name]
            problem += suggest(name, siblings) or suggest(name, elsewhere)
        self._report(problem)

    def _report(self, problem: str) -> None:
        if len(self._problems) < MAX_PROBLEMS:
            self._problems.append(problem)
        else:
            self._left_out += 1


def describe(node: yaml.Node) -> str:
    """The kind of `node`, in words for a message."""
    if isinstance(node, yaml.MappingNode):
        return "keys and values"
    return "a list" if isinstance(node, yaml.SequenceNode) else "a single value"


def _place(error: yaml.MarkedYAMLError) -> str:
    mark = error.problem_mark or error.context_mark
    return f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""


def _reason(error: yaml.MarkedYAMLError) -> str:
    problem = error.problem or "not YAML"
    if problem.startswith("but "):
        problem = f"{error.context}, {problem}"
    reason = QUOTED_CONTENT.sub("", problem)
    return reason + ("; indent with spaces, not tabs" if r"\t" in reason else "")

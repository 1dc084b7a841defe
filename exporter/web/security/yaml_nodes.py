"""Reads the nodes of a YAML document by what is expected of them, and collects what is wrong, each with its line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import yaml

from exporter.config_file import NULL_TAG, SCALAR_TAGS, describe, suggest
from exporter.config_keys import show

BOOL_TAG = "tag:yaml.org,2002:bool"
TRUE_WORDS = frozenset({"true", "yes", "on"})


class NodeReader:
    """Problems of one document, `name`. `refused` maps paths and words that are known, but not taken, to the reason."""

    def __init__(self, name: str, refused: Mapping[str, str]) -> None:
        self.problems: list[str] = []
        self._name = name
        self._refused = refused

    def mapping(self, node: yaml.Node | None, path: str, known: Sequence[str] | None) -> Mapping[str, yaml.Node]:
        """The values below `node` by key, without those whose key is reported. `known` None: any key."""
        if node is None or node.tag == NULL_TAG:
            return {}
        if not isinstance(node, yaml.MappingNode):
            self.report(node, f"{path or 'the file'}: expected keys and values, got {describe(node)}")
            return {}
        found: dict[str, yaml.Node] = {}
        for key_node, value in node.value:
            if not isinstance(key_node, yaml.ScalarNode) or key_node.tag not in SCALAR_TAGS - {NULL_TAG}:
                self.report(key_node, f"{path or 'the file'}: expected a name as a key, got {describe(key_node)}")
                continue
            name = key_node.value
            full = f"{path}.{name}" if path else name
            if name in found:
                self.report(key_node, f"{show(full)[1:-1]}: given twice")
            elif known is None or name in known:
                found[name] = value
            elif full in self._refused:
                self.report(key_node, f"{full}: refused: {self._refused[full]}")
            else:
                self.report(key_node, f"{show(full)[1:-1]}: unknown key{suggest(name, known)}")
        return found

    def text(self, node: yaml.Node, path: str) -> str | None:
        """The text of `node` as it is written, whatever YAML takes it for; None for null."""
        if not isinstance(node, yaml.ScalarNode) or node.tag not in SCALAR_TAGS:
            self.report(node, f"{path}: expected a text, got {describe(node)}")
            return None
        return None if node.tag == NULL_TAG else str(node.value)

    def flag(self, found: Mapping[str, yaml.Node], path: str, *, default: bool) -> bool:
        """The boolean under the last name of `path` in `found`. A quoted word is a text, as it is in Go."""
        node = found.get(path.rpartition(".")[2])
        if node is None or node.tag == NULL_TAG:
            return default
        if node.tag == BOOL_TAG and isinstance(node, yaml.ScalarNode):
            return str(node.value).lower() in TRUE_WORDS
        self.report(node, f"{path}: expected true or false")
        return default

    def not_among(self, node: yaml.Node, path: str, text: str, choices: Sequence[str]) -> None:
        """Report that `text` is none of `choices`."""
        if text in self._refused:
            self.report(node, f"{path}: {text} is refused: {self._refused[text]}")
        else:
            self.report(node, f"{path}: expected one of {', '.join(choices)}, got {show(text)}")

    def report(self, node: yaml.Node, sentence: str) -> None:
        """Report a problem at the line of `node`."""
        self.problems.append(f"{self._name}, line {node.start_mark.line + 1}: {sentence}")

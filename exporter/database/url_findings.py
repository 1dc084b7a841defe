"""What parsing a database URL finds on the way, so that all of it is reported together."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from enum import StrEnum
from typing import TypeVar
from urllib.parse import unquote_to_bytes

Choice = TypeVar("Choice", bound=StrEnum)


class Findings:
    """Problems and warnings, located by `where`, and the two readings of a text that may cause them."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.problems: list[str] = []
        self.warnings: list[str] = []

    def problem(self, sentence: str) -> None:
        """Note a problem; the URL cannot be used."""
        text = f"{self.where}: {sentence}"
        if text not in self.problems:
            self.problems.append(text)

    def dropped(self, name: str, why: str) -> None:
        """Note a setting that is understood and has no effect here."""
        self.warnings.append(f"{self.where}: {name} is dropped: {why}")

    def decode(self, text: str, what: str) -> str:
        """`text`, percent-decoded once. A % that escapes nothing stands for itself, as in sqlx."""
        try:
            decoded = unquote_to_bytes(text).decode()
        except UnicodeDecodeError:
            self.problem(f"{what} is not UTF-8 once percent-decoded")
            return ""
        if "\0" in decoded:
            self.problem(f"{what} holds a zero byte")
        return decoded

    def choice(self, kind: type[Choice], name: str, parameters: Mapping[str, str]) -> Choice | None:
        """The member of `kind` that a parameter names, in any case of letters."""
        text = parameters.get(name, "")
        if not text:
            return None
        by_name = {member.lower(): member for member in kind}
        if text.lower() not in by_name:
            near = get_close_matches(text.lower(), by_name, n=1)
            hint = f', did you mean "{by_name[near[0]]}"?' if near else f": expected one of {', '.join(kind)}"
            self.problem(f'{name}="{text}" is unknown{hint}')
        return by_name.get(text.lower())

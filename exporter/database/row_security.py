"""Whether row security hides rows from us, told from the text of the policies that apply to our role.

A permissive policy lets every row through when its condition is the constant `true`. Where only rows of certain
operations are needed (the audit tables), a condition on the column `operation` alone will do: an equality, IN, ANY of
an array, LIKE, or several of these joined by OR. Several policies may share the operations among them. Any other
condition may hide rows, and counts as hiding them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from msgspec import Struct

_CAST = re.compile(r"::(?:text|character varying|bpchar|name)(?:\(\d+\))?(?:\[\])?")
_LITERAL = r"'(?:[^']|'')*'"
_EQUALS = re.compile(rf"operation = ({_LITERAL})")
_ANY = re.compile(rf"operation = ANY ARRAY\[((?:{_LITERAL}(?:, )?)+)\]")
_LIKE = re.compile(rf"operation ~~ ({_LITERAL})")
_COMMANDS = {"SELECT": "r", "INSERT": "a", "UPDATE": "w", "DELETE": "d"}


class Policy(Struct, frozen=True):
    """One row policy that applies to our role, as `pg_policy` has it; `command` is one of r, a, w, d and `*`."""

    name: str
    command: str
    permissive: bool
    condition: str | None
    check: str | None


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether all needed rows pass; if not, which restrictive policies stand in the way (none: a policy is missing)."""

    passes: bool
    restrictive: tuple[str, ...] = ()


def judge(policies: Sequence[Policy], privilege: str, operations: Sequence[str]) -> Verdict:
    """Whether row security lets the rows of `operations` (all rows when empty) through for SELECT, INSERT, ..."""
    applying = [policy for policy in policies if policy.command in {"*", _COMMANDS[privilege]}]
    needed: Sequence[str | None] = operations or [None]
    restrictive = [
        policy.name
        for policy in applying
        if not policy.permissive and not all(_admits(policy, privilege, operation) for operation in needed)
    ]
    if restrictive:
        return Verdict(passes=False, restrictive=tuple(restrictive))
    permissive = [policy for policy in applying if policy.permissive]
    passes = all(any(_admits(policy, privilege, operation) for policy in permissive) for operation in needed)
    return Verdict(passes=passes)


def _admits(policy: Policy, privilege: str, operation: str | None) -> bool:
    check = policy.check if policy.check is not None else policy.condition
    conditions = {"INSERT": [check], "UPDATE": [policy.condition, check]}.get(privilege, [policy.condition])
    # Without a condition a permissive policy admits nothing, and a restrictive one everything.
    return all(not policy.permissive if condition is None else _holds(condition, operation) for condition in conditions)


def _holds(condition: str, operation: str | None) -> bool:
    if condition == "true":
        return True
    if operation is None:
        return False
    # Without its parentheses a condition reads the same only as a plain OR of comparisons: all of it must be that.
    alternatives = re.sub(r"[()]", "", _CAST.sub("", condition)).split(" OR ")
    answers = [_compares(alternative, operation) for alternative in alternatives]
    return None not in answers and True in answers


def _compares(comparison: str, operation: str) -> bool | None:
    """Whether the comparison holds for `operation`; None when it is not understood."""
    quoted = "'" + operation.replace("'", "''") + "'"
    if match := _EQUALS.fullmatch(comparison):
        return match[1] == quoted
    if match := _ANY.fullmatch(comparison):
        return quoted in re.findall(_LITERAL, match[1])
    if match := _LIKE.fullmatch(comparison):
        return re.fullmatch(_like_to_regex(match[1][1:-1]), operation, re.DOTALL) is not None
    return None


def _like_to_regex(pattern: str) -> str:
    parts = re.findall(r"\\.|.", pattern, re.DOTALL)
    return "".join({"%": ".*", "_": "."}.get(part) or re.escape(part.removeprefix("\\") or part) for part in parts)

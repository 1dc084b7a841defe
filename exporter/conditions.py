"""What is wrong at present: logged once when it begins, once when it ends, never once a tick."""

from __future__ import annotations

import logging
from collections.abc import Mapping

logger = logging.getLogger(__name__)


class Conditions:
    """The present problems, one sentence each, by a short key such as `fairness` or `settings`."""

    __slots__ = ("_problems",)

    def __init__(self) -> None:
        self._problems: dict[str, tuple[str, str]] = {}

    @property
    def problems(self) -> Mapping[str, str]:
        """What is wrong now, for people."""
        return {key: sentence for key, (_, sentence) in self._problems.items()}

    def raise_problem(
        self, key: str, sentence: str, *, kind: str | None = None, cause: BaseException | None = None
    ) -> None:
        """Say that `key` has a problem. Logged when it is new or its `kind` (default: the sentence) changed.

        `cause` is logged with its traceback: for what nobody foresaw.
        """
        identity = sentence if kind is None else kind
        known = self._problems.get(key)
        self._problems[key] = (identity, sentence)
        if known is None or known[0] != identity:
            level = logging.WARNING if cause is None else logging.ERROR
            logger.log(level, sentence, extra={"condition": key}, exc_info=cause)

    def clear(self, key: str) -> None:
        """Say that `key` is fine. Logged when it had a problem."""
        if self._problems.pop(key, None) is not None:
            logger.info("recovered", extra={"condition": key})

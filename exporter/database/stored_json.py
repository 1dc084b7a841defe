"""Pure: JSON as PostgreSQL hands it out, decoded without ever raising.

`jsonb` holds what Python's decoder may refuse: numbers of thousands of digits, or deep nesting.
"""

from __future__ import annotations

import json
from typing import Any, Final


class Unreadable:
    """The type of the one value that stands for JSON that cannot be read."""


UNREADABLE: Final = Unreadable()


def decode_json(text: str | None) -> Any:  # noqa: ANN401 -- foreign JSON has no type until it is checked
    """The decoded value, or `UNREADABLE`."""
    if text is None:
        return UNREADABLE
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return UNREADABLE

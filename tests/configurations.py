"""What several tests of the configuration need."""

from __future__ import annotations


def accept(url: str, where: str) -> None:
    """Stands for the URL's parser where the test is not about the URL."""

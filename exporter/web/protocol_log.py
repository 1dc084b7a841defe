"""The logger that aiohttp's protocol writes to: malformed requests without their content, and seldom."""

from __future__ import annotations

import logging
from collections.abc import Callable
from time import monotonic
from typing import Any

from aiohttp.http_exceptions import HttpProcessingError

from exporter.throttle import Throttle


class ProtocolLog(logging.LoggerAdapter[logging.Logger]):
    """Refused requests are one line a minute at the most. aiohttp's text quotes a header, which may be a cookie."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        super().__init__(logging.getLogger(__name__))
        self._refusals = Throttle(clock)

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:  # noqa: ANN401 -- as the base class
        """Every other method of the adapter ends here."""
        error = kwargs.get("exc_info")
        if not isinstance(error, HttpProcessingError):
            super().log(level, msg, *args, **kwargs)
            return
        left_out = self._refusals.passes()
        if left_out is not None:
            fields = {"reason": type(error).__name__, "status": error.code, "others_not_logged": left_out}
            self.logger.info("malformed request refused", extra=fields)

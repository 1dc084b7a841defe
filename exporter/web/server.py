"""The listener with its certificates and users, which are read again when their files change."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from aiohttp import web

from exporter.conditions import Conditions
from exporter.errors import ConfigError
from exporter.timer import Timer
from exporter.web.listen import ListenAddress, Listener, start_listening
from exporter.web.security.access import Access
from exporter.web.security.web_files import WebFiles, WebSettings

logger = logging.getLogger(__name__)

CONDITION = "web_config"
WATCH_SECONDS = 5.0


class WebServer:
    """One listener. What the files say is in force until newer ones can be used; `report` hears whether they can.

    `monotonic` times the looks at the files, `watch_seconds` apart.
    """

    def __init__(
        self,
        access: Access,
        conditions: Conditions,
        report: Callable[[bool], None],
        monotonic: Callable[[], float],
        watch_seconds: float = WATCH_SECONDS,
    ) -> None:
        self._access = access
        self._conditions = conditions
        self._report = report
        self._monotonic = monotonic
        self._timer = Timer(watch_seconds)
        self._adopting = asyncio.Lock()
        self._files = WebFiles("")
        self._settings = WebSettings()
        self._public_metrics = False
        self._listener: Listener | None = None

    @property
    def urls(self) -> Sequence[str]:
        """Where it can be reached, while it listens."""
        return self._listener.urls if self._listener else ()

    async def start(
        self, app: web.Application, address: ListenAddress, files: WebFiles, *, public_metrics: bool
    ) -> None:
        """Read `files` and listen. Raises `ConfigError`: at the start there is nothing older to go on with."""
        settings = await asyncio.to_thread(files.load)
        await self.adopt(files, settings, public_metrics=public_metrics)
        self._listener = await start_listening(app, address, settings.context)

    async def adopt(self, files: WebFiles, settings: WebSettings, *, public_metrics: bool) -> None:
        """Put `settings`, which were read from `files`, in force, and watch these from now on.

        Raises `ConfigError` when the listener cannot; everything stays as it was then.
        """
        async with self._adopting:
            await self._put_in_force(settings, public_metrics=public_metrics)
            self._files = files

    async def _put_in_force(self, settings: WebSettings, *, public_metrics: bool) -> None:
        if self._listener is not None and settings.context is not self._settings.context:
            await self._listener.serve(settings.context)
        self._access.apply(settings.config, public_metrics=public_metrics)
        self._settings, self._public_metrics = settings, public_metrics
        self._report(True)
        self._conditions.clear(CONDITION)

    def due_in(self) -> float:
        """Seconds until the next look at the files."""
        return self._timer.due_in(self._monotonic())

    async def watch(self) -> None:
        """Look at the files, and put them in force when they changed and can be used."""
        self._timer.begin(self._monotonic())
        if not self._files.is_configured:
            return
        async with self._adopting:
            if not await asyncio.to_thread(self._files.changed):
                return
            try:
                settings = await asyncio.to_thread(self._files.load)
                await self._put_in_force(settings, public_metrics=self._public_metrics)
            except ConfigError as error:
                self._report(False)
                problems = "; ".join(error.problems)
                self._conditions.raise_problem(CONDITION, f"the web config in force stays: {problems}")
            else:
                logger.info("web config file or certificates read again", extra={"url": self.urls[0]})

    async def stop(self) -> None:
        """Close the listener, finish the answers under way, check no more passwords."""
        if self._listener is not None:
            await self._listener.stop()
        self._access.close()

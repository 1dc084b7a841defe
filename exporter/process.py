"""The service as a process: signals, and an end that comes in any case."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import threading

from exporter.config import Config
from exporter.service import Reread, Service, Source

logger = logging.getLogger(__name__)

# Whatever a thread of a library waits for (a name server, a disk), a stop must not become a kill.
LATEST_EXIT_SECONDS = 9.0


async def serve(config: Config, target: Source, reread: Reread) -> int:
    """Run one replica until SIGTERM or SIGINT, reload on SIGHUP; the exit code."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    service = Service(config, target, reread)
    for signal_number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signal_number, stop.set)
    loop.add_signal_handler(signal.SIGHUP, service.request_reload)
    await service.start()
    code = 1
    try:
        code = 0 if await service.run_until(stop) else 1
    finally:
        exit_at_latest(LATEST_EXIT_SECONDS, code)
        await service.stop()
    return code


def exit_at_latest(seconds: float, code: int) -> None:
    """End the process after `seconds` even if a thread still waits, which the interpreter would join without limit."""
    timer = threading.Timer(seconds, _give_up, (code,))
    timer.daemon = True
    timer.start()


def _give_up(code: int) -> None:
    logger.warning("stopped without waiting for what is still under way")
    logging.shutdown()
    os._exit(code)

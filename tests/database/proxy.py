"""A TCP proxy in front of a server that misbehaves on demand, for tests of faults on the network."""

from __future__ import annotations

import asyncio
from enum import StrEnum
from types import TracebackType
from typing import Self


class Mode(StrEnum):
    """What becomes of a connection that arrives now."""

    FORWARD = "forward"
    HOLD = "hold"  # accepted, then silence
    REFUSE = "refuse"  # the port is closed


class TcpProxy:
    """Listens on a free port of 127.0.0.1 and forwards to `target_port`.

    `await set_mode(...)` acts on new connections. On those that exist: `freeze()` swallows every byte in both
    directions (a dropped route), `thaw()` ends that for new bytes, `cut()` resets them, and `lose_answer_to(b"COMMIT")`
    forwards the next message with these bytes, then cuts instead of passing on what the server answers.
    """

    def __init__(self, target_port: int) -> None:
        self.target_port = target_port
        self.port = 0
        self.mode = Mode.FORWARD
        self.accepted = 0
        self._frozen = False
        self._marker: bytes | None = None
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()

    async def __aenter__(self) -> Self:
        await self._listen()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close_listener()
        self.cut()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def set_mode(self, mode: Mode) -> None:
        self.mode = mode
        if mode is Mode.REFUSE:
            self._close_listener()
        elif self._server is None:
            await self._listen()

    def freeze(self) -> None:
        self._frozen = True

    def thaw(self) -> None:
        self._frozen = False

    def cut(self) -> None:
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    def lose_answer_to(self, marker: bytes) -> None:
        self._marker = marker

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    def _close_listener(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        self._writers.add(writer)
        if self.mode is Mode.HOLD:
            return
        try:
            target_reader, target_writer = await asyncio.open_connection("127.0.0.1", self.target_port)
        except OSError:
            writer.transport.abort()
            return
        self._writers.add(target_writer)
        lost = asyncio.Event()
        for pump in (self._upstream(reader, target_writer, lost), self._downstream(target_reader, writer, lost)):
            task = asyncio.create_task(pump)
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _upstream(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, lost: asyncio.Event) -> None:
        try:
            while data := await reader.read(65536):
                if self._marker is not None and self._marker in data:
                    self._marker = None
                    lost.set()
                if not self._frozen:
                    writer.write(data)
        except OSError:
            pass
        finally:
            writer.transport.abort() if self._frozen else writer.close()

    async def _downstream(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, lost: asyncio.Event
    ) -> None:
        try:
            while data := await reader.read(65536):
                if lost.is_set():
                    self.cut()
                    return
                if not self._frozen:
                    writer.write(data)
        except OSError:
            pass
        finally:
            writer.close()

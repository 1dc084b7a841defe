"""Chromium without a window, driven over its DevTools protocol."""

from __future__ import annotations

import asyncio
import base64
import itertools
import os
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

from aiohttp import ClientSession, ClientWebSocketResponse, WSMsgType

from tests.requirements import find_program

START_SECONDS = 30.0
ANSWER_SECONDS = 15.0
# Root in a container has no sandbox to offer; the rest keeps the browser from the network and from background work.
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--no-first-run",
    "--hide-scrollbars",
    "--remote-debugging-port=0",
)


class BrowserError(Exception):
    """The browser did not start, refused a command, or an expression threw."""


class Tab:
    """One page. `complaints` are console errors, uncaught exceptions and violations of the content security policy."""

    def __init__(self, browser: Browser, session: str) -> None:
        self._browser = browser
        self._session = session
        self.complaints: list[str] = []

    async def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """One command of the protocol."""
        return await self._browser.send(method, parameters, self._session)

    async def open(self, url: str) -> None:
        """Load `url`, and wait until everything of it is loaded."""
        loaded = self._browser.expect(self._session, "Page.loadEventFired")
        answer = await self.send("Page.navigate", url=url)
        if "errorText" in answer:
            raise BrowserError(f"{url}: {answer['errorText']}")
        async with asyncio.timeout(ANSWER_SECONDS):
            await loaded

    async def evaluate(self, expression: str) -> Any:
        """The JSON value of a JavaScript expression; a promise is awaited."""
        answer = await self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise BrowserError(str(answer["exceptionDetails"]))
        return answer["result"].get("value")

    async def until(self, expression: str) -> Any:
        """The first true value of an expression."""
        async with asyncio.timeout(ANSWER_SECONDS):
            value = None
            while not value:
                await asyncio.sleep(0.05)
                # Between two documents there is nothing to ask.
                with suppress(BrowserError):
                    value = await self.evaluate(expression)
        return value

    async def resize(self, width: int, height: int, *, scale: float = 1.0, mobile: bool = False) -> None:
        """The size of the window in CSS pixels."""
        await self.send(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=mobile
        )

    async def prefer(self, scheme: str) -> None:
        """`light` or `dark`."""
        await self.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    async def before_each_page(self, script: str) -> None:
        """Run `script` in every page before its own scripts."""
        await self.send("Page.addScriptToEvaluateOnNewDocument", source=script)

    async def press(self, key: str, code: int) -> None:
        """Press and let go of one key."""
        for kind in ("rawKeyDown", "keyUp"):
            await self.send("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code)

    async def screenshot(self, *, whole: bool = False) -> bytes:
        """The window, or the whole page, as PNG."""
        answer = await self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        return base64.b64decode(answer["data"])

    def note(self, method: str, event: dict[str, Any]) -> None:
        """Keep what a developer would see in red."""
        if method == "Runtime.exceptionThrown":
            self.complaints.append(str(event["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and event["type"] in {"error", "warning", "assert"}:
            self.complaints.append(str(event["args"]))
        elif method == "Log.entryAdded" and event["entry"]["level"] in {"error", "warning"}:
            self.complaints.append(event["entry"]["text"])
        elif method == "Audits.issueAdded":
            self.complaints.append(str(event["issue"]))


class Browser:
    """A running browser and the one connection to it."""

    def __init__(self, socket: ClientWebSocketResponse) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._expected: dict[tuple[str, str], asyncio.Future[None]] = {}
        self._tabs: dict[str, Tab] = {}

    async def send(self, method: str, parameters: dict[str, Any], session: str | None = None) -> dict[str, Any]:
        """One command and its answer."""
        number = next(self._numbers)
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        message = {"id": number, "method": method, "params": parameters}
        await self._socket.send_json(message if session is None else {**message, "sessionId": session})
        async with asyncio.timeout(ANSWER_SECONDS):
            result: dict[str, Any] = await answer
        return result

    def expect(self, session: str, method: str) -> asyncio.Future[None]:
        """Done when the event comes next."""
        future = self._expected[session, method] = asyncio.get_running_loop().create_future()
        return future

    @asynccontextmanager
    async def tab(self, *, javascript: bool = True) -> AsyncIterator[Tab]:
        """A tab with cookies, cache and credentials of its own."""
        context = await self.send("Target.createBrowserContext", {})
        here = {"browserContextId": context["browserContextId"]}
        target = await self.send("Target.createTarget", {"url": "about:blank", **here})
        attached = await self.send("Target.attachToTarget", {"targetId": target["targetId"], "flatten": True})
        tab = self._tabs[attached["sessionId"]] = Tab(self, attached["sessionId"])
        for domain in ("Page", "Runtime", "Log", "Network", "Audits"):
            await tab.send(f"{domain}.enable")
        await tab.send("Emulation.setScriptExecutionDisabled", value=not javascript)
        try:
            yield tab
        finally:
            await self.send("Target.disposeBrowserContext", here)

    async def listen(self) -> None:
        """Hand out answers and events until the browser is gone."""
        async for message in self._socket:
            if message.type is not WSMsgType.TEXT:
                continue
            content = message.json()
            if "id" in content:
                self._answer(self._answers.pop(content["id"]), content)
            elif session := content.get("sessionId"):
                self._tabs[session].note(content["method"], content["params"])
                expected = self._expected.pop((session, content["method"]), None)
                if expected is not None and not expected.done():
                    expected.set_result(None)

    def _answer(self, waiting: asyncio.Future[dict[str, Any]], content: dict[str, Any]) -> None:
        if waiting.done():
            return
        if "error" in content:
            waiting.set_exception(BrowserError(content["error"]["message"]))
        else:
            waiting.set_result(content["result"])


@contextmanager
def launched(profile: Path) -> Iterator[str]:
    """Chromium with a fresh profile in `profile`, gone on leaving: the address of its DevTools."""
    program = find_program("chromium")
    if program is None:
        raise BrowserError("chromium is not installed")
    profile.mkdir(parents=True, exist_ok=True)
    child = subprocess.Popen(
        [program, *FLAGS, f"--user-data-dir={profile}", "about:blank"],
        env={"PATH": os.environ["PATH"], "HOME": str(profile), "TZ": "UTC"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield _endpoint(child, profile / "DevToolsActivePort")
    finally:
        # It is the leader of a session of its own: this ends its helpers too.
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()


@asynccontextmanager
async def connected(endpoint: str) -> AsyncIterator[Browser]:
    """A connection to a launched browser."""
    async with ClientSession() as session, session.ws_connect(endpoint, max_msg_size=0) as socket:
        browser = Browser(socket)
        listening = asyncio.create_task(browser.listen())
        try:
            yield browser
        finally:
            await socket.close()
            await listening


def _endpoint(child: subprocess.Popen[bytes], file: Path) -> str:
    """The browser writes port and path of its DevTools into a file of its profile once it is up."""
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until and child.poll() is None:
        lines = file.read_text().splitlines() if file.exists() else []
        if len(lines) == 2:
            return f"ws://127.0.0.1:{lines[0]}{lines[1]}"
        time.sleep(0.05)
    raise BrowserError(f"chromium did not start within {START_SECONDS:g} s (exit code {child.poll()})")

"""A small client of Chromium's debugging protocol over pipes; needs no further package."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import queue
import re
import subprocess
import threading
from pathlib import Path
from types import TracebackType
from typing import Any, Self

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)
PATIENCE = 60.0


class Browser:
    """A headless browser showing `page`; `errors` and `requests` of the last `open` are kept."""

    page: Path

    def __init__(self, program: str, profile: Path) -> None:
        self._program, self._profile = program, profile
        self.errors: list[str] = []
        self.requests: list[str] = []
        self._number = 0
        self._inbox: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._events: list[dict[str, Any]] = []
        self._session: str | None = None

    def __enter__(self) -> Self:
        # The browser reads commands on descriptor 3 and answers on 4; ours stay above 9.
        ends = []
        for low in (*os.pipe(), *os.pipe()):
            ends.append(fcntl.fcntl(low, fcntl.F_DUPFD_CLOEXEC, 10))
            os.close(low)
        command_read, command_write, answer_read, answer_write = ends

        def wire() -> None:
            os.dup2(command_read, 3)
            os.dup2(answer_write, 4)

        self._process = subprocess.Popen(
            [self._program, *FLAGS, f"--user-data-dir={self._profile}", "about:blank"],
            preexec_fn=wire,
            pass_fds=(3, 4),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(command_read)
        os.close(answer_write)
        self._writer = os.fdopen(command_write, "wb", buffering=0)
        self._reader = os.fdopen(answer_read, "rb", buffering=0)
        threading.Thread(target=self._listen, daemon=True).start()
        target = self._call("Target.createTarget", {"url": "about:blank"})["targetId"]
        attached = self._call("Target.attachToTarget", {"targetId": target, "flatten": True})
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network", "DOM"):
            self._call(f"{domain}.enable")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._writer.close()
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.close()

    def open(self, *, width: int, mobile: bool, dark: bool = False, scripts: bool = True) -> None:
        """Load `page` in a window of `width` CSS pixels, and collect errors and requests."""
        self._call(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": mobile},
        )
        scheme = "dark" if dark else "light"
        self._call(
            "Emulation.setEmulatedMedia",
            {"media": "", "features": [{"name": "prefers-color-scheme", "value": scheme}]},
        )
        self._call("Emulation.setScriptExecutionDisabled", {"value": not scripts})
        self._events.clear()
        self._call("Page.navigate", {"url": self.page.as_uri()})
        self._until("Page.loadEventFired")
        self.evaluate("0") if scripts else self.document_text()
        self.errors = [
            json.dumps(event["params"])
            for event in self._events
            if event["method"] == "Runtime.exceptionThrown"
            or (
                event["method"] == "Runtime.consoleAPICalled"
                and event["params"]["type"] in ("error", "warning", "assert")
            )
            or (
                event["method"] == "Log.entryAdded"
                and event["params"]["entry"]["level"] in ("error", "warning")
            )
        ]
        self.requests = [
            event["params"]["request"]["url"]
            for event in self._events
            if event["method"] == "Network.requestWillBeSent"
        ]

    def emulate_print(self) -> None:
        """Show the page with its style for paper, until the next `open`."""
        self._call("Emulation.setEmulatedMedia", {"media": "print"})

    def evaluate(self, script: str, *, wait: bool = False) -> Any:
        """Value of a JavaScript expression, of a promise if `wait`; an exception fails the test."""
        answer = self._call(
            "Runtime.evaluate", {"expression": script, "returnByValue": True, "awaitPromise": wait}
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def document_text(self) -> str:
        """The document's source with tags removed; works with scripts disabled."""
        root = self._call("DOM.getDocument")["root"]["nodeId"]
        source = self._call("DOM.getOuterHTML", {"nodeId": root})["outerHTML"]
        return re.sub(r"<[^>]*>", " ", source)

    def accessible_names(self, role: str) -> list[str]:
        """Names that assistive technology reads for every node of `role`."""
        nodes = self._call("Accessibility.getFullAXTree")["nodes"]
        roles = {role, "img"} if role == "image" else {role}
        return [
            node.get("name", {}).get("value", "")
            for node in nodes
            if not node.get("ignored") and node.get("role", {}).get("value") in roles
        ]

    def print_pdf(self) -> bytes:
        """The page as printed."""
        return base64.b64decode(self._call("Page.printToPDF", {"printBackground": True})["data"])

    def screenshot(self) -> bytes:
        """PNG of the whole page."""
        return base64.b64decode(
            self._call("Page.captureScreenshot", {"captureBeyondViewport": True})["data"]
        )

    def _call(self, method: str, parameters: dict[str, Any] | None = None) -> dict[str, Any]:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method}
        message["params"] = parameters or {}
        if self._session is not None:
            message["sessionId"] = self._session
        self._writer.write(json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next(method)
            if answer.get("id") == self._number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                result: dict[str, Any] = answer["result"]
                return result
            if "method" in answer:
                self._events.append(answer)

    def _until(self, method: str) -> None:
        while not any(event["method"] == method for event in self._events):
            answer = self._next(method)
            if "method" in answer:
                self._events.append(answer)

    def _next(self, waiting_for: str) -> dict[str, Any]:
        try:
            answer = self._inbox.get(timeout=PATIENCE)
        except queue.Empty:
            raise TimeoutError(f"the browser did not answer {waiting_for}") from None
        if answer is None:
            raise ConnectionError(f"the browser ended while {waiting_for} was awaited")
        return answer

    def _listen(self) -> None:
        rest = b""
        try:
            while chunk := self._reader.read(1 << 16):
                *messages, rest = (rest + chunk).split(b"\0")
                for message in messages:
                    self._inbox.put(json.loads(message))
        except (OSError, ValueError):
            pass  # the pipe was closed: the browser is gone
        self._inbox.put(None)

"""How a stage is going, for people."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any, Protocol, Union

Event = dict[str, Any]
Listener = Callable[[Event], object]
Progress = Union[None, bool, Listener]
"""`None` or `False` says nothing, `True` draws a bar on standard error, anything else is called with every event."""


class _Finish(Protocol):
    def close(self) -> None: ...


class _Plain:
    """One line that is written again and again; on something that is no terminal, a line for each step."""

    def __init__(self) -> None:
        self.bytes = 0
        self.step = "reading"
        self.last = 0.0
        self.width = 0
        self.terminal = sys.stderr.isatty()

    def __call__(self, event: Event) -> None:
        kind = event["type"]
        if kind == "discovered":
            self.bytes = event["bytes"]
        elif kind == "step":
            self.step = event["name"]
            self._say(self.step, always=True)
        elif kind == "scanned":
            share = f", {100 * event['input_bytes'] / self.bytes:.0f} %" if self.bytes else ""
            self._say(f"{event['documents']:,} documents{share}")
        elif kind == "copied":
            share = f", {100 * event['input_bytes'] / self.bytes:.0f} %" if self.bytes else ""
            self._say(f"copying{share}")

    def _say(self, text: str, always: bool = False) -> None:
        now = time.monotonic()
        if not self.terminal:
            if always:
                print(f"onionskin: {text}", file=sys.stderr)
            return
        if always or now - self.last > 0.1:
            self.last = now
            print("\r" + text.ljust(self.width), end="", file=sys.stderr, flush=True)
            self.width = len(text)

    def close(self) -> None:
        if self.terminal and self.width:
            print("\r" + " " * self.width + "\r", end="", file=sys.stderr, flush=True)


class _Tqdm:
    def __init__(self, tqdm: Any) -> None:
        self.bar = tqdm(unit="B", unit_scale=True, unit_divisor=1024, desc="onionskin", leave=False)

    def __call__(self, event: Event) -> None:
        kind = event["type"]
        if kind == "discovered":
            self.bar.reset(total=event["bytes"] or None)
        elif kind == "step":
            self.bar.set_description(event["name"])
        elif kind in ("scanned", "copied", "resumed"):
            self.bar.update(event["input_bytes"] - self.bar.n)
            if "documents" in event:
                self.bar.set_postfix(documents=event["documents"], refresh=False)

    def close(self) -> None:
        self.bar.close()


class _Nothing:
    def close(self) -> None:
        pass


def listener(progress: Progress) -> tuple[Listener | None, _Finish]:
    """Who is told, and what is closed afterwards."""
    if progress is None or progress is False:
        return None, _Nothing()
    if progress is True:
        try:
            from tqdm.auto import tqdm
        except ImportError:
            plain = _Plain()
            return plain, plain
        drawn = _Tqdm(tqdm)
        return drawn, drawn
    if not callable(progress):
        raise TypeError("progress is None, True or something that can be called with an event")
    return progress, _Nothing()

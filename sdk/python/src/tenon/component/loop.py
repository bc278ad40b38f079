"""The event loop of `asyncio` in a component: it waits by `wasi:io/poll`."""

from __future__ import annotations

import asyncio
import asyncio.base_events
from typing import Any

from . import wit


class _Pollables:
    """What the loop waits for, in the place of a selector."""

    def __init__(self) -> None:
        self.waiting: list[tuple[Any, asyncio.Future[None]]] = []

    def select(self, timeout: float | None) -> list["asyncio.Future[None]"]:
        """Those that are ready, after waiting at most so many seconds."""
        pollables = [pollable for pollable, _ in self.waiting]
        timer = None
        if timeout is not None:
            timer = wit.monotonic_clock.subscribe_duration(max(0, round(timeout * 1e9)))
            pollables.append(timer)
        elif not pollables:
            raise RuntimeError("the function waits for ever: nothing is left that could wake it")
        try:
            ready = wit.poll.poll(pollables)
        finally:
            if timer is not None:
                timer.__exit__(None, None, None)
        return [self.waiting[index][1] for index in ready if index < len(self.waiting)]

    def close(self) -> None:
        """Forgets everything."""
        self.waiting.clear()


class PollLoop(asyncio.base_events.BaseEventLoop):
    """An event loop with timers and tasks, whose input and output are those of `wasi:io`. It has no
    threads, sockets or processes."""

    def __init__(self) -> None:
        super().__init__()
        self._selector = _Pollables()

    async def wait_for_pollable(self, pollable: Any) -> None:
        """Waits until a pollable is ready, and drops it."""
        future: asyncio.Future[None] = self.create_future()
        entry = (pollable, future)
        self._selector.waiting.append(entry)
        try:
            await future
        finally:
            # Streams are dropped after what waits for them.
            self._selector.waiting.remove(entry)
            pollable.__exit__(None, None, None)

    def _process_events(self, ready: Any) -> None:
        for future in ready:
            if not future.done():
                future.set_result(None)

    def _write_to_self(self) -> None:
        """There are no other threads that could wake the loop."""

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> Any:  # type: ignore[override]
        raise RuntimeError("a component has no threads: call the function itself")


def install() -> None:
    """Has `asyncio.run` use this loop."""
    asyncio.events.new_event_loop = PollLoop  # type: ignore[assignment]
    asyncio.new_event_loop = PollLoop  # type: ignore[assignment]
    asyncio.runners.events.new_event_loop = PollLoop  # type: ignore[attr-defined]

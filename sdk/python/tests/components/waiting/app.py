"""Waits, computes and fails in every way."""

import asyncio
import datetime
import logging
import sys
import time

import tenon
from tenon import ToolError, http, tool


@tool
async def sleep(seconds: float, times: int = 3) -> str:
    """Sleeps several times at once."""
    begun = time.monotonic()
    await asyncio.gather(*(asyncio.sleep(seconds) for _ in range(times)))
    tenon.context().progress(1, 1, "slept")
    return "quick" if time.monotonic() - begun < seconds * times else "slow"


@tool
async def patience() -> str:
    """Loses patience."""
    try:
        await asyncio.wait_for(asyncio.sleep(60), 0.05)
    except TimeoutError:
        return "lost"
    return "kept"


@tool
def run() -> str:
    """Runs a loop of its own."""

    async def inner() -> str:
        await asyncio.sleep(0.01)
        return "ran"

    return asyncio.run(inner())


@tool
def when(day: datetime.date) -> str:
    """Parses a date in another way, which imports late."""
    return datetime.datetime.strptime(day.isoformat(), "%Y-%m-%d").strftime("%A")


@tool
def late() -> str:
    """Imports late."""
    import colorsys

    return str(colorsys.rgb_to_hsv(0, 0, 0))


@tool
def speak() -> str:
    """Prints and logs."""
    print("printed", end="")
    sys.stderr.write("one\ntwo\n")
    logging.getLogger("own").info("logged %s", 1, extra={"who": "Ada"})
    try:
        raise KeyError("k")
    except KeyError:
        logging.exception("caught")
    return "spoken"


@tool
def broken(key: str) -> str:
    """Fails with an exception."""
    return {}[key]


@tool
def leave() -> str:
    """Ends the process."""
    sys.exit(3)


@tool
def forever() -> str:
    """Recurses."""
    return forever()


@tool
def absent() -> str:
    """Imports what is not there."""
    import importlib

    return importlib.import_module("numpy").__name__


@tool
def denied() -> str:
    """Uses a service that is not requested."""
    return http.get("https://example.com/").text


@tool
def fails() -> str:
    """Fails with an error of the contract."""
    raise tenon.Error("unavailable", "try later", retry_after=1.5)


@tool
def reads() -> str:
    """Reads a file that is not granted."""
    try:
        return open("/etc/passwd").read()
    except OSError as wrong:
        raise ToolError(type(wrong).__name__) from None

"""A client with the official SDK for Python, 1.x or 2.x, which times its calls of a server's tool `echo`.

Arguments: the arguments of the tool as JSON, and the server's program. Each line of the input says how many calls are in
flight at a time, and how many follow each other in each place. When all have ended, how long that took is printed, in
nanoseconds.
"""

import asyncio
import json
import os
import sys
import time
from contextlib import asynccontextmanager

from mcp import StdioServerParameters

try:
    from mcp import Client
except ImportError:
    # Version 1.x, which knows the legacy era only.
    Client = None


@asynccontextmanager
async def connect(server: StdioServerParameters):
    if Client:
        async with Client(server, mode="legacy") as client:
            yield client
    else:
        from mcp import ClientSession
        from mcp.client.stdio import stdio_client

        async with stdio_client(server) as (read, write):
            async with ClientSession(read, write) as client:
                await client.initialize()
                yield client


async def main() -> None:
    text = json.loads(sys.argv[1])["text"]
    server = StdioServerParameters(command=sys.argv[2], args=[], env=dict(os.environ))
    async with connect(server) as client:

        async def place(in_row: int) -> None:
            for _ in range(in_row):
                result = await client.call_tool("echo", {"text": text})
                assert result.content[0].text == text

        # Nothing else is to be done meanwhile: the line may be waited for in this thread.
        for line in sys.stdin:
            in_flight, in_row = map(int, line.split())
            began = time.perf_counter_ns()
            await asyncio.gather(*(place(in_row) for _ in range(in_flight)))
            print(time.perf_counter_ns() - began, flush=True)


asyncio.run(main())

"""Lists the tools of an MCP server as the official SDK for Python sees them, as a line of JSON.

Arguments: the server's program, and its arguments.
"""

import asyncio
import json
import os
import sys

from mcp import Client, StdioServerParameters


async def main() -> None:
    command, *args = sys.argv[1:]
    server = StdioServerParameters(command=command, args=args, env=dict(os.environ))
    async with Client(server) as client:
        tools, cursor = [], None
        while True:
            page = await client.list_tools(cursor=cursor)
            # What the server has not said, it has not said.
            form = dict(mode="json", by_alias=True, exclude_unset=True)
            tools += [tool.model_dump(**form) for tool in page.tools]
            cursor = page.next_cursor
            if cursor is None:
                break
        print(json.dumps(tools))


asyncio.run(main())

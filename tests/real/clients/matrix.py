"""What a client of the matrix does, with either SDK for Python.

The argument says, as JSON, how to connect (`command` and `args`, or `url`), in which era, and to which servers. What the
client sees of each server is printed as a line of JSON.
"""

import json
import sys

import anyio

settings = json.loads(sys.argv[1])


class Progress:
    """What is heard of one call's progress, of which so many reports are expected."""

    def __init__(self, expected: int) -> None:
        self.expected = expected
        self.reports = []
        self.is_heard = anyio.Event()

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        self.reports.append([progress, total, message])
        if len(self.reports) == self.expected:
            self.is_heard.set()


class User:
    """Somebody who answers forms, and knows what was asked."""

    def __init__(self) -> None:
        self.asked = []

    def answer(self, params) -> dict:
        self.asked.append(params.message)
        return {"action": "accept", "content": {"color": "blue"}}


def own(names, server: str) -> list[str]:
    """Those of the names that are one server's."""
    return [name for name in map(str, names) if name.startswith((f"{server}__", f"test://{server}/"))]


async def see(client, user: User, server: str) -> dict:
    """Uses everything that a server has. The client's `abandon` cancels the call that runs, where leaving it does not."""

    async def call(tool: str, arguments: dict, progress: Progress | None = None) -> str:
        result = await client.call_tool(f"{server}__{tool}", arguments, progress_callback=progress)
        return result.content[0].text

    seen = {"tools": own([tool.name for tool in (await client.list_tools()).tools], server)}
    seen["greet"] = await call("greet", {"name": "Ada"})
    seen["resources"] = own([resource.uri for resource in (await client.list_resources()).resources], server)
    seen["read"] = (await client.read_resource(seen["resources"][0])).contents[0].text
    seen["prompts"] = own([prompt.name for prompt in (await client.list_prompts()).prompts], server)
    prompt = await client.get_prompt(seen["prompts"][0], {"to": "Bob"})
    seen["prompt"] = prompt.messages[0].content.text

    async def run(tool: str, progress: Progress) -> None:
        seen[tool] = await call(tool, {}, progress)

    progress = Progress(2)
    async with anyio.create_task_group() as group:
        group.start_soon(run, "count", progress)
        await progress.is_heard.wait()
        seen["enough"] = await call("enough", {})
    seen["progress"] = progress.reports

    seen["wait"] = None
    progress = Progress(1)
    async with anyio.create_task_group() as group:
        group.start_soon(run, "wait", progress)
        await progress.is_heard.wait()
        await client.abandon()
        group.cancel_scope.cancel()
    seen["cancelled"] = await call("cancelled", {})

    seen["ask"] = await call("ask", {})
    seen["asked"], user.asked = user.asked, []
    return seen


async def report(client, user: User, revision: str) -> None:
    """Prints what is seen of all servers."""
    seen = {server: await see(client, user, server) for server in settings["servers"]}
    print(json.dumps({"revision": revision, "servers": seen}))

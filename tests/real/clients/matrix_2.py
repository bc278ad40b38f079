"""A client of the matrix with the SDK for Python 2.x, in either era."""

import os

import anyio
from mcp import Client, StdioServerParameters
from mcp_types import ElicitResult

from matrix import User, report, settings


class AbandoningClient(Client):
    """A client that cancels a call at its server as soon as nobody waits for it any longer."""

    async def abandon(self) -> None:
        pass


def connection():
    if "url" in settings:
        return settings["url"]
    return StdioServerParameters(command=settings["command"], args=settings["args"], env=dict(os.environ))


async def main() -> None:
    user = User()

    async def answer(_, params):
        return ElicitResult(**user.answer(params))

    mode = "legacy" if settings["era"] == "legacy" else "auto"
    async with AbandoningClient(connection(), mode=mode, elicitation_callback=answer) as client:
        await report(client, user, client.protocol_version)


anyio.run(main)

"""A client of the matrix with the SDK for Python 1.x, which knows the legacy era only."""

import os

import anyio
from mcp import ClientSession, StdioServerParameters, types
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

from matrix import User, report, settings


class Client(ClientSession):
    """A session that cancels a call at its server, which this SDK leaves to its user."""

    token: str | int = 0

    async def heard(self, message) -> None:
        """Keeps the token of the progress that was reported last: it is the id of the request."""
        if isinstance(message, types.ServerNotification):
            if isinstance(message.root, types.ProgressNotification):
                self.token = message.root.params.progressToken

    async def abandon(self) -> None:
        params = types.CancelledNotificationParams(requestId=self.token)
        await self.send_notification(types.ClientNotification(types.CancelledNotification(params=params)))


def connection():
    if "url" in settings:
        return streamable_http_client(settings["url"])
    command, args = settings["command"], settings["args"]
    return stdio_client(StdioServerParameters(command=command, args=args, env=dict(os.environ)))


async def main() -> None:
    user = User()

    async def answer(_, params):
        return types.ElicitResult(**user.answer(params))

    async with connection() as (read, write, *_):
        client = Client(read, write, elicitation_callback=answer, message_handler=lambda message: client.heard(message))
        async with client:
            revision = (await client.initialize()).protocolVersion
            await report(client, user, revision)


anyio.run(main)

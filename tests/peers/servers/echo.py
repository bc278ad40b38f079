"""A server with the official SDK for Python, over stdio, whose one tool echoes."""

try:
    from mcp.server.mcpserver import MCPServer
except ImportError:
    # Version 1.x has it under another name.
    from mcp.server.fastmcp import FastMCP as MCPServer

# By default version 1.x writes a line to its log for each call, which no other server does.
server = MCPServer("echo", log_level="WARNING")


# By default it would answer twice: with a text, and with the same as structured content.
@server.tool(structured_output=False)
async def echo(text: str) -> str:
    """Answers with its `text`"""
    return text


server.run()

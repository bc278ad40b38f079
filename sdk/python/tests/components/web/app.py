"""A client of a web service with a key."""

from tenon import ToolError, http, secrets, tool


@tool
def weather(url: str, city: str) -> dict:
    """Asks for the weather."""
    headers = {"authorization": f"Bearer {secrets.get('api-key')}"}
    return http.get(f"{url}/weather", params={"city": city}, headers=headers).raise_for_status().json()


@tool
def report(url: str, text: str) -> str:
    """Posts a report."""
    response = http.post(f"{url}/reports", json={"text": text})
    return f"{response.status} {response.headers['x-length']} {response.text}"


@tool
async def both(url: str) -> list[str]:
    """Asks twice at the same time."""
    import asyncio

    answers = await asyncio.gather(http.aget(f"{url}/slow"), http.aget(f"{url}/slow"))
    return [answer.text for answer in answers]


@tool
def lines(url: str) -> list[str]:
    """Reads a stream."""
    with http.get(f"{url}/lines") as response:
        return list(response.iter_lines())


@tool
def again(url: str) -> str:
    """Asks a server that is busy at first, and one that redirects."""
    return http.get(f"{url}/busy").text + http.get(f"{url}/redirect").text


@tool
def judge(url: str) -> str:
    """Reads the status alone."""
    answer = http.get(f"{url}/nothing")
    if answer.status == 404:
        raise ToolError("there is nothing")
    return "something"


@tool
def late(url: str) -> str:
    """Asks a server that is too slow."""
    return http.get(f"{url}/slow", timeout=0.05, retries=0).text

"""{{description}}."""

from tenon import resource

PLANETS = ("Mercury", "Venus", "Earth", "Mars", "Jupiter", "Saturn", "Uranus", "Neptune")


@resource("planets://all")
def planets() -> str:
    """All planets, a line each."""
    return "\n".join(PLANETS)


@resource("planets://{number}")
def planet(number: int) -> str | None:
    """One planet, by its number from the sun."""
    return PLANETS[number - 1] if 1 <= number <= len(PLANETS) else None

"""What the plugin does."""

PLANETS = ("Mercury", "Venus", "Earth", "Mars", "Jupiter", "Saturn", "Uranus", "Neptune")


def planet(number: int) -> str:
    """The name of a planet, by its number from the sun."""
    if not 1 <= number <= len(PLANETS):
        raise LookupError(f"there is no planet {number}")
    return PLANETS[number - 1]

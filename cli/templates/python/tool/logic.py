"""What the plugin does."""


def greet(name: str) -> str:
    name = name.strip()
    if not name:
        raise ValueError("`name` is empty: say whom to greet")
    return f"Hello, {name}!"

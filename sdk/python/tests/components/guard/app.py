"""Guards the tools of a project."""

from tenon import Veto, config, hook, tool


@tool
def delete(path: str) -> str:
    """Pretends to delete a file."""
    return f"{path} is deleted"


@hook("before-tool-call", priority=10)
def guard(context: dict) -> None:
    """Lets files of the project go to the trash only."""
    if not context["tool"].endswith("__delete"):
        return
    if context["arguments"]["path"].startswith("/"):
        raise Veto("it is no file of the project")
    context["arguments"]["path"] = config.get("trash", "trash/") + context["arguments"]["path"]


@hook("acme:deploy", audit=True)
def deploy(context: dict) -> Veto | None:
    """Would stop deployments."""
    return Veto("not on a Friday")

"""A list of tasks that outlives each call."""

from dataclasses import dataclass

from tenon import ToolError, notify, resource, state, tool


@dataclass
class Task:
    """A task."""

    title: str
    done: bool = False


@tool
def add(title: str) -> list[Task]:
    """Adds a task and lists all of them."""
    tasks = state.update("tasks", lambda tasks: [*tasks, {"title": title, "done": False}], default=[])
    notify.resource_updated("tasks://all")
    return [Task(**task) for task in tasks]


@tool
def finish(number: int) -> Task:
    """Marks a task as done, by its number from 1."""

    def change(tasks: list) -> list:
        if not 1 <= number <= len(tasks):
            raise ToolError(f"there is no task {number}: there are {len(tasks)}")
        tasks[number - 1]["done"] = True
        return tasks

    return Task(**state.update("tasks", change, default=[])[number - 1])


@tool
def count() -> int:
    """Counts how often it was called."""
    return state.increment("count")


@resource("tasks://all", subscribe=True)
def tasks() -> list:
    """All tasks."""
    return state.get("tasks", [])

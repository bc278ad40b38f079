"""The mistakes that authors make in Python, and all that they are told: file, line, cause and remedy.

`mistakes.txt` has the texts. With `TENON_BLESS=1` the tests write it.
"""

from __future__ import annotations

import contextlib
import importlib.util
import linecache
import os
import re
import sys
import tempfile
import textwrap
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Callable, Iterator

from support import SDK, describe

from tenon._registry import REGISTRY
from tenon.build import dependencies, description, project, unavailable
from tenon.build.problem import BuildError, Problem
from tenon.testing import Host

SNAPSHOT = Path(__file__).with_name("mistakes.txt")
HEAD = "from tenon import *\n"
FUTURE = "from __future__ import annotations\n"

#: An `app.py`, which begins with `from tenon import *`.
SOURCES: dict[str, str] = {
    "no type": """
        @tool
        def greet(name):
            '''Greets.'''
    """,
    "an unsupported type": """
        @tool
        def greet(at: complex) -> str:
            '''Greets.'''
    """,
    "an unsupported result": """
        @tool
        def greet() -> complex:
            '''Greets.'''
    """,
    "a type that is not imported": """
        from __future__ import annotations
        @tool
        def greet(at: Date) -> str:
            '''Greets.'''
    """,
    "no docstring": """
        @tool
        def greet(name: str) -> str:
            return name
    """,
    "a name twice": """
        @tool
        def greet() -> str:
            '''A.'''

        @tool(name="greet")
        def other() -> str:
            '''B.'''
    """,
    "a name that no tool can have": """
        @tool(name="greet people")
        def greet() -> str:
            '''A.'''
    """,
    "a wrong point": """
        @hook("before-tool-cal")
        def guard(context: dict):
            pass
    """,
    "a point with underscores": """
        @hook("before_plan")
        def guard(context: dict):
            pass
    """,
    "no point": """
        @hook
        def guard(context: dict):
            pass
    """,
    "a hook with arguments": """
        @hook("before-plan")
        def guard(context: dict, more: str):
            pass
    """,
    "a mutable default": """
        @tool
        def greet(names: list[str] = []) -> str:
            '''Greets.'''
    """,
    "a default of another type": """
        @tool
        def greet(times: int = "3") -> str:
            '''Greets.'''
    """,
    "a Field as default": """
        @tool
        def greet(times: int = Field(minimum=1)) -> str:
            '''Greets.'''
    """,
    "arguments without names": """
        @tool
        def greet(*names: str) -> str:
            '''Greets.'''
    """,
    "a method": """
        class Greeter:
            @tool
            def greet(self, name: str) -> str:
                '''Greets.'''
    """,
    "a tool that yields": """
        @tool
        async def greet() -> str:
            '''Greets.'''
            yield ""
    """,
    "a method as a hook": """
        class Guard:
            @hook("before-plan")
            def guard(self, context: dict):
                pass
    """,
    "an option that there is not": """
        @tool(readonly=True)
        def greet() -> str:
            '''Greets.'''
    """,
    "a capability that there is not": """
        @tool(capabilities=["networking"])
        def greet() -> str:
            '''Greets.'''
    """,
    "a variable without a parameter": """
        @resource("notes://{name}")
        def note() -> str:
            return ""
    """,
    "a parameter without a variable": """
        @resource("notes://all")
        def note(name: str) -> str:
            return ""
    """,
    "a URI that is none": """
        @resource("notes/{name}")
        def note(name: str) -> str:
            return ""
    """,
    "a template that is uncertain": """
        @resource("notes://{a}{b}")
        def note(a: str, b: str) -> str:
            return ""
    """,
    "a prompt with a list": """
        @prompt
        def ask(names: list[str]) -> str:
            return ""
    """,
    "a completion of nothing": """
        def ask(name: str) -> str:
            return ""

        @complete(ask, "name")
        def names(typed: str):
            return []
    """,
    "a completion of another argument": """
        @prompt
        def ask(name: str) -> str:
            return ""

        @complete(ask, "nmae")
        def names(typed: str):
            return []
    """,
    "handlers that disagree": """
        @hook("before-plan")
        def one(context: dict):
            pass

        @hook("before-plan", audit=True)
        def other(context: dict):
            pass
    """,
    "a service at import": """
        KEY = secrets.get("api-key")

        @tool
        def greet() -> str:
            '''Greets.'''
    """,
    "an exception at import": """
        print(1 / 0)
    """,
    "a syntax error": """
        def greet(:
            pass
    """,
    "a module that is not in the dependencies": """
        import frobnicate.parts
    """,
    "nothing at all": """
        print()
    """,
    "an option without its name": """
        tool()
        @tool("greet")
        def greet() -> str:
            '''Greets.'''
    """,
    "a tool of a lambda": """
        greet = tool(lambda name: name)

        def other() -> None: ...
    """,
    "a class as a tool": """
        class Greeter:
            '''Greets.'''

        greet = tool(Greeter)
    """,
    "a class method as a tool": """
        class Greeter:
            @classmethod
            @tool
            def greet(cls, name: str) -> str:
                '''Greets.'''
    """,
    "a decorator above the tool": """
        import functools

        def twice(function):
            def wrapper(*args, **kwargs):
                return function(*args, **kwargs)
            return wrapper

        @tool
        @twice
        def greet(name: str) -> str:
            '''Greets.'''
    """,
    "a documented parameter that there is not": """
        @tool
        def greet(name: str) -> str:
            '''Greets.

            Args:
                nmae: Whom to greet.
            '''
    """,
    "keywords without names": """
        @tool
        def greet(**options: str) -> str:
            '''Greets.'''
    """,
    "a parameter by position alone": """
        @tool
        def greet(name: str, /) -> str:
            '''Greets.'''
    """,
    "a set as default": """
        @tool
        def greet(names: set[str] = set()) -> str:
            '''Greets.'''
    """,
    "a default without a JSON form": """
        @tool
        def greet(by: object = object()) -> str:
            '''Greets.'''
    """,
    "a plain class": """
        class Point:
            def __init__(self, x):
                self.x = x

        @tool
        def move(to: Point) -> str:
            '''Moves.'''
    """,
    "a member without a JSON form": """
        import dataclasses

        @dataclasses.dataclass
        class Point:
            x: complex

        @tool
        def move(to: Point) -> str:
            '''Moves.'''
    """,
    "an enum of objects": """
        import enum

        class Mood(enum.Enum):
            GOOD = (1, 2)

        @tool
        def greet(mood: Mood) -> str:
            '''Greets.'''
    """,
    "numbers as keys": """
        @tool
        def count(of: dict[int, str]) -> str:
            '''Counts.'''
    """,
    "a type that is a value": """
        @tool
        def greet(times: 3) -> str:
            '''Greets.'''
    """,
    "a function as a type": """
        @tool
        def greet(name: any) -> str:
            '''Greets.'''
    """,
    "a list of two types": """
        @tool
        def greet(name: list[str, int]) -> str:
            '''Greets.'''
    """,
    "a context without a type": """
        @tool
        def greet(name: str, ctx) -> str:
            '''Greets.'''
    """,
    "FastMCP": """
        from fastmcp import FastMCP

        mcp = FastMCP("greeter")

        @mcp.tool
        def greet(name: str) -> str:
            '''Greets.'''
    """,
    "the FastMCP of the MCP package": """
        from mcp.server.fastmcp import FastMCP
    """,
    "FastMCP out of tenon": """
        from tenon import FastMCP
    """,
    "a name that tenon has not": """
        from tenon import tol
    """,
    "a member that tenon has not": """
        import tenon

        @tenon.tols
        def greet(name: str) -> str:
            '''Greets.'''
    """,
    "a method of tools": """
        @tool.register
        def greet(name: str) -> str:
            '''Greets.'''
    """,
    "a hook without a context": """
        @hook("before-plan")
        def guard():
            pass
    """,
    "a hook by a list": """
        @hook(["before-plan", "after-plan"])
        def guard(context: dict):
            pass
    """,
    "a hook with another option": """
        @hook("before-plan", order=3)
        def guard(context: dict):
            pass
    """,
    "a resource without a URI": """
        @resource
        def notes() -> str:
            '''Notes.'''
    """,
    "a URI with an open brace": """
        @resource("notes://{name")
        def note(name: str) -> str:
            '''A note.'''
    """,
    "a variable of a query without a default": """
        @resource("notes://all{?year}")
        def notes(year: int) -> str:
            '''Notes.'''
    """,
    "a fixed resource with a list": """
        @resource("notes://all", list=lambda: [])
        def notes() -> str:
            '''Notes.'''
    """,
    "a strategy without a subject": """
        @eval
        def concise() -> float:
            '''Judges.'''
    """,
    "a strategy without a description": """
        @eval
        def concise(subject: Subject) -> float:
            return 1.0
    """,
    "a provider without models": """
        birds = provider("birds", "Repeats")
    """,
    "a model without a request": """
        birds = provider("birds", "Repeats")

        @birds.model("parrot")
        def parrot() -> str:
            return ""
    """,
    "a model with another option": """
        birds = provider("birds", "Repeats")

        @birds.model("parrot", tokens=3)
        def parrot(request: CompletionRequest) -> str:
            return ""
    """,
    "a completion that takes nothing": """
        @prompt
        def ask(name: str) -> str:
            return ""

        @complete(ask, "name")
        def names():
            return []
    """,
    "requests": """
        import requests
    """,
    "numpy": """
        import numpy as np
    """,
    "a call at import": """
        @tool
        def greet(name: str) -> str:
            '''Greets.'''
            return name.upper()

        greet(3)
    """,
    "the context at import": """
        CALL = context().call_id
    """,
    "input at import": """
        NAME = input("Name? ")
    """,
    "a server at import": """
        import asyncio

        async def main() -> None:
            raise OSError("no port")

        if __name__ != "__main__":
            asyncio.run(main())
    """,
    "a colon that is missing": """
        @tool
        def greet(name: str) -> str
            return name
    """,
    "an indentation that is wrong": """
        @tool
        def greet(name: str) -> str:
            '''Greets.'''
              return name
    """,
    "tabs among spaces": """
        @tool
        def greet(name: str) -> str:
                if name:
        \treturn name
    """,
    "an await outside of async": """
        import asyncio

        @tool
        def greet(name: str) -> str:
            '''Greets.'''
            await asyncio.sleep(1)
    """,
    "an exit at import": """
        import sys

        sys.exit(3)
    """,
}

#: A source, and what a test does with its module `app` by a host: what fails names the plugin's line.
RESULTS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "a result of another type": (
        """
        @tool
        def count() -> str:
            '''Counts.'''
            return 3
        """,
        lambda app: Host().call_tool(app.count),
    ),
    "None where a text is said": (
        """
        @tool
        def greet(name: str) -> str:
            '''Greets.'''
            print(f"Hello, {name}!")
        """,
        lambda app: Host().call_tool(app.greet, {"name": "Ada"}),
    ),
    "a dictionary where a dataclass is said": (
        """
        import dataclasses

        @dataclasses.dataclass
        class Point:
            x: float

        @tool
        def origin() -> Point:
            '''The origin.'''
            return {"x": 0.0}
        """,
        lambda app: Host().call_tool(app.origin),
    ),
    "a member of another type": (
        """
        @tool
        def count() -> dict[str, int]:
            '''Counts.'''
            return {"words": "three"}
        """,
        lambda app: Host().call_tool(app.count),
    ),
    "numbers as keys of a result": (
        """
        @tool
        def count() -> dict[str, int]:
            '''Counts.'''
            return {3: 1}
        """,
        lambda app: Host().call_tool(app.count),
    ),
    "a number that JSON has not": (
        """
        @tool
        def mean() -> float:
            '''The mean.'''
            return float("nan")
        """,
        lambda app: Host().call_tool(app.mean),
    ),
    "a number that JSON has not in a dictionary": (
        """
        @tool
        def mean() -> dict:
            '''The mean.'''
            return {"values": [1.0, float("inf")]}
        """,
        lambda app: Host().call_tool(app.mean),
    ),
    "an object without a JSON form": (
        """
        @tool
        def find():
            '''Finds.'''
            return object()
        """,
        lambda app: Host().call_tool(app.find),
    ),
    "an await that is forgotten": (
        """
        async def later() -> str:
            return "Hello!"

        @tool
        def greet() -> str:
            '''Greets.'''
            return later()
        """,
        lambda app: Host().call_tool(app.greet),
    ),
    "an await that is forgotten in an async tool": (
        """
        async def later() -> str:
            return "Hello!"

        @tool
        async def greet() -> str:
            '''Greets.'''
            return later()
        """,
        lambda app: Host().call_tool(app.greet),
    ),
    "an event loop in a tool": (
        """
        import asyncio

        async def later() -> str:
            return "Hello!"

        @tool
        async def greet() -> str:
            '''Greets.'''
            waiting = later()
            try:
                return asyncio.run(waiting)
            finally:
                waiting.close()
        """,
        lambda app: Host().call_tool(app.greet),
    ),
    "an exception": (
        """
        GREETINGS = {"en": "Hello"}

        @tool
        def greet(language: str) -> str:
            '''Greets.'''
            return GREETINGS[language]
        """,
        lambda app: Host().call_tool(app.greet, {"language": "fr"}),
    ),
    "a variable of the environment": (
        """
        import os

        @tool
        def greet() -> str:
            '''Greets.'''
            return os.environ["NAME_OF_NOBODY"]
        """,
        lambda app: Host().call_tool(app.greet),
    ),
    "a file that is not there": (
        """
        @tool
        def greet() -> str:
            '''Greets.'''
            with open("names.txt") as names:
                return names.read()
        """,
        lambda app: Host().call_tool(app.greet),
    ),
    "input": (
        """
        @tool
        def greet() -> str:
            '''Greets.'''
            raise EOFError  # As `input` does without a terminal.
        """,
        lambda app: Host().call_tool(app.greet),
    ),
    "an error code that there is not": (
        """
        @tool
        def greet() -> str:
            '''Greets.'''
            raise Error("internal", "later")
        """,
        lambda app: Host().call_tool(app.greet),
    ),
    "content that is none": (
        """
        @tool
        def greet() -> ToolResult:
            '''Greets.'''
            return ToolResult([3])
        """,
        lambda app: Host().call_tool(app.greet),
    ),
    "a secret that is not granted": (
        """
        @tool
        def greet() -> str:
            '''Greets.'''
            return secrets.get("api-key")
        """,
        lambda app: Host().call_tool(app.greet),
    ),
    "a request that is not granted": (
        """
        @tool
        def greet() -> str:
            '''Greets.'''
            return http.get("https://api.example.com/hello").text
        """,
        lambda app: Host().call_tool(app.greet),
    ),
    "state that is not granted": (
        """
        @tool
        def count() -> int:
            '''Counts.'''
            return state.increment("calls")
        """,
        lambda app: Host().call_tool(app.count),
    ),
    "a scope that there is not": (
        """
        @tool
        def count() -> int:
            '''Counts.'''
            return state.bucket("global").increment("calls")
        """,
        lambda app: Host(state=["project"]).call_tool(app.count),
    ),
    "state without a JSON form": (
        """
        @tool
        def keep() -> None:
            '''Keeps.'''
            state.set("at", object())
        """,
        lambda app: Host(state=["project"]).call_tool(app.keep),
    ),
    "a function that is no tool": (
        """
        def greet() -> str:
            return "Hello!"
        """,
        lambda app: Host().call_tool(app.greet),
    ),
    "an outcome that is none": (
        """
        @hook("before-tool-call")
        def guard(context: dict):
            return False
        """,
        lambda app: Host().handle(app.guard, {"tool": "rm", "arguments": {}}),
    ),
    "a context without a JSON form": (
        """
        @hook("before-tool-call")
        def guard(context: dict):
            context["arguments"]["by"] = object()
        """,
        lambda app: Host().handle(app.guard, {"tool": "rm", "arguments": {}}),
    ),
    "a resource without a JSON form": (
        """
        @resource("notes://all")
        def notes():
            return object()
        """,
        lambda app: Host().read_resource("notes://all", app.notes),
    ),
    "a list of texts for several variables": (
        """
        @resource("notes://{folder}/{name}", list=lambda: ["one"])
        def note(folder: str, name: str) -> str:
            return ""
        """,
        lambda app: Host().list_resources(app.note),
    ),
    "a listed resource of another URI": (
        """
        @resource("notes://{name}", list=lambda: [ResourceLink("tasks://one")])
        def note(name: str) -> str:
            return ""
        """,
        lambda app: Host().list_resources(app.note),
    ),
    "a listed resource with another variable": (
        """
        @resource("notes://{name}", list=lambda: [{"nmae": "one"}])
        def note(name: str) -> str:
            return ""
        """,
        lambda app: Host().list_resources(app.note),
    ),
    "a prompt of numbers": (
        """
        @prompt
        def ask() -> str:
            return 3
        """,
        lambda app: Host().get_prompt(app.ask),
    ),
    "a prompt with dictionaries": (
        """
        @prompt
        def ask():
            return [{"role": "user", "content": "Hello!"}]
        """,
        lambda app: Host().get_prompt(app.ask),
    ),
    "a prompt of the system": (
        """
        @prompt
        def ask():
            return PromptMessage("system", "Be brief.")
        """,
        lambda app: Host().get_prompt(app.ask),
    ),
    "a score above one": (
        """
        @eval
        def concise(subject: Subject) -> float:
            '''Judges.'''
            return 2.0
        """,
        lambda app: Host().evaluate(app.concise, {"output": "a"}),
    ),
    "a judgement in words": (
        """
        @eval
        def concise(subject: Subject) -> str:
            '''Judges.'''
            return "good"
        """,
        lambda app: Host().evaluate(app.concise, {"output": "a"}),
    ),
    "a verdict that there is not": (
        """
        @eval
        def concise(subject: Subject) -> Evaluation:
            '''Judges.'''
            return Evaluation(1.0, "passed")
        """,
        lambda app: Host().evaluate(app.concise, {"output": "a"}),
    ),
    "a model that answers with a dictionary": (
        """
        birds = provider("birds", "Repeats")

        @birds.model("parrot")
        def parrot(request: CompletionRequest):
            return {"text": "hi"}
        """,
        lambda app: Host().complete_with(app.parrot, "hi"),
    ),
    "models that are names": (
        """
        birds = provider("birds", "Repeats")

        @birds.models(lambda: ["parrot"])
        def answer(request: CompletionRequest) -> str:
            return "hi"
        """,
        lambda app: app.answer.__tenon__.models(),
    ),
    "suggestions that are no texts": (
        """
        @prompt
        def ask(year: int) -> str:
            return ""

        @complete(ask, "year")
        def years(typed: str):
            return [2024, 2025]
        """,
        lambda app: Host().complete_argument(app.ask, "year"),
    ),
}

TRIP = """
    import dataclasses
    import datetime
    import enum

    class Mode(enum.Enum):
        TRAIN = "train"
        BOAT = "boat"

    @dataclasses.dataclass
    class Stop:
        city: str
        nights: int = 1

    @tool
    def plan(on: datetime.date, mode: Mode, stops: list[Stop] | None = None, budget: float = 0.0) -> str:
        '''Plans a trip.'''
        return ""

    @prompt
    def pack(days: int) -> str:
        return ""

    @eval
    def cheap(subject: Subject, most: int = 100) -> bool:
        '''Judges.'''
        return config.get("most", most, int) > 0

    @resource("trips://{number}")
    def trip(number: int) -> str:
        return ""
"""

#: Arguments that callers pass to `TRIP`: what is told is for them, so it names the argument and no line.
ARGUMENTS: dict[str, Callable[[Any], Any]] = {
    "an argument that is missing": lambda app: Host().call_tool(app.plan, {"on": "2025-01-31"}),
    "an argument that there is not": lambda app: Host().call_tool(
        app.plan, {"on": "2025-01-31", "mdoe": "boat"}
    ),
    "a value that is misspelled": lambda app: Host().call_tool(app.plan, {"on": "2025-01-31", "mode": "trian"}),
    "a date in another format": lambda app: Host().call_tool(app.plan, {"on": "31.01.2025", "mode": "boat"}),
    "a member of another type": lambda app: Host().call_tool(
        app.plan, {"on": "2025-01-31", "mode": "boat", "stops": [{"city": "Oslo"}, {"city": "Rome", "nights": "2"}]}
    ),
    "a member that is misspelled": lambda app: Host().call_tool(
        app.plan, {"on": "2025-01-31", "mode": "boat", "stops": [{"ctiy": "Oslo"}]}
    ),
    "a number as text": lambda app: Host().call_tool(
        app.plan, {"on": "2025-01-31", "mode": "boat", "budget": "100"}
    ),
    "an object for a list": lambda app: Host().call_tool(
        app.plan, {"on": "2025-01-31", "mode": "boat", "stops": {"city": "Oslo"}}
    ),
    "all of it at once": lambda app: Host().call_tool(app.plan, {"on": 3, "mode": None, "bugdet": 1}),
    "arguments that are no object": lambda app: Host().call_tool(app.plan, ["2025-01-31"]),
    "arguments without a JSON form": lambda app: Host().call_tool(app.plan, {"on": object()}),
    "an argument of a prompt that is no number": lambda app: Host().get_prompt(app.pack, {"days": "many"}),
    "an argument of a prompt that there is not": lambda app: Host().get_prompt(app.pack, {"dasy": "3"}),
    "an option of another type": lambda app: Host().evaluate(app.cheap, {"output": "a"}, most="many"),
    "a subject without an output": lambda app: Host().evaluate(app.cheap, {"result": "a"}),
    "a variable of a URI that is no number": lambda app: Host().read_resource("trips://oslo", app.trip),
    "a setting of another type": lambda app: Host(config={"most": "many"}).evaluate(app.cheap, {"output": "a"}),
    "a URI of no resource": lambda app: Host().read_resource("notes://oslo", app.trip),
}

APP = """
from tenon import tool

@tool
def greet(name: str) -> str:
    '''Greets.'''
    return name
"""

MANIFEST = '[plugin]\nid = "greeter"\n'

#: The files of a plugin's folder, beside `plugin.toml` and `app.py` as above.
PROJECTS: dict[str, dict[str, str | None]] = {
    "no plugin.toml": {"plugin.toml": None},
    "no id": {"plugin.toml": '[plugin]\nname = "greeter"\n'},
    "a manifest that is no TOML": {"plugin.toml": "[plugin]\nid = greeter\n"},
    "dependencies in a text": {"pyproject.toml": '[project]\nname = "greeter"\ndependencies = "humanize"\n'},
    "a Python that no component has": {
        "pyproject.toml": '[project]\nname = "greeter"\nrequires-python = ">=3.15"\n'
    },
    "a Python that is too old": {"pyproject.toml": '[project]\nname = "greeter"\nrequires-python = ">=3.10,<3.13"\n'},
    "a module called tenon.py": {"tenon.py": ""},
    "no app.py": {"app.py": None, "main.py": APP},
    "an import that ends the interpreter": {"app.py": "import os\nos._exit(3)\n"},
    "a mistake in another file": {"app.py": "import parts\n", "parts.py": "import json\nimport frobnicate\n"},
    "services that are not requested": {
        "app.py": APP.replace("import tool", "import http, secrets, state, tool")
    },
    "modules that no component has": {
        "app.py": "import socket\nimport threading\nfrom concurrent.futures import ThreadPoolExecutor\n"
        "import subprocess\nfrom urllib import request\n" + APP
    },
    "what only a terminal has": {
        "app.py": APP.replace("return name", 'print(name)\n    return input("Name? ")') + '\nprint("", end="")\n'
    },
    "files and variables that are not requested": {
        "app.py": "import os\n\nHOME = os.environ['HOME']\n"
        + APP.replace("return name", 'return open("/notes/" + name).read() + os.getenv("LANG")')
    },
    "sleep": {
        "app.py": "import time\n"
        + APP.replace("return name", "time.sleep(86400)\n    return name")
        + APP.replace("def greet", "async def later").replace("return name", "time.sleep(1)\n    return name")
    },
}

#: What has no line: there is no file, or nothing knows which line it was.
WITHOUT_LINE = {"no plugin.toml", "an import that ends the interpreter", "a request that is not granted"}

#: Where the text says all that could be said: what to write depends on the function.
WITHOUT_REMEDY = {"an exception", "an error code that there is not", "content that is none", "a scope that there is not"}

#: What pip says of a dependency, and what the author is told of it.
DEPENDENCIES: dict[str, Callable[[project.Project], Problem]] = {
    "a dependency with machine code": lambda plugin: dependencies._machine_code(plugin, "numpy", "2.0.0", []),
    "a dependency that needs machine code": lambda plugin: dependencies._machine_code(
        plugin, "pydantic-core", "2.0.0", ["pydantic"]
    ),
    "a dependency that there is not": lambda plugin: dependencies._failure(
        plugin, "ERROR: No matching distribution found for humanise>=4\n"
    ),
}

PYPROJECT = '[project]\nname = "greeter"\ndependencies = [\n  "numpy",\n  "pydantic>=2",\n  "humanise>=4",\n]\n'


@contextlib.contextmanager
def folder_of(files: dict[str, str]) -> Iterator[Path]:
    """A folder with these files, which is the current one."""
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        for file, text in files.items():
            (folder / file).write_text(text, encoding="utf-8")
        os.chdir(folder)
        try:
            yield folder
        finally:
            os.chdir(before)


def module_source(text: str) -> str:
    """The text of an `app.py`."""
    text = textwrap.dedent(text).lstrip("\n")
    is_future = text.startswith(FUTURE)
    return (FUTURE if is_future else "") + HEAD + text.removeprefix(FUTURE)


def told_of_source(source: str) -> str:
    """What `tenon.describe` says of an `app.py`."""
    problems = describe({"app.py": module_source(source)})["problems"]
    return "\n".join(str(Problem(**problem)) for problem in problems)


def told_of_call(source: str, call: Callable[[Any], Any]) -> str:
    """What a test of an `app.py` is told."""
    contributions = list(REGISTRY.contributions)
    with folder_of({"app.py": module_source(source)}) as folder:
        linecache.checkcache()
        spec = importlib.util.spec_from_file_location("app", folder / "app.py")
        assert spec is not None and spec.loader is not None
        app = importlib.util.module_from_spec(spec)
        # Classes look for the types of their members in their module.
        sys.modules["app"] = app
        try:
            with contextlib.redirect_stdout(None):
                spec.loader.exec_module(app)
                call(app)
        except Exception as exception:
            return str(exception)
        finally:
            del sys.modules["app"]
            REGISTRY.contributions[:] = contributions
    return ""


def told_of_project(files: dict[str, str | None]) -> str:
    """What the build of a folder says before it makes a component."""
    whole = {"plugin.toml": MANIFEST, "app.py": APP, **files}
    with folder_of({name: text for name, text in whole.items() if text is not None}) as folder:
        try:
            plugin = project.read(folder)
            described = description.describe(plugin, [SDK / "src"])
        except BuildError as error:
            said = [f"error: {problem}" for problem in error.problems]
        else:
            found = description.warnings(described, plugin.capabilities)
            found += unavailable.warnings(folder, plugin.capabilities)
            said = [f"warning: {problem}" for problem in found]
        return "\n".join(said).replace(str(folder), "FOLDER")


def told_of_dependency(problem: Callable[[project.Project], Problem]) -> str:
    """What the build says where a dependency cannot be installed."""
    with folder_of({"plugin.toml": MANIFEST, "pyproject.toml": PYPROJECT}) as folder:
        return f"error: {problem(project.read(folder))}"


def texts() -> dict[str, dict[str, str]]:
    """All that is told, by the kind and the name of the mistake."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        of_sources = dict(zip(SOURCES, pool.map(told_of_source, SOURCES.values())))
    return {
        "source": of_sources,
        "result": {name: told_of_call(*row) for name, row in RESULTS.items()},
        "argument": {name: told_of_call(TRIP, call) for name, call in ARGUMENTS.items()},
        "project": {name: told_of_project(files) for name, files in PROJECTS.items()},
        "dependency": {name: told_of_dependency(row) for name, row in DEPENDENCIES.items()},
    }


class Mistakes(unittest.TestCase):
    maxDiff = None
    told: dict[str, dict[str, str]]

    @classmethod
    def setUpClass(cls) -> None:
        cls.told = texts()

    def test_all_that_is_told_is_in_the_snapshot(self) -> None:
        told = "\n".join(
            f"## {kind}: {name}\n{text}\n" for kind, rows in self.told.items() for name, text in rows.items()
        )
        if os.environ.get("TENON_BLESS") == "1":
            SNAPSHOT.write_text(told, encoding="utf-8")
        self.assertEqual(
            told, SNAPSHOT.read_text(encoding="utf-8"), "run it with TENON_BLESS=1 and see what has changed"
        )

    def test_each_text_names_a_file_a_line_and_a_remedy(self) -> None:
        for kind in ("source", "result", "project", "dependency"):
            for name, text in self.told[kind].items():
                with self.subTest(f"{kind}: {name}"):
                    if name not in WITHOUT_LINE:
                        self.assertRegex(text, r"\b[\w.]+\.(py|toml):\d+")
                    if name in WITHOUT_REMEDY:
                        continue
                    self.assertEqual(
                        len(re.findall(r"\n  hint: .", text)), max(1, len(re.findall(r"(?m)^(?:\w+: )?\S+:\d+: ", text)))
                    )

    def test_no_text_shows_the_package_itself(self) -> None:
        for rows in self.told.values():
            for name, text in rows.items():
                with self.subTest(name):
                    self.assertNotIn(str(SDK), text)
                    self.assertNotIn("Traceback", text)

    def test_each_argument_is_named_with_what_was_expected(self) -> None:
        for name, text in self.told["argument"].items():
            with self.subTest(name):
                self.assertRegex(text, r"expected |unknown argument |is missing|no \"output\"|no resource|no JSON form")

    def test_all_mistakes_of_a_file_are_told_at_once(self) -> None:
        source = HEAD + "@tool\ndef a(x):\n    pass\n\n@tool\ndef b() -> str:\n    pass\n"
        problems = describe({"app.py": source})["problems"]
        self.assertEqual([problem["line"] for problem in problems], [3, 7])

    def test_a_file_must_not_hide_a_module_that_a_component_needs(self) -> None:
        [problem] = describe({"app.py": "", "wit_world.py": ""})["problems"]
        self.assertEqual((problem["file"], problem["line"]), ("wit_world.py", 1))
        self.assertIn("hides the module wit_world", problem["message"])

    def test_what_a_module_prints_is_no_part_of_the_description(self) -> None:
        source = HEAD + 'print("hi")\n@tool\ndef a() -> str:\n    """A."""\n'
        self.assertEqual(describe({"app.py": source})["worlds"], ["tool"])

    def test_what_is_requested_is_no_mistake(self) -> None:
        app = 'import os\n\ndef a() -> str:\n    return open("/a").read() + os.environ["LANG"]\n'
        with folder_of({"app.py": app}) as folder:
            self.assertEqual(unavailable.warnings(folder, {"filesystem": [], "environment": []}), [])


class Described(unittest.TestCase):
    def test_a_description_names_worlds_exports_and_services(self) -> None:
        source = HEAD + (
            '@tool\nasync def a() -> str:\n    """A."""\n    return http.get("x").text\n\n'
            '@resource("a:b", subscribe=True)\ndef b() -> str:\n    return ""\n\n'
            '@prompt\ndef c(mood: bool) -> str:\n    return ""\n'
        )
        description = describe({"app.py": source.replace("import *", "import http, prompt, resource, tool")})
        self.assertEqual(description["worlds"], ["tool", "resource", "prompt"])
        self.assertEqual(description["exports"], ["subscriptions", "completions"])
        self.assertTrue(description["awaits"])
        self.assertEqual(description["services"], {"http": ["app.py", 1]})


if __name__ == "__main__":
    unittest.main()

"""The mistakes that authors make in Python, and what they are told: file, line, cause and remedy."""

from __future__ import annotations

import unittest
from typing import Any

from support import describe

HEAD = "from tenon import *\n"

#: The source, the line, what is said, and a part of the remedy.
MISTAKES: dict[str, tuple[str, int, str, str]] = {
    "no type": (
        '@tool\ndef greet(name):\n    """Greets."""\n',
        2, 'the parameter `name` of the tool "greet" has no type', "`name: str`",
    ),
    "an unsupported type": (
        '@tool\ndef greet(at: complex) -> str:\n    """Greets."""\n',
        2, 'the type complex of the parameter `at` of the tool "greet" has no JSON form', "a dataclass",
    ),
    "an unsupported result": (
        '@tool\ndef greet() -> complex:\n    """Greets."""\n',
        2, 'the type complex of the result of the tool "greet" has no JSON form', "return str, a dataclass",
    ),
    "a type that is not imported": (
        'from __future__ import annotations\n@tool\ndef greet(at: Date) -> str:\n    """Greets."""\n',
        0, "a type of the tool \"greet\" is not known: name 'Date' is not defined", "import the type",
    ),
    "no docstring": (
        "@tool\ndef greet(name: str) -> str:\n    return name\n",
        2, 'the tool "greet" has no description', "write a docstring",
    ),
    "a name twice": (
        '@tool\ndef greet() -> str:\n    """A."""\n\n@tool(name="greet")\ndef other() -> str:\n    """B."""\n',
        6, 'there are two tools of the name "greet": the other is at app.py:3', "rename",
    ),
    "a name that no tool can have": (
        '@tool(name="greet people")\ndef greet() -> str:\n    """A."""\n',
        2, '"greet people" can be no name of a tool', "128 characters",
    ),
    "a wrong point": (
        '@hook("before-tool-cal")\ndef guard(context: dict):\n    pass\n',
        2, 'the point "before-tool-cal", which does not exist: did you mean "before-tool-call"?', "acme:deploy",
    ),
    "a point with underscores": (
        '@hook("before_plan")\ndef guard(context: dict):\n    pass\n',
        2, 'did you mean "before-plan"?', "the points are",
    ),
    "no point": (
        "@hook\ndef guard(context: dict):\n    pass\n",
        2, 'the hook "guard" names no point', '@hook("before-tool-call")',
    ),
    "a hook with arguments": (
        '@hook("before-plan")\ndef guard(context: dict, more: str):\n    pass\n',
        2, "has other parameters than the context", "def guard(context: dict)",
    ),
    "a mutable default": (
        '@tool\ndef greet(names: list[str] = []) -> str:\n    """Greets."""\n',
        2, "the default of the parameter `names` of the tool \"greet\" is a list, which all calls would share", "None = None",
    ),
    "a default of another type": (
        '@tool\ndef greet(times: int = "3") -> str:\n    """Greets."""\n',
        2, "is not of its type: expected an integer", "change the type or the default",
    ),
    "a Field as default": (
        '@tool\ndef greet(times: int = Field(minimum=1)) -> str:\n    """Greets."""\n',
        2, "has a `Field` as its default value", "Annotated[str, Field(…)]",
    ),
    "arguments without names": (
        '@tool\ndef greet(*names: str) -> str:\n    """Greets."""\n',
        2, "takes `*names`, which has no names for a caller", "name each argument",
    ),
    "a method": (
        'class Greeter:\n    @tool\n    def greet(self, name: str) -> str:\n        """Greets."""\n',
        3, "is a method: nothing could be its `self`", "a function of the module",
    ),
    "a tool that yields": (
        '@tool\nasync def greet() -> str:\n    """Greets."""\n    yield ""\n',
        2, 'the tool "greet" yields, and a host takes one answer', "return a list",
    ),
    "a method as a hook": (
        'class Guard:\n    @hook("before-plan")\n    def guard(self, context: dict):\n        pass\n',
        3, "is a method: nothing could be its `self`", "a function of the module",
    ),
    "an option that there is not": (
        '@tool(readonly=True)\ndef greet() -> str:\n    """Greets."""\n',
        2, 'has no option "readonly": did you mean "read_only"?', "its options are",
    ),
    "a capability that there is not": (
        '@tool(capabilities=["networking"])\ndef greet() -> str:\n    """Greets."""\n',
        2, 'the capability "networking", which does not exist: did you mean "network"?', "the capabilities are",
    ),
    "a variable without a parameter": (
        '@resource("notes://{name}")\ndef note() -> str:\n    return ""\n',
        2, "has no parameter for the variable `name`", "`name: str`",
    ),
    "a parameter without a variable": (
        '@resource("notes://all")\ndef note(name: str) -> str:\n    return ""\n',
        2, "the parameter `name` of the resource \"note\" is no variable of its URI", "{name}",
    ),
    "a URI that is none": (
        '@resource("notes/{name}")\ndef note(name: str) -> str:\n    return ""\n',
        2, "has no scheme", "",
    ),
    "a template that is uncertain": (
        '@resource("notes://{a}{b}")\ndef note(a: str, b: str) -> str:\n    return ""\n',
        2, "follow each other without a text between them", "",
    ),
    "a prompt with a list": (
        '@prompt\ndef ask(names: list[str]) -> str:\n    return ""\n',
        2, "is no single value: a user types it as text", "`names: str`",
    ),
    "a completion of nothing": (
        'def ask(name: str) -> str:\n    return ""\n\n@complete(ask, "name")\ndef names(typed: str):\n    return []\n',
        5, "names neither a prompt nor a resource", "@prompt",
    ),
    "a completion of another argument": (
        '@prompt\ndef ask(name: str) -> str:\n    return ""\n\n@complete(ask, "nmae")\ndef names(typed: str):\n    return []\n',
        6, 'has no argument "nmae": did you mean "name"?', "its arguments are name",
    ),
    "handlers that disagree": (
        '@hook("before-plan")\ndef one(context: dict):\n    pass\n\n@hook("before-plan", audit=True)\ndef other(context: dict):\n    pass\n',
        6, "one audits and the other does not", "a plugin of its own",
    ),
    "a service at import": (
        'KEY = secrets.get("api-key")\n\n@tool\ndef greet() -> str:\n    """Greets."""\n',
        1, "importing app failed: Error: tenon.secrets needs a host", "do this within a function",
    ),
    "an exception at import": (
        "print(1 / 0)\n",
        1, "importing app failed: ZeroDivisionError: division by zero", "when the module is imported",
    ),
    "a syntax error": ("def greet(:\n    pass\n", 1, "invalid syntax", "correct the syntax"),
    "a module that is not in the dependencies": (
        "import frobnicate.parts\n", 1, 'there is no module "frobnicate"', 'add "frobnicate" to the `dependencies` of pyproject.toml',
    ),
    "nothing at all": ("print()\n", 0, "app.py contributes nothing", "from tenon import tool"),
}  # fmt: skip


class Mistakes(unittest.TestCase):
    def check(self, description: dict[str, Any], file: str, line: int, said: str, remedy: str) -> None:
        self.assertEqual(len(description["problems"]), 1, description["problems"])
        problem = description["problems"][0]
        self.assertIn(said, problem["message"])
        self.assertIn(remedy, problem["hint"])
        self.assertEqual(problem["file"], file)
        if line:
            self.assertEqual(problem["line"], line)

    def test_a_mistake_is_told_with_file_line_cause_and_remedy(self) -> None:
        for name, (source, line, said, remedy) in MISTAKES.items():
            with self.subTest(name):
                future = "from __future__ import annotations\n"
                head, body = (
                    (future + HEAD, source.removeprefix(future))
                    if source.startswith(future)
                    else (HEAD, source)
                )
                description = describe({"app.py": head + body})
                self.check(description, "app.py", line and line + head.count("\n"), said, remedy)

    def test_all_mistakes_of_a_file_are_told_at_once(self) -> None:
        source = HEAD + "@tool\ndef a(x):\n    pass\n\n@tool\ndef b() -> str:\n    pass\n"
        problems = describe({"app.py": source})["problems"]
        self.assertEqual([problem["line"] for problem in problems], [3, 7])

    def test_a_file_that_is_not_there_is_named(self) -> None:
        self.check(describe({}), "app.py", 1, "there is no app.py in ", "beside plugin.toml")

    def test_a_file_must_not_hide_a_module_that_a_component_needs(self) -> None:
        self.check(
            describe({"app.py": "", "wit_world.py": ""}),
            "wit_world.py",
            1,
            "hides the module wit_world",
            "rename",
        )

    def test_a_mistake_in_another_file_is_told_there(self) -> None:
        files = {"app.py": HEAD + "import parts\n", "parts.py": "import json\nimport frobnicate\n"}
        self.check(describe(files), "parts.py", 2, 'there is no module "frobnicate"', "pyproject.toml")

    def test_what_a_module_prints_is_no_part_of_the_description(self) -> None:
        source = HEAD + 'print("hi")\n@tool\ndef a() -> str:\n    """A."""\n'
        self.assertEqual(describe({"app.py": source})["worlds"], ["tool"])


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

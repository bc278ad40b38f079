"""Real components under a real host: built from `app.py` alone, approved and called.

They need the command that `TENON_BIN` names, what the package depends on, and for one of them PyPI.
"""

from __future__ import annotations

import concurrent.futures
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from typing import Any

from server import Server
from support import SDK

from tenon.build import sections

MISSING = [
    what
    for what, is_there in [
        ("the variable TENON_BIN", os.environ.get("TENON_BIN")),
        ("the package componentize-py", importlib.util.find_spec("componentize_py")),
    ]
    if not is_there
]
COMPONENTS = Path(__file__).parent / "components"
TEMPLATES = SDK.parent.parent / "cli" / "templates" / "python"

#: The component of a template, whose other files `tenon new` writes.
WORLDS = ["tool"]

FOLDER: Any = None
BUILT: dict[str, subprocess.CompletedProcess[str]] = {}


def build(folder: Path) -> subprocess.CompletedProcess[str]:
    """Builds the component of a folder."""
    [output] = re.findall(r'^path = "(.*)"$', (folder / "plugin.toml").read_text(), re.M)
    command = [sys.executable, "-m", "tenon.build", "--output", output, "--json"]
    variables = environment(PYTHONPATH=str(SDK / "src"), PYTHONDONTWRITEBYTECODE="1")
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, env=variables)


def problems(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    """The problems that a build has found."""
    found: list[dict[str, Any]] = json.loads(done.stdout)["problems"]
    return found


def environment(**more: str) -> dict[str, str]:
    """That of the command, with a home of its own."""
    home = str(Path(FOLDER.name) / "home")
    folders = {f"XDG_{kind}_HOME": f"{home}/{kind.lower()}" for kind in ("CONFIG", "STATE", "CACHE", "DATA")}
    return {**os.environ, "HOME": home, **folders, "API_KEY": "sekret-1234", **more}


def setUpModule() -> None:
    """Builds all components, as many at once as there are processors."""
    global FOLDER
    if MISSING:
        return
    FOLDER = tempfile.TemporaryDirectory()
    folders = []
    for component in COMPONENTS.iterdir():
        folders.append(Path(shutil.copytree(component, Path(FOLDER.name) / component.name)))
    for world in WORLDS:
        folder = Path(FOLDER.name) / f"template_{world}"
        shutil.copytree(COMPONENTS / "guard", folder)
        shutil.copy(TEMPLATES / world / "app.py", folder / "app.py")
        manifest = folder / "plugin.toml"
        manifest.write_text(manifest.read_text().replace("guard", f"template-{world}"))
        folders.append(folder)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for folder, done in zip(folders, pool.map(build, folders)):
            BUILT[folder.name] = done


def tearDownModule() -> None:
    """Removes them."""
    if FOLDER is not None:
        FOLDER.cleanup()


@unittest.skipIf(MISSING, f"missing: {', '.join(MISSING)}")
class Components(unittest.TestCase):
    maxDiff = None

    def tenon(self, component: str, *arguments: str, code: int | None = 0, **more: str) -> str:
        """What the command prints, with the log and the errors."""
        command = [
            os.environ["TENON_BIN"],
            "--trust",
            "--project",
            str(Path(FOLDER.name) / component),
            *arguments,
        ]
        done = subprocess.run(command, capture_output=True, text=True, env=environment(**more), timeout=120)
        said = done.stdout + done.stderr
        if code is not None:
            self.assertEqual(done.returncode, code, said)
        return said.strip()

    def use(self, component: str, plugin: str | None = None) -> None:
        """Fails if a component was not built, and approves it."""
        done = BUILT[component]
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.tenon(component, "approve", "--yes", plugin or component, code=None)

    def check(self, component: str, rows: list[tuple[str, dict[str, Any], int, str]]) -> None:
        """Calls tools, and compares the end of what is printed."""
        for tool, arguments, code, said in rows:
            with self.subTest(f"{tool} {arguments}"):
                printed = self.tenon(
                    component, "call", f"{component}__{tool}", json.dumps(arguments), code=code
                )
                self.assertIn(said, printed)

    def test_the_template_greets(self) -> None:
        self.use("template_tool", "template-tool")
        self.assertEqual(
            self.tenon("template_tool", "call", "template-tool__greet", '{"name": " Ada "}'), "Hello, Ada!"
        )
        self.assertEqual(
            self.tenon("template_tool", "call", "template-tool__greet", '{"name": ""}', code=1),
            "`name` is empty: say whom to greet",
        )

    def test_a_component_stays_small(self) -> None:
        for component, plugin, most in [("template_tool", "template-tool", 19.0), ("web", "web", 21.5)]:
            self.assertEqual(BUILT[component].returncode, 0, BUILT[component].stdout)
            size = (Path(FOLDER.name) / component / f"{plugin}.wasm").stat().st_size / 1e6
            self.assertLess(size, most)

    def test_a_component_has_no_names_of_functions(self) -> None:
        self.use("waiting")
        binary = (Path(FOLDER.name) / "waiting" / "waiting.wasm").read_bytes()
        self.assertEqual(sections.without_names(binary), binary)
        said = self.tenon("waiting", "call", "waiting__broken", '{"key": "k"}', code=1)
        self.assertIn("app.py:73 in broken", said)
        self.assertIn("Traceback (most recent call last):", said)

    def test_the_build_says_what_it_has_made(self) -> None:
        done = BUILT["template_tool"]
        self.assertEqual(done.returncode, 0, done.stderr)
        size = (Path(FOLDER.name) / "template_tool" / "template-tool.wasm").stat().st_size
        self.assertEqual(json.loads(done.stdout), {"worlds": ["tool"], "size": size})

    def test_tasks_outlive_each_call(self) -> None:
        self.use("tasks")
        first, second = {"title": "one", "done": False}, {"title": "two", "done": False}
        self.check(
            "tasks",
            [
                ("add", {"title": "one"}, 0, json.dumps([first])),
                ("add", {"title": "two"}, 0, json.dumps([first, second])),
                ("finish", {"number": 2}, 0, '{"title": "two", "done": true}'),
                ("finish", {"number": 9}, 1, "there is no task 9: there are 2"),
                ("count", {}, 0, "1"),
                ("count", {}, 0, "2"),
            ],
        )
        self.assertEqual(
            json.loads(self.tenon("tasks", "resources", "read", "tasks", "tasks://all"))[1]["done"], True
        )

    def test_a_web_client_asks_with_its_secret(self) -> None:
        self.use("web")
        with Server() as server:
            url = server.url
            self.check(
                "web",
                [
                    ("weather", {"url": url, "city": "Graz"}, 0, '{"city": "Graz", "authorized": true}'),
                    ("report", {"url": url, "text": "hällo"}, 0, '201 18 {"text": "hällo"}'),
                    ("lines", {"url": url}, 0, '["a", "b", "c"]'),
                    ("again", {"url": url}, 0, "freea"),
                    ("judge", {"url": url}, 1, "there is nothing"),
                    ("late", {"url": url}, 1, "timeout: "),
                    (
                        "lines",
                        {"url": "http://127.0.0.2:1"},
                        1,
                        "denied: network access to http://127.0.0.2:1/lines is not granted",
                    ),
                    ("lines", {"url": "http://127.0.0.1:1"}, 1, "connection refused"),
                ],
            )
            answer = json.loads(self.tenon("web", "--json", "call", "web__both", json.dumps({"url": url})))
            self.assertEqual(answer["structuredContent"], {"result": ["slow", "slow"]})
            # One after the other takes 0.8 s.
            self.assertLess(answer["_meta"]["tenon/usage"]["wallMicros"], 750_000)
            server.shutdown()

    def test_statistics_use_a_dependency(self) -> None:
        self.use("statistics")
        text = "a,b\n1,x\n2,y"
        self.check(
            "statistics",
            [
                ("summary", {"text": text}, 0, '[{"name": "a", "count": 2, "mean": 1.5, "greatest": 2.0}]'),
                ("summary", {"text": ""}, 1, "the text has no column of numbers"),
                ("table", {"text": text}, 0, "a  b\n---  ---\n  1  x\n  2  y"),
            ],
        )

    def test_a_guard_rewrites_and_vetoes(self) -> None:
        self.use("guard")
        self.check(
            "guard",
            [
                ("delete", {"path": "a.txt"}, 0, "trash/a.txt is deleted"),
                ("delete", {"path": "/etc"}, 3, 'plugin "guard" vetoed it: it is no file of the project'),
            ],
        )
        self.assertEqual(
            json.loads(self.tenon("guard", "hook", "acme:deploy", "--context", '{"a": 1}')), {"a": 1}
        )

    def test_functions_wait_and_fail(self) -> None:
        self.use("waiting")
        self.check(
            "waiting",
            [
                ("sleep", {"seconds": 0.3}, 0, "quick"),
                ("patience", {}, 0, "lost"),
                ("run", {}, 0, "ran"),
                ("when", {"day": "2025-01-31"}, 0, "Friday"),
                ("late", {}, 0, "(0.0, 0.0, 0)"),
                ("broken", {"key": "k"}, 1, "failed: KeyError: 'k' (app.py:73 in broken)"),
                ("leave", {}, 1, "failed: SystemExit: 3 (app.py:79 in leave)"),
                ("forever", {}, 1, "failed: RecursionError: "),
                ("absent", {}, 1, 'the module "numpy" is not in the component'),
                ("denied", {}, 1, "tenon.http is not in this component: its plugin.toml does not request it"),
                ("fails", {}, 1, "unavailable: try later"),
                ("reads", {}, 1, "PermissionError"),
                ("sleep", {"seconds": "x"}, 2, "seconds"),
            ],
        )

    def test_what_is_printed_and_logged_is_in_the_log(self) -> None:
        self.use("waiting")
        logged = self.tenon("waiting", "call", "waiting__speak", "{}", TENON_LOG="info")
        lines = [line.partition("call=1}: ")[2].rpartition(" plugin=")[0] for line in logged.splitlines()]
        self.assertIn('one (target="stderr")', lines)
        self.assertIn('logged 1 (target="own" who="Ada")', lines)
        self.assertIn('printed (target="stdout")', lines)
        self.assertIn('  app.py:64 in speak (target="root")', lines)

    def test_a_component_starts_without_a_line_in_the_log(self) -> None:
        self.use("template_tool", "template-tool")
        said = self.tenon(
            "template_tool", "call", "template-tool__greet", '{"name": "Ada"}', TENON_LOG="info"
        )
        self.assertEqual(said, "Hello, Ada!")

    def test_every_kind_of_contribution_works(self) -> None:
        self.use("kinds")
        self.check(
            "kinds",
            [
                ("draw", {}, 0, "a picture\n[image: image/png, 8 bytes]\n[resource: notes://1"),
                ("raw", {}, 0, "[image: image/png, 8 bytes]"),
                ("think", {"text": "hi"}, 0, "hi"),
                ("relay", {}, 0, "image/png"),
            ],
        )
        answers = Path(FOLDER.name) / "answers.json"
        answers.write_text('[{"accept": {"city": "Graz", "nights": 2}}]')
        for arguments, said in [
            (["--answers", str(answers), "call", "kinds__form", "{}"], "2 in Graz"),
            (["resources", "read", "kinds", "notes://one"], "# one"),
            (["resources", "list"], "notes://two"),
            (["resources", "suggest", "kinds", "notes://{name}", "name", "tw"], "two"),
            (
                ["prompts", "get", "kinds", "translate", "text=hi", "language=French"],
                "Translate into French: hi",
            ),
            (
                ["prompts", "suggest", "kinds", "translate", "text", "a", "--with", "language=French"],
                "a in French",
            ),
            (["prompts", "suggest", "kinds", "translate", "language", "F"], "French"),
            (["eval", "kinds/concise", "--subject", '{"output": "a b c d"}'], "fail (0.00)"),
            (["eval", "kinds/concise", "--subject", '{"output": "a"}'], "pass (1.00)"),
            (["complete", "kinds/parrot", "--prompt", "Hello"], "Hello"),
        ]:
            with self.subTest(str(arguments)):
                self.assertIn(said, self.tenon("kinds", *arguments))

    def test_a_dependency_with_machine_code_is_named_before_the_build(self) -> None:
        folder = Path(FOLDER.name) / "native"
        shutil.copytree(COMPONENTS / "guard", folder)
        with open(folder / "pyproject.toml", "a") as project:
            project.write('dependencies = ["numpy"]\n')
        begun = time.monotonic()
        done = build(folder)
        self.assertEqual(done.returncode, 1)
        [problem] = problems(done)
        self.assertRegex(
            problem["message"],
            r"^numpy \S+ has no pure-Python wheel: it has machine code, which cannot run in a component$",
        )
        self.assertEqual((problem["file"], problem["line"]), ("pyproject.toml", 6))
        self.assertIn("remove it from the `dependencies` of pyproject.toml", problem["hint"])
        self.assertFalse((folder / "guard.wasm").exists())
        self.assertLess(time.monotonic() - begun, 60)

    def test_a_module_that_no_component_has_is_named(self) -> None:
        folder = Path(FOLDER.name) / "sockets"
        shutil.copytree(COMPONENTS / "guard", folder)
        source = 'import ssl\n\nfrom tenon import tool\n\n\n@tool\ndef a() -> str:\n    """A."""\n    return ssl.OPENSSL_VERSION\n'
        (folder / "app.py").write_text(source)
        done = build(folder)
        self.assertEqual(done.returncode, 1)
        message, hint = 'there is no module "_ssl"', "a component has no sockets: use tenon.http"
        self.assertEqual(
            problems(done), [{"file": "app.py", "line": 1, "message": message, "hint": hint}], done.stderr
        )


if __name__ == "__main__":
    unittest.main()

"""`python -m tenon.build` as far as it comes without a component, and its parts."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import textwrap
import unittest
from pathlib import Path
from unittest import mock

from support import SDK

import update_wit
from tenon.build import __main__ as command
from tenon.build import componentize, sections, world
from tenon.build.problem import Problem, ToolChainError
from tenon.build.project import name_of

MANIFEST = '[plugin]\nid = "a"\n'
SOURCE = "from tenon import tool\n\n@tool\ndef a(x):\n    pass\n"
HAS_TOOL_CHAIN = importlib.util.find_spec("componentize_py") is not None


def build(files: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """Builds a folder with these files."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            (Path(folder) / name).write_text(textwrap.dedent(text))
        return subprocess.run(
            [sys.executable, "-m", "tenon.build", *arguments],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(SDK / "src"), "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
        )


class Wit(unittest.TestCase):
    def test_the_wit_is_that_of_the_contract(self) -> None:
        self.assertEqual(update_wit.packaged(), update_wit.contract(), "run update_wit.py")

    def test_the_sync_edition_knows_nothing_of_async(self) -> None:
        for name, text in update_wit.packaged().items():
            for word in ("async", "stream<", "streaming-provider"):
                self.assertNotIn(word, text, name)

    def test_a_world_has_what_is_contributed_and_requested(self) -> None:
        described = {"worlds": ["tool", "resource"], "exports": ["subscriptions"], "awaits": True}
        self.assertEqual(
            world.world(described, {"secrets": ["a"], "filesystem": []}),
            "package local:plugin;\n\nworld component {\n"
            "    include tenon:plugin/tool@0.2.0;\n"
            "    include tenon:plugin/%resource@0.2.0;\n"
            "    export tenon:plugin/subscriptions@0.2.0;\n"
            "    import tenon:plugin/secrets@0.2.0;\n"
            "    import wasi:io/poll@0.2.0;\n"
            "    import wasi:clocks/monotonic-clock@0.2.0;\n}\n",
        )


class Command(unittest.TestCase):
    def check(self, files: dict[str, str], said: str) -> None:
        """Builds a folder that has problems."""
        done = build(files, "--output", "a.wasm")
        self.assertEqual((done.stderr, done.returncode, done.stdout), (said, 1, ""))

    def test_it_needs_an_output(self) -> None:
        done = build({})
        self.assertEqual(done.returncode, 2)
        self.assertIn("--output", done.stderr)

    def test_a_folder_without_a_plugin_is_told(self) -> None:
        done = build({}, "--output", "a.wasm")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, "^error: there is no plugin.toml in /.*\n  hint: ")

    def test_a_manifest_that_is_no_toml_is_told_with_its_line(self) -> None:
        done = build({"plugin.toml": "[plugin]\nid = a\n"}, "--output", "a.wasm")
        self.assertEqual(done.stderr, "error: plugin.toml:2: invalid value\n  hint: correct the TOML\n")

    def test_a_plugin_needs_an_id(self) -> None:
        self.check(
            {"plugin.toml": "[runtime]\n"},
            'error: plugin.toml:1: the plugin has no id\n  hint: write `id = "NAME"` under [plugin]\n',
        )

    def test_dependencies_are_a_list(self) -> None:
        self.check(
            {"plugin.toml": MANIFEST, "pyproject.toml": '[project]\nname = "a"\ndependencies = "b"\n'},
            "error: pyproject.toml:3: `dependencies` is no list of texts\n"
            '  hint: write `dependencies = ["NAME"]`\n',
        )

    @unittest.skipUnless(HAS_TOOL_CHAIN, "componentize-py is not installed")
    def test_problems_are_told_as_text_and_as_json(self) -> None:
        files = {"plugin.toml": MANIFEST, "app.py": SOURCE}
        message, hint = 'the parameter `x` of the tool "a" has no type', "write its type: `x: str`"
        self.check(files, f"error: app.py:4: {message}\n  hint: {hint}\n")
        done = build(files, "--output", "a.wasm", "--json")
        self.assertEqual((done.returncode, done.stderr), (1, ""))
        problem = {"file": "app.py", "line": 4, "message": message, "hint": hint}
        self.assertEqual(json.loads(done.stdout), {"problems": [problem]})

    @unittest.skipUnless(HAS_TOOL_CHAIN, "componentize-py is not installed")
    def test_a_module_that_ends_the_interpreter_is_told(self) -> None:
        self.check(
            {"plugin.toml": MANIFEST, "app.py": "import sys\nsys.exit(3)\n"},
            "error: app.py:2: importing app ended the interpreter with 3\n"
            "  hint: what is at the top of the file runs once, when the component is built\n",
        )

    @unittest.skipUnless(HAS_TOOL_CHAIN, "componentize-py is not installed")
    def test_what_tests_use_is_in_no_component(self) -> None:
        self.check(
            {"plugin.toml": MANIFEST, "app.py": "from tenon import tool\nimport tenon.testing\n"},
            'error: app.py:2: there is no module "tenon.testing"\n'
            "  hint: components do not have it: import it in tests alone\n",
        )

    def test_a_missing_tool_chain_is_told_with_what_installs_it(self) -> None:
        missing = ToolChainError("componentize-py is missing", "install it")
        arguments = ["tenon.build", "--output", "a.wasm"]
        with (
            mock.patch.object(sys, "argv", arguments),
            mock.patch.object(command, "build", side_effect=missing),
            mock.patch("sys.stderr") as stderr,
        ):
            self.assertEqual(command.main(), 2)
        said = "".join(call.args[0] for call in stderr.write.call_args_list)
        self.assertEqual(said, "error: componentize-py is missing\n  hint: install it\n")

    def test_another_release_of_the_tool_is_refused(self) -> None:
        with mock.patch("importlib.metadata.version", return_value="0.24.0"):
            with self.assertRaisesRegex(ToolChainError, "0.24.0 is installed, and 0.25.1 is needed"):
                componentize.check()

    def test_the_package_depends_on_the_release_that_it_needs(self) -> None:
        project = (SDK / "pyproject.toml").read_text()
        self.assertIn(f'"componentize-py=={componentize.VERSION}"', project)


class Parts(unittest.TestCase):
    def test_a_problem_tells_its_place_as_far_as_it_is_known(self) -> None:
        for problem, said in [
            (Problem("m"), "m"),
            (Problem("m", file="f"), "f: m"),
            (Problem("m", "h", "f", 3), "f:3: m\n  hint: h"),
        ]:
            self.assertEqual(str(problem), said)

    def test_names_of_packages_are_normalized(self) -> None:
        for requirement, name in [("A_b.c[x]>=1", "a-b-c"), (" tenon-sdk @ file:///x", "tenon-sdk"), ("x; y", "x")]:
            self.assertEqual(name_of(requirement), name)

    def test_what_is_in_a_component_is_the_package_without_the_builder(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            copied = command._copy_package(Path(folder) / "sdk") / "tenon"
            self.assertTrue((copied / "component" / "exports.py").is_file())
            for name in ("build", "testing", "__pycache__", "component/__pycache__"):
                self.assertFalse((copied / name).exists(), name)

    def test_sections_of_names_are_removed_from_nested_modules(self) -> None:
        names = bytes([0, 7]) + b"\x04name\x01\x00"
        own_names = bytes([0, 16]) + b"\x0ecomponent-name\x00"
        other = bytes([0, 6]) + b"\x05other"
        code = bytes([10, 1, 0])
        module = b"\0asm\x01\0\0\0"
        component = b"\0asm\x0d\0\x01\0"
        for before, after in [
            (module, module),
            (module + code + names + other, module + code + other),
            # A section that is longer than 127 bytes before, and shorter afterwards.
            (
                component + nested(1, module + names * 20 + code) + own_names + other,
                component + nested(1, module + code) + other,
            ),
            (
                component + nested(4, component + nested(1, module + names)) + other,
                component + nested(4, component + nested(1, module)) + other,
            ),
        ]:
            self.assertEqual(sections.without_names(before), after)

    def test_what_is_no_binary_is_refused(self) -> None:
        for binary in (b"", b"\0asm\x02\0\0\0", b"\0asm\x01\0\0\0\x00\x09\x04name"):
            with self.assertRaises(ValueError):
                sections.without_names(binary)


def nested(number: int, content: bytes) -> bytes:
    """A section with a binary in it."""
    size = len(content)
    length = bytes([size]) if size < 128 else bytes([size & 0x7F | 0x80, size >> 7])
    return bytes([number]) + length + content


if __name__ == "__main__":
    unittest.main()

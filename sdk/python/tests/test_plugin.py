"""What decorated functions become, as a host sees it."""

from __future__ import annotations

import dataclasses
import unittest
from typing import Annotated, Any, Literal

import support  # noqa: F401
import tenon
from tenon import (
    AssistantMessage, Audio, CompletionRequest, Context, Error, ErrorCode, Evaluation, Field, Finding, Image, Message,
    ResourceContents, ResourceLink, Subject, Text, ToolError, ToolResult, UserMessage, Veto, complete, config, eval, finding, hook,
    inference, log, memory, messaging, notify, prompt, provider, resource, secrets, state, summarize, tool, tools, user,
)  # fmt: skip
from tenon._hook import handle, registrations
from tenon._registry import ATTRIBUTE
from tenon.testing import CANCELLED, DECLINED, Host, accepted

PNG = b"\x89PNG\r\n\x1a\n"


@dataclasses.dataclass
class Point:
    x: float
    y: float = 0.0


@tool(read_only=True, title="Greet", extra={"icons": []})
def greet(
    name: str, times: Annotated[int, Field(minimum=1)] = 1, mood: Literal["good", "bad"] = "good"
) -> str:
    """Greets somebody.

    Args:
        name: Whom to greet.
    """
    if not name:
        raise ToolError("`name` is empty")
    return f"{mood} day, {name}!" * times


@tool
async def later(name: str) -> str:
    """Greets somebody later."""
    return f"{name}, {tenon.context().call_id}"


@tool
def shift(point: Point, by: float = 1.0) -> Point:
    """Moves a point."""
    return Point(point.x + by, point.y)


def answers(returns: Any, value: Any) -> Any:
    """What a tool answers that returns this value, and says so."""

    def answer() -> Any:
        """Answers."""
        return value() if callable(value) else value

    answer.__annotations__["return"] = returns
    return Host().call_tool(tool(answer))


class Tools(unittest.TestCase):
    def test_a_decorated_function_stays_a_function(self) -> None:
        self.assertEqual(greet("Ada"), "good day, Ada!")
        self.assertEqual(greet.__name__, "greet")

    def test_a_definition_has_schema_hints_and_descriptions(self) -> None:
        definition = getattr(greet, ATTRIBUTE).definition()
        self.assertEqual(definition["name"], "greet")
        self.assertEqual(definition["title"], "Greet")
        self.assertEqual(definition["description"], "Greets somebody.")
        self.assertEqual(definition["annotations"], {"readOnlyHint": True})
        self.assertEqual(definition["extra"], {"icons": []})
        self.assertIsNone(definition["outputSchema"])
        self.assertEqual(
            definition["inputSchema"],
            {
                "type": "object",
                "properties": {
                    "name": {"type": "string", "description": "Whom to greet."},
                    "times": {"type": "integer", "minimum": 1, "default": 1},
                    "mood": {"type": "string", "enum": ["good", "bad"], "default": "good"},
                },
                "required": ["name"],
                "additionalProperties": False,
            },
        )

    def test_arguments_are_converted_to_their_types(self) -> None:
        result = Host().call_tool(shift, {"point": {"x": 1}, "by": 2})
        self.assertEqual(result.structured, {"x": 3.0, "y": 0.0})
        self.assertEqual(result.text, '{"x": 3.0, "y": 0.0}')

    def test_wrong_arguments_say_what_is_wrong(self) -> None:
        for arguments, said in [
            ({}, 'tool "greet": the argument "name" is missing'),
            ({"nmae": "a", "name": "b"}, 'tool "greet": unknown argument "nmae"'),
            (
                {"nmae": "a"},
                'tool "greet": unknown argument "nmae": did you mean "name"?; the argument "name" is missing',
            ),
            (
                {"name": 1, "times": 0},
                'tool "greet": name: expected a text, got 1; times: expected at least 1, got 0',
            ),
            (
                {"name": "a", "mood": "god"},
                'tool "greet": mood: expected one of "good", "bad", got "god": did you mean "good"?',
            ),
        ]:
            with self.subTest(said), self.assertRaises(Error) as caught:
                Host().call_tool(greet, arguments)
            self.assertEqual((caught.exception.code, str(caught.exception)), (ErrorCode.INVALID_INPUT, said))

    def test_a_tool_error_is_a_result_that_the_model_reads(self) -> None:
        result = Host().call_tool(greet, {"name": ""})
        self.assertEqual((result.is_error, result.text), (True, "`name` is empty"))

    def test_an_async_tool_runs_to_its_end(self) -> None:
        self.assertEqual(Host().call_tool(later, {"name": "Ada"}).text, "Ada, call-1")
        self.assertEqual(Host().run(later("Ada")), "Ada, call-1")

    def test_a_result_is_content_or_structured(self) -> None:
        link = ResourceLink("a:b")
        for returns, value, content, structured in [
            (str, "a", [Text("a")], None),
            (None, None, [], None),
            (bytes, PNG, [Image(PNG)], None),
            (Image, Image(b"x", "image/gif"), [Image(b"x", "image/gif")], None),
            (Audio | str, Audio(b"x"), [Audio(b"x")], None),
            (list[str | Image], ["a", Image(b"x")], [Text("a"), Image(b"x")], None),
            (ResourceLink, link, [link], None),
            (dict, {"a": 1}, [Text('{"a": 1}')], {"a": 1}),
            (dict[str, int], {"a": 1}, [Text('{"a": 1}')], {"a": 1}),
            (int, 3, [Text("3")], {"result": 3}),
            (list[str], ["a"], [Text('["a"]')], {"result": ["a"]}),
            (list[Point], [Point(1.0)], [Text('[{"x": 1.0, "y": 0.0}]')], {"result": [{"x": 1.0, "y": 0.0}]}),
            (Any, {"p": Point(1.0)}, [Text('{"p": {"x": 1.0, "y": 0.0}}')], {"p": {"x": 1.0, "y": 0.0}}),
            (ToolResult, lambda: ToolResult(["a", PNG], {"b": 1}), [Text("a"), Image(PNG)], {"b": 1}),
            (list, [Image(b"x")], [Image(b"x")], None),
            (Literal["a"], "a", [Text("a")], {"result": "a"}),
        ]:
            with self.subTest(str(returns)):
                result = answers(returns, value)
                self.assertEqual((result.content, result.structured), (content, structured))

    def test_a_result_of_another_type_names_the_function_and_its_line(self) -> None:
        for returns, value, said in [
            (str, 3, "expected str, got int"),
            (None, "a", "expected None, got str"),
            (Point, {"x": 1}, 'expected a Point, got {"x": 1}'),
            (dict[str, int], {"a": "b"}, 'a: expected an integer, got "b"'),
            (float, float("nan"), "expected a finite number"),
            (Any, object(), "object is nothing that a tool can answer"),
        ]:
            with self.subTest(said), self.assertRaises(Error) as caught:
                answers(returns, value)
            self.assertIn(said, str(caught.exception))
            self.assertRegex(
                str(caught.exception),
                r"returned something else than it says: .*test_plugin\.py:\d+ in answer\)",
            )

    def test_an_exception_names_its_type_its_message_and_the_own_line(self) -> None:
        def broken() -> str:
            """Breaks."""
            return {}["k"]  # type: ignore[index]

        host = Host()
        with self.assertRaises(Error) as caught:
            host.call_tool(tool(broken))
        self.assertEqual(caught.exception.code, ErrorCode.FAILED)
        self.assertRegex(str(caught.exception), r"^KeyError: 'k' \(.*test_plugin\.py:\d+ in broken\)$")
        self.assertEqual(caught.exception.data["exception"], "KeyError")
        logged = [line.message.strip() for line in host.logged]
        self.assertEqual(
            (logged[0], logged[2], logged[3]),
            ("Traceback (most recent call last):", 'return {}["k"]  # type: ignore[index]', "KeyError: 'k'"),
        )
        self.assertEqual(len(logged), 4)

    def test_an_endless_recursion_is_told_in_short(self) -> None:
        def forever() -> str:
            """Recurses."""
            return forever()

        host = Host()
        with self.assertRaisesRegex(Error, "RecursionError"):
            host.call_tool(tool(forever))
        self.assertLess(len(host.logged), 45)
        self.assertTrue(any("frames" in line.message for line in host.logged))

    def test_an_error_of_the_contract_keeps_its_code(self) -> None:
        def busy() -> str:
            """Is busy."""
            raise Error("unavailable", "later", retry_after=2, data={"a": 1})

        with self.assertRaises(Error) as caught:
            Host().call_tool(tool(busy))
        self.assertEqual(
            (caught.exception.code, caught.exception.retry_after, caught.exception.data),
            (ErrorCode.UNAVAILABLE, 2, {"a": 1}),
        )
        with self.assertRaisesRegex(ValueError, 'no error code "internal"'):
            Error("internal", "")

    def test_a_function_that_does_not_await_is_told_to(self) -> None:
        def eager() -> str:
            """Forgets to await."""
            return later("Ada")  # type: ignore[return-value]

        with self.assertRaisesRegex(
            Error, r"nobody awaits \(.*test_plugin\.py:\d+ in eager\)\n  hint: make it `async def eager`"
        ):
            Host().call_tool(tool(eager))

    def test_a_default_is_not_shared_between_calls(self) -> None:
        def collect(point: Point = Point(1.0)) -> float:
            """Collects."""
            point.x += 1
            return point.x

        self.assertEqual(
            [Host().call_tool(tool(collect)).structured for _ in range(2)], [{"result": 2.0}] * 2
        )

    def test_a_function_that_is_no_tool_is_named(self) -> None:
        with self.assertRaisesRegex(TypeError, r"test_plugin\.py:\d+: `answers` is no tool\n  hint: write `@tool` above its function"):
            Host().call_tool(answers)


@hook("before-tool-call", priority=5)
def guard(context: dict, call: Context) -> Veto | None:
    if context["tool"] == "rm":
        return Veto("no")
    context["arguments"]["by"] = call.agent_id
    return None


@hook("before-tool-call", "acme:deploy")
def second(context: dict) -> dict:
    return {**context, "seen": context["arguments"].get("by")}


class Hooks(unittest.TestCase):
    def test_a_handler_changes_replaces_or_vetoes(self) -> None:
        host = Host(agent="ada")
        given = {"tool": "x", "arguments": {}}
        self.assertEqual(host.handle(guard, given), {"tool": "x", "arguments": {"by": "ada"}})
        self.assertEqual(given, {"tool": "x", "arguments": {}})
        self.assertEqual(host.handle(second, given)["seen"], None)  # type: ignore[index]
        veto = host.handle(guard, {"tool": "rm"})
        self.assertEqual(veto.reason, "no")  # type: ignore[union-attr]

    def test_handlers_of_a_point_run_by_their_priority(self) -> None:
        hooks = [getattr(second, ATTRIBUTE), getattr(guard, ATTRIBUTE)]
        self.assertEqual(registrations(hooks), [("before-tool-call", False, 5), ("acme:deploy", False, 0)])
        with Host(agent="ada"):
            outcome, context = handle(hooks, "before-tool-call", '{"tool": "x", "arguments": {}}')
            self.assertEqual((outcome, context["seen"]), ("replace", "ada"))
            self.assertEqual(handle(hooks, "before-tool-call", '{"tool": "rm"}'), ("veto", "no"))
            with self.assertRaisesRegex(Error, "does not handle"):
                handle(hooks, "after-plan", "{}")

    def test_a_veto_may_be_raised_and_anything_else_is_a_failure(self) -> None:
        @hook("before-plan")
        def raises(context: dict) -> None:
            raise Veto("stop")

        @hook("before-plan")
        def wrong(context: dict) -> Any:
            return "stop"

        self.assertEqual(Host().handle(raises, {}).reason, "stop")  # type: ignore[union-attr]
        with self.assertRaisesRegex(
            Error, r"expected a context, a Veto or None, got str \(.*test_plugin.py:\d+ in wrong\)"
        ):
            Host().handle(wrong, {})


@resource(
    "notes://{name}{?year}", mime_type="text/markdown", list=lambda: ["one", {"name": "a b", "year": 3}]
)
def note(name: str, year: int | None = None) -> str | None:
    """A note."""
    return None if name == "none" else f"{name} {year}"


@resource("notes:all", subscribe=True)
def everything() -> dict:
    return {"a": 1}


@resource("notes:raw")
def raw() -> list[ResourceContents]:
    return [ResourceContents(b"x", "image/png"), ResourceContents("y", uri="notes:y")]


class Resources(unittest.TestCase):
    def test_a_resource_is_read_by_its_uri(self) -> None:
        for uri, contents in [
            ("notes://one", [ResourceContents("one None", "text/markdown", "notes://one")]),
            ("notes://a%20b?year=3", [ResourceContents("a b 3", "text/markdown", "notes://a%20b?year=3")]),
            ("notes:all", [ResourceContents('{"a": 1}', "application/json", "notes:all")]),
            (
                "notes:raw",
                [
                    ResourceContents(b"x", "image/png", "notes:raw"),
                    ResourceContents("y", "text/plain", "notes:y"),
                ],
            ),
        ]:
            with self.subTest(uri):
                self.assertEqual(Host().read_resource(uri, note, everything, raw), contents)

    def test_a_uri_that_names_nothing_is_not_found(self) -> None:
        for uri, code in [
            ("notes://none", "not-found"),
            ("notes://a/b", "not-found"),
            ("x:y", "not-found"),
            ("notes://a?year=x", "invalid-input"),
        ]:
            with self.subTest(uri), self.assertRaises(Error) as caught:
                Host().read_resource(uri, note, everything)
            self.assertEqual(caught.exception.code, code)

    def test_a_template_lists_what_there_is(self) -> None:
        links = Host().list_resources(note, everything)
        self.assertEqual(
            [(link.uri, link.name) for link in links],
            [("notes://one", "one"), ("notes://a%20b?year=3", "a b/3"), ("notes:all", "everything")],
        )
        self.assertEqual(tenon.uri(note, name="a/b"), "notes://a%2Fb")

    def test_a_resource_tells_of_its_changes_if_it_says_so(self) -> None:
        host = Host()
        host.subscribe("notes:all", everything)
        with self.assertRaisesRegex(Error, "does not tell of changes"):
            host.subscribe("notes:raw", raw)
        with host:
            notify.resource_updated("notes:all")
            notify.contributions_changed()
        self.assertEqual((host.resource_updates, host.contribution_changes), (["notes:all"], 1))


@prompt(title="Translate")
def translate(text: str, language: Literal["English", "French"] = "English", loud: bool = False) -> list:
    """Has a text translated."""
    return [UserMessage(f"{language}: {text.upper() if loud else text}"), AssistantMessage(Image(PNG)), "end"]


@complete(translate, "text")
def texts(typed: str, others: dict[str, str]) -> list[str]:
    return [f"{typed}-{others.get('language')}"] * 150


class Prompts(unittest.TestCase):
    def test_a_prompt_is_filled_in(self) -> None:
        filled = Host().get_prompt(translate, {"text": "hi", "loud": "true"})
        self.assertEqual(
            [(message.role, message.content) for message in filled.messages],
            [("user", Text("English: HI")), ("assistant", Image(PNG)), ("user", Text("end"))],
        )
        self.assertEqual(filled.description, "Has a text translated.")

    def test_wrong_arguments_are_refused(self) -> None:
        for arguments, said in [
            ({}, '"text" is missing'),
            ({"text": "a", "x": "b"}, 'unknown argument "x"'),
            ({"text": "a", "language": "Frensh"}, 'did you mean "French"?'),
        ]:
            with self.subTest(said), self.assertRaisesRegex(Error, said.replace("?", r"\?")):
                Host().get_prompt(translate, arguments)

    def test_arguments_suggest_values(self) -> None:
        host = Host()
        self.assertEqual(host.complete_argument(translate, "language", "f"), ["French"])
        self.assertEqual(host.complete_argument(translate, "loud"), ["true", "false"])
        self.assertEqual(
            host.complete_argument(translate, "text", "a", {"language": "French"}), ["a-French"] * 100
        )
        with self.assertRaisesRegex(Error, 'has no argument "x"'):
            host.complete_argument(translate, "x")


@eval
def concise(subject: Subject, most: Annotated[int, Field(minimum=1)] = 2) -> Evaluation:
    """Judges length."""
    words = len(subject.output_text.split())
    return summarize([finding("words", words <= most, f"{words} words"), finding("some", words > 0)])


class Evals(unittest.TestCase):
    def test_a_strategy_judges(self) -> None:
        self.assertEqual(
            Host().evaluate(concise, {"output": "a b c"}, most=3),
            Evaluation(1.0, "pass", [Finding("words", "pass", "3 words"), Finding("some", "pass")]),
        )
        self.assertEqual(Host().evaluate(concise, {"output": "a b c"}).score, 0.5)
        with self.assertRaisesRegex(Error, "most: expected at least 1"):
            Host().evaluate(concise, {"output": ""}, most=0)
        with self.assertRaisesRegex(Error, 'the subject has no "output"'):
            Host().evaluate(concise, {})

    def test_a_score_or_a_truth_value_is_an_evaluation(self) -> None:
        for value, expected in [
            (0.5, (0.5, "pass")),
            (0.4, (0.4, "fail")),
            (True, (1.0, "pass")),
            (False, (0.0, "fail")),
            ([], (0.0, "inconclusive")),
        ]:

            def judge(subject: Subject) -> Any:
                """Judges."""
                return value

            found = Host().evaluate(eval(judge), {"output": 1})
            self.assertEqual((found.score, found.verdict), expected)

    def test_a_score_that_is_none_is_refused(self) -> None:
        @eval
        def judge(subject: Subject) -> float:
            """Judges."""
            return 2

        with self.assertRaisesRegex(Error, "expected a score from 0 to 1, got 2"):
            Host().evaluate(judge, {"output": 1})


birds = provider("birds", "Repeats")


@birds.model("parrot", title="Parrot")
def parrot(request: CompletionRequest) -> str:
    return request.last_user_text or ""


class Providers(unittest.TestCase):
    def test_a_model_answers(self) -> None:
        answer = Host().complete_with(parrot, "hi")
        self.assertEqual((answer.text, answer.model, answer.stop_reason), ("hi", "parrot", "end-turn"))
        self.assertEqual(getattr(parrot, ATTRIBUTE).models()[0].provider, "birds")


#: A service, the line that requests it, and the option of the host that grants it.
SERVICES: list[tuple[Any, str, dict[str, Any], Any]] = [
    (lambda: secrets.get("key"), 'secrets = ["key"]', {"secrets": {"key": "x"}}, "x"),
    (lambda: state.increment("n"), 'state = ["project"]', {"state": ["project"]}, 1),
    (lambda: state.bucket("user").keys(), 'state = ["user"]', {"state": {"user": {"a": 1}}}, ["a"]),
    (lambda: user.ask("Where?", Point).value, 'user = ["ask"]', {"user": {"x": 1}}, Point(1.0)),
    (lambda: user.ask("Where?", Point).outcome, 'user = ["ask"]', {"user": DECLINED}, "declined"),
    (lambda: bool(user.ask("Where?", {"type": "object"})), 'user = ["ask"]', {"user": lambda message, schema: CANCELLED}, False),
    (lambda: user.ask_url("Pay", "https://x"), 'user = ["ask-url"]', {"pages": "accepted"}, "accepted"),
    (lambda: inference.complete("hi", system="be", max_tokens=3).text, 'providers = ["default"]', {"models": {"default": lambda request: f"{len(request.messages)} {request.max_tokens}"}}, "2 3"),
    (lambda: tools.call("t", a=1).structured, 'tools = ["t"]', {"tools": {"t": lambda arguments: {"got": arguments}}}, {"got": {"a": 1}}),
    (lambda: messaging.send("hi", "ops"), 'messaging = ["ops"]', {"messaging": ["ops"]}, None),
    (lambda: memory.search("x", 1)[0].text, 'memory = ["search"]', {"memory": ["a", "b"]}, "a"),
]  # fmt: skip


class Services(unittest.TestCase):
    def test_what_is_granted_is_there_and_what_is_not_is_denied_with_its_line(self) -> None:
        for call, line, grant, expected in SERVICES:
            with self.subTest(line):
                with Host(**grant):
                    self.assertEqual(call(), expected)
                for host in (Host(), None):
                    with self.assertRaises(Error) as caught:
                        if host is None:
                            call()
                        else:
                            with host:
                                call()
                    self.assertEqual(caught.exception.code, ErrorCode.DENIED)
                    self.assertIn(line.split(" = ")[0] + " = ", str(caught.exception))

    def test_state_keeps_values_and_updates_them(self) -> None:
        with Host(state={"project": {"words": ["a"]}, "user": {}}):
            self.assertEqual(state.update("words", lambda words: [*words, "b"]), ["a", "b"])
            self.assertEqual(state.update("new", lambda value: [*value, 1], default=[]), [1])
            state.set("point", Point(1.0))
            self.assertEqual(state.get("point"), {"x": 1.0, "y": 0.0})
            self.assertEqual(state.get("none", 3), 3)
            self.assertEqual(state.keys(), ["new", "point", "words"])
            state.delete("point")
            self.assertFalse(state.contains("point"))
            state.set_bytes("raw", b"\xff")
            self.assertEqual(state.get_bytes("raw"), b"\xff")
            self.assertEqual(state.bucket("user").keys(), [])
            with self.assertRaisesRegex(Error, 'the state of "raw" is no JSON'):
                state.get("raw")
            with self.assertRaisesRegex(Error, "has no JSON form"):
                state.set("x", object())
            with self.assertRaisesRegex(ValueError, "no scope 'x'"):
                state.bucket("x")

    def test_settings_are_of_their_types(self) -> None:
        with Host(config={"word": "hi", "times": 3}):
            self.assertEqual(
                (config.get("word"), config.get("none", "x"), config.get("times", 1, int)), ("hi", "x", 3)
            )
            self.assertEqual(config.all(), {"word": "hi", "times": 3})
            with self.assertRaisesRegex(Error, 'the setting "word": expected an integer, got "hi"'):
                config.get("word", 1, int)
        self.assertIsNone(config.get("word"))

    def test_a_secret_that_nobody_has_set_is_not_found(self) -> None:
        with Host(secrets={"key": None}), self.assertRaises(Error) as caught:
            secrets.get("key")
        self.assertEqual(caught.exception.code, ErrorCode.NOT_FOUND)

    def test_the_log_and_progress_are_seen(self) -> None:
        host = Host(time_left=5, session="s")
        with host:
            log.warn("careful", number=3)
            tenon.context().progress(1, 2, "half")
            self.assertLessEqual(tenon.context().remaining() or 0, 5)
            self.assertEqual(tenon.context().session_id, "s")
            self.assertFalse(tenon.context().is_cancelled())
            host.cancel(tenon.context())
            self.assertTrue(tenon.context().is_cancelled())
        self.assertEqual(
            (host.logged[0].level, host.logged[0].message, host.logged[0].fields),
            ("warn", "careful", {"number": "3"}),
        )
        self.assertEqual((host.progressed[0].progress, host.progressed[0].total), (1.0, 2))

    def test_outside_of_a_host_the_log_is_that_of_python(self) -> None:
        with self.assertLogs("tenon", "INFO") as logs:
            log.info("hello")
        self.assertEqual(logs.output, ["INFO:tenon:hello"])
        notify.resource_updated("a:b")
        with self.assertRaisesRegex(RuntimeError, "no call is being served"):
            tenon.context()

    def test_an_answer_of_other_types_is_refused(self) -> None:
        with Host(user=accepted({"x": "a"})), self.assertRaisesRegex(Error, 'x: expected a number, got "a"'):
            user.ask("Where?", Point)

    def test_a_conversation_is_completed(self) -> None:
        seen: list[CompletionRequest] = []

        def model(request: CompletionRequest) -> str:
            seen.append(request)
            return "ok"

        with Host(models={"m": model}):
            inference.complete([Message("user", ["a", Image(PNG)])], model="m")
        self.assertEqual(seen[0].messages[0].parts, [Text("a"), Image(PNG)])


if __name__ == "__main__":
    unittest.main()

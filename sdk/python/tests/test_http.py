"""The HTTP client, against a scripted web."""

from __future__ import annotations

import asyncio
import unittest
from typing import Any
from unittest import mock

import support  # noqa: F401
from tenon import Error, ErrorCode, http
from tenon.testing import Host, Request, WebAnswer

URL = "https://api.example.com"


class Http(unittest.TestCase):
    def setUp(self) -> None:
        patch = mock.patch("time.sleep")
        self.slept = patch.start()
        self.addCleanup(patch.stop)

    def test_a_request_has_its_query_headers_and_body(self) -> None:
        for options, url, body, kind in [
            ({"params": {"a": 1, "b": [1, 2], "c": None}}, f"{URL}/x?a=1&b=1&b=2", b"", None),
            ({"json": {"a": "ä"}}, f"{URL}/x", '{"a": "ä"}'.encode(), "application/json"),
            ({"data": {"a": "b c"}}, f"{URL}/x", b"a=b+c", "application/x-www-form-urlencoded"),
            (
                {"content": "text", "headers": {"Content-Type": "text/plain"}},
                f"{URL}/x",
                b"text",
                "text/plain",
            ),
        ]:
            with self.subTest(str(options)), Host(http={f"POST {URL}/*": "ok"}) as host:
                self.assertEqual(http.post(f"{URL}/x#part", **options).text, "ok")
                request = host.requests[0]
                self.assertEqual(
                    (request.url, request.body, request.headers.get("Content-type")), (url, body, kind)
                )

    def test_a_response_is_read_as_text_bytes_lines_and_json(self) -> None:
        with Host(
            http={
                f"{URL}/json": {"a": 1},
                f"{URL}/lines": "a\nb\r\nc",
                f"{URL}/latin": WebAnswer(200, b"\xe4", {"Content-Type": "text/plain; charset=latin-1"}),
            }
        ):
            self.assertEqual(http.get(f"{URL}/json").json(), {"a": 1})
            self.assertEqual(list(http.get(f"{URL}/lines").iter_lines()), ["a", "b", "c"])
            self.assertEqual(http.get(f"{URL}/latin").text, "ä")
            self.assertEqual(b"".join(http.get(f"{URL}/lines").iter_bytes(2)), b"a\nb\r\nc")
            with self.assertRaisesRegex(Error, "something else than JSON"):
                http.get(f"{URL}/lines").json()

    def test_a_status_is_an_error_where_it_is_asked(self) -> None:
        for status, code in [
            (404, "not-found"),
            (401, "denied"),
            (429, "unavailable"),
            (500, "unavailable"),
            (400, "failed"),
        ]:
            answer = WebAnswer(status, "why", {"Retry-After": "3"})
            with (
                self.subTest(status),
                Host(http={"*": answer}),
                self.assertRaises(http.HTTPStatusError) as caught,
            ):
                http.get(f"{URL}/x?key=secret", retries=0).raise_for_status()
            self.assertEqual((caught.exception.code, caught.exception.retry_after), (code, 3.0))
            self.assertEqual(str(caught.exception), f"GET {URL}/x answered {status}: why")

    def test_what_may_be_repeated_is_tried_again(self) -> None:
        def busy(times: int, problem: Any) -> Any:
            left = [problem] * times
            return lambda request: left.pop() if left else "free"

        down = Error("unavailable", "connection refused")
        for method, problem, times, answer, slept in [
            ("GET", WebAnswer(503), 2, "free", [0.2, 0.4]),
            ("GET", WebAnswer(429, "", {"Retry-After": "7"}), 1, "free", [7.0]),
            ("PUT", down, 1, "free", [0.2]),
            ("GET", WebAnswer(503, "no"), 3, "no", [0.2, 0.4]),
            ("GET", WebAnswer(429, "no", {"Retry-After": "3600"}), 1, "no", []),
            ("POST", WebAnswer(503, "no"), 1, "no", []),
        ]:
            self.slept.reset_mock()
            with self.subTest(f"{method} {problem}"), Host(http={"*": busy(times, problem)}):
                self.assertEqual(http.request(method, URL).text, answer)
                self.assertEqual([call.args[0] for call in self.slept.call_args_list], slept)
        with Host(http={"*": busy(1, down)}), self.assertRaisesRegex(Error, "refused"):
            http.post(URL)

    def test_redirects_are_followed_without_secrets_for_others(self) -> None:
        def to(target: str, status: int = 302) -> WebAnswer:
            return WebAnswer(status, "", {"Location": target})

        web = {
            f"{URL}/a": to("/b"),
            f"{URL}/b": to("https://other.org/c", 307),
            "https://other.org/c": lambda request: str(request.headers.get("authorization")),
        }
        with Host(http=web) as host:
            response = http.get(f"{URL}/a", headers={"Authorization": "Bearer x"})
            self.assertEqual((response.text, response.url), ("None", "https://other.org/c"))
            self.assertEqual(host.requests[1].headers["authorization"], "Bearer x")
            self.assertEqual(http.get(f"{URL}/a", follow_redirects=False).status, 302)
            self.assertEqual(http.post(f"{URL}/a", json=1).request.method, "GET")
        with Host(http={"*": to("/loop")}), self.assertRaisesRegex(Error, "redirects more than 10 times"):
            http.get(f"{URL}/loop")

    def test_what_is_not_granted_is_denied_with_its_line(self) -> None:
        with Host(http={f"GET {URL}/a": ""}):
            for method, url in [("GET", f"{URL}/b"), ("POST", f"{URL}/a")]:
                with self.assertRaises(Error) as caught:
                    http.request(method, url)
                self.assertEqual(caught.exception.code, ErrorCode.DENIED)
                self.assertIn(f'network = ["{url}"]', str(caught.exception))
        with self.assertRaisesRegex(Error, "tenon.http needs a host"):
            http.get(URL)
        with self.assertRaisesRegex(Error, "no URL of http"):
            http.get("ftp://x")

    def test_async_requests_run_at_once(self) -> None:
        order: list[str] = []

        async def answer(request: Request) -> str:
            order.append(request.url)
            await asyncio.sleep(0.01)
            order.append("end")
            return request.url[-1]

        async def both() -> list[str]:
            answers = await asyncio.gather(http.aget(f"{URL}/1"), http.aget(f"{URL}/2"))
            return [one.text for one in answers]

        self.assertEqual(Host(http={"*": answer}).run(both()), ["1", "2"])
        self.assertEqual(order, [f"{URL}/1", f"{URL}/2", "end", "end"])

    def test_a_stream_is_read_in_pieces(self) -> None:
        async def read() -> list[bytes]:
            response = await http.aget(URL, stream=True)
            return [piece async for piece in response.aiter_bytes(2)]

        self.assertEqual(Host(http={"*": "abc"}).run(read()), [b"ab", b"c"])


if __name__ == "__main__":
    unittest.main()

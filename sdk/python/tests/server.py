"""A web server on the loopback interface, for components to ask."""

from __future__ import annotations

import http.server
import json
import threading
import time
from typing import Any


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers as the tests expect."""

    protocol_version = "HTTP/1.1"
    busy = 0

    def log_message(self, *_: Any) -> None:
        """Says nothing."""

    def answer(self, status: int, body: bytes, **headers: str) -> None:
        """Sends an answer."""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        try:
            self.wfile.write(body)
        except BrokenPipeError:
            pass  # The client has given up, as it was asked to.

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        if path == "/weather":
            said = {
                "city": query.partition("=")[2],
                "authorized": self.headers["authorization"] == "Bearer sekret-1234",
            }
            self.answer(200, json.dumps(said).encode())
        elif path == "/slow":
            time.sleep(0.4)
            self.answer(200, b"slow")
        elif path == "/lines":
            self.answer(200, b"a\nb\r\nc")
        elif path == "/busy":
            Handler.busy += 1
            self.answer(503 if Handler.busy < 3 else 200, b"free")
        elif path == "/redirect":
            self.answer(302, b"", location="/lines")
        else:
            self.answer(404, b"none")

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.answer(201, body, x_length=str(len(body)))


class Server(http.server.ThreadingHTTPServer):
    """The server, in a thread of its own."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that breaks off is no failure of the server."""

"""Connections: names, addresses, redirects, malformed requests, and thousands of idle visitors."""

from __future__ import annotations

import resource
import socket
from pathlib import Path

import httpx
import pytest

from tests.processes import PATIENCE, not_possible_here, run, until
from tests.web.servers import TOOL, Server, begin


def raw(server: Server, request: bytes) -> bytes:
    """Return the reply to bytes that no client library would send."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as connection:
        connection.sendall(request)
        parts = []
        while part := connection.recv(4096):
            parts.append(part)
        return b"".join(parts)


def test_no_address_redirects_to_another(coffee: Server) -> None:
    """A redirect would repeat the secret, and behind TLS in the clear."""
    with coffee.client() as client:
        token = begin(client).rpartition("/")[2]
        paths = [
            f"/api/interviews/{token}/question", f"/api/interviews/{token}/recommendation", f"/i/{token}",
            f"/i/{token}/result", f"/i/{token}/log", coffee.admin, "/healthz", "/api/openapi.json", "/api", "/static",
        ]  # fmt: skip
        for path in paths:
            for wrong in (f"{path}/", f"{path}//", f"/{path}"):
                done = client.get(httpx.URL(coffee.address).copy_with(raw_path=wrong.encode()))
                assert done.status_code in (400, 404) and "location" not in done.headers, wrong
        for path in (f"/api/interviews/{token}/answers/", "/api/interviews/", "/start/", f"/i/{token}/answer/"):
            done = client.post(path, headers={"host": f"localhost:{coffee.port}"})
            assert done.status_code == 404 and "location" not in done.headers, path


def test_redirects_name_neither_scheme_nor_host(coffee: Server) -> None:
    with coffee.client() as client:
        here = begin(client)
        done = client.post(f"{here}/answer", data={"turn": "1", "best": "1"})
        links = client.post(f"{coffee.admin}/links", data={"count": "1"})
        for redirect in (done, links):
            assert redirect.status_code == 303 and redirect.headers["location"].startswith("/")


def test_two_host_headers_are_refused(coffee: Server) -> None:
    ours = f"Host: 127.0.0.1:{coffee.port}\r\n".encode()
    end = b"Connection: close\r\n\r\n"
    assert b" 200 " in raw(coffee, b"GET / HTTP/1.1\r\n" + ours + end).split(b"\r\n")[0]
    for both in (ours + b"Host: evil.example\r\n", b"Host: evil.example\r\n" + ours, ours + ours):
        assert b" 400 " in raw(coffee, b"GET / HTTP/1.1\r\n" + both + end).split(b"\r\n")[0]


@pytest.mark.parametrize("body", [b"zz\r\nabc\r\n0\r\n\r\n", b"-1\r\n\r\n", b"3\r\nabcdef\r\n0\r\n\r\n"])
def test_a_bad_chunk_is_a_bad_request(coffee: Server, body: bytes) -> None:
    head = f"POST /start HTTP/1.1\r\nHost: 127.0.0.1:{coffee.port}\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    assert b" 400 " in raw(coffee, head + body).split(b"\r\n")[0]


def test_localhost_is_served_at_every_loopback_address(tmp_path: Path) -> None:
    with Server(tmp_path, "serve", "coffee", "--strategy", "paper", "--host", "localhost") as server:
        assert server.address.startswith("http://localhost:")
        addresses = {place[4][0] for place in socket.getaddrinfo("localhost", None, type=socket.SOCK_STREAM)}
        assert addresses & {"127.0.0.1", "::1"}
        for address in addresses:
            name = f"[{address}]" if ":" in address else address
            assert httpx.get(f"http://{name}:{server.port}/healthz", timeout=PATIENCE).status_code == 200
        assert server.stop() == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--allowed-host", "*"], "any web site"),
        (["--allowed-host", "http://study.example.org"], "without http://"),
        (["--allowed-host", "study.example.org:80"], "without a port"),
        (["--host", "no.such.host.invalid"], "--host no.such.host.invalid"),
        (["--host", "192.0.2.1"], "--host 192.0.2.1"),
        (["--host", "0.0.0.0"], "--allowed-host"),
        (["--visitor-limit", "everything=3"], "requests-total"),
        (["--visitor-header", "X Real"], "--visitor-header"),
    ],
)
def test_what_cannot_be_served_is_said(tmp_path: Path, words: list[str], said: str) -> None:
    done = run([str(TOOL), "serve", "coffee", "--no-browser", "--port", "0", *words], cwd=tmp_path)
    assert done.returncode == 2 and said in done.stderr and "Traceback" not in done.stderr


# --- idle connections ------------------------------------------------------------------------------------------------

IDLE = 2_000


def still_open(connection: socket.socket) -> bool:
    try:
        return connection.recv(1, socket.MSG_PEEK) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False


def test_two_thousand_idle_connections_shut_nobody_out(tmp_path: Path) -> None:
    """The reply comes while they are held; a server that must drop them first would have at most half of them left."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 2 * IDLE:
        not_possible_here(f"at most {hard} files can be open")
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 1_024), hard))  # the server inherits it, and raises it
    idle: list[socket.socket] = []
    try:
        with Server(tmp_path, "serve", "coffee", "--strategy", "paper") as server:
            resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2 * IDLE), hard))

            def held() -> int:
                """Return how many are still idle after a reply."""
                for connection in idle:
                    connection.close()
                idle.clear()
                for _ in range(IDLE):
                    idle.append(socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE))
                assert httpx.get(f"{server.address}/healthz", timeout=PATIENCE).status_code == 200
                for connection in idle:
                    connection.setblocking(False)
                return sum(map(still_open, idle))

            until(lambda: held() > 0.6 * IDLE)  # they are dropped after four seconds: a slow machine needs another try
    finally:
        for connection in idle:
            connection.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_pages_are_compressed_for_those_who_accept_that(coffee: Server) -> None:
    with coffee.client() as client:
        here = begin(client)
        for path in (here, f"{here}/result", coffee.admin, "/api/openapi.json"):
            plain, small = (client.get(path, headers={"accept-encoding": coding}) for coding in ("identity", "gzip"))
            assert "content-encoding" not in plain.headers and small.headers["content-encoding"] == "gzip"
            assert plain.text == small.text, path

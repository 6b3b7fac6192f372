"""The endpoint of metrics answers what it should, nothing else, and nobody holds it up."""

import http.client
import socket
from contextlib import ExitStack, closing, contextmanager
from threading import Event, Semaphore

import pytest

from pgstrata.app.httpd import server as module
from pgstrata.app.httpd.listen import parse_listen
from pgstrata.app.httpd.server import LARGEST_HEAD, MOST_REQUESTS
from pgstrata.app.watching.endpoint import Endpoint, choose_listen
from pgstrata.errors import HostNotFitError, UsageError
from pgstrata.report.live.openmetrics import MetricsFormat


def render(form):
    return f"as {form.name}\n"


@pytest.fixture(scope="module")
def endpoint():
    with opened() as found:
        yield found


@contextmanager
def opened(text="127.0.0.1:0", render=render, *, anywhere=False):
    found = Endpoint(parse_listen(text, anywhere=anywhere), render)
    try:
        yield found
    finally:
        found.close()


def port_of(endpoint):
    return int(endpoint.url.rpartition(":")[2].removesuffix("/metrics"))


def ask(endpoint, path="/metrics", method="GET", **headers):
    with closing(http.client.HTTPConnection("127.0.0.1", port_of(endpoint), timeout=60)) as connection:
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        return answer, answer.read().decode()


def send(endpoint, words):
    """Send bytes, and read until the other side has closed."""
    with connect(endpoint) as connection:
        connection.sendall(words)
        return read_all(connection)


def connect(endpoint):
    return socket.create_connection(("127.0.0.1", port_of(endpoint)), timeout=60)


def read_all(connection):
    return b"".join(iter(lambda: connection.recv(65536), b""))


def test_metrics_are_given_in_the_format_that_is_wanted(endpoint):
    answer, text = ask(endpoint)
    assert (answer.status, text) == (200, "as PLAIN\n")
    assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    answer, text = ask(endpoint, Accept="application/openmetrics-text; version=1.0.0")
    assert (answer.status, text) == (200, "as OPENMETRICS\n")
    assert answer.headers["Content-Type"] == "application/openmetrics-text; version=1.0.0; charset=utf-8"


def test_head_has_no_body(endpoint):
    answer, text = ask(endpoint, method="HEAD")
    assert (answer.status, text) == (200, "")
    assert answer.headers["Content-Length"] == str(len(render(MetricsFormat.PLAIN)))


@pytest.mark.parametrize(
    "path", ["/", "/metrics/", "/metricsx", "/../metrics", "http://127.0.0.1/metrics", "/favicon.ico"]
)
def test_nothing_else_is_there(endpoint, path):
    assert ask(endpoint, path)[0].status == 404


def test_parameters_of_a_scrape_are_ignored(endpoint):
    assert ask(endpoint, "/metrics?match=x")[0].status == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "ANYTHING"])
def test_other_methods_are_refused(endpoint, method):
    answer, _ = ask(endpoint, method=method)
    assert answer.status == 405
    assert answer.headers["Allow"] == "GET, HEAD"


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1", "127.0.0.1:9790"])
def test_names_of_this_machine_are_right(endpoint, host):
    assert ask(endpoint, Host=host)[0].status == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "", "[::1]", "localhost:x"]
)
def test_a_page_whose_name_was_turned_to_this_machine_reads_nothing(endpoint, host):
    answer, text = ask(endpoint, Host=host)
    assert answer.status == 421
    assert "PLAIN" not in text


@pytest.mark.parametrize("head", [b"", b"Host: localhost\r\nHost: evil.example\r\n"])
def test_a_request_names_one_host(endpoint, head):
    assert send(endpoint, b"GET /metrics HTTP/1.1\r\n" + head + b"\r\n").startswith(b"HTTP/1.1 421 ")


def test_where_other_machines_are_meant_to_ask_any_name_is_right():
    with opened("0.0.0.0:0", anywhere=True) as found:
        assert ask(found, Host="db1.example:9790")[0].status == 200


def test_no_answer_names_the_software(endpoint):
    for path in ("/metrics", "/"):
        answer, text = ask(endpoint, path)
        assert "Server" not in answer.headers
        assert "Python" not in text


@pytest.mark.parametrize(
    "words", [b"GET /" + b"x" * LARGEST_HEAD, b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * LARGEST_HEAD]
)
def test_a_request_that_is_too_large_is_refused_before_it_ends(endpoint, words):
    assert send(endpoint, words[: LARGEST_HEAD + 1]).startswith(b"HTTP/1.1 431 ")


def test_a_head_of_the_largest_size_is_answered(endpoint):
    head = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nX: "
    words = head + b"x" * (LARGEST_HEAD - len(head) - 4) + b"\r\n\r\n"
    assert send(endpoint, words).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize(
    "words", [b"\r\n\r\n", b"\0\0\n\n", b"GET\n\n", b"GET /metrics HTTP/9\n\n", b"GET / HTTP/1.1\n:\xff\n\n"]
)
def test_nonsense_is_no_harm(endpoint, words):
    assert b"PLAIN" not in send(endpoint, words)
    assert ask(endpoint)[0].status == 200


def test_a_connection_that_ends_early_is_no_harm(endpoint, capfd):
    for words in (b"", b"GET /met"):
        with connect(endpoint) as connection:
            connection.sendall(words)
            connection.shutdown(socket.SHUT_WR)
            assert read_all(connection) == b""
    assert ask(endpoint)[0].status == 200
    assert capfd.readouterr() == ("", "")


def test_a_client_that_sends_nothing_holds_nobody_up(endpoint, monkeypatch):
    monkeypatch.setattr(module, "PATIENCE", 60.0)
    with connect(endpoint) as slow:
        slow.sendall(b"GET /metrics HTTP/1.1\r\n")
        assert ask(endpoint)[0].status == 200
        slow.sendall(b"Host: localhost\r\n\r\n")
        assert read_all(slow).startswith(b"HTTP/1.1 200 ")


def test_a_client_that_never_asks_is_left(monkeypatch):
    monkeypatch.setattr(module, "PATIENCE", 0.05)
    with opened() as found, connect(found) as slow:
        assert read_all(slow) == b""


ASKED = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"


def test_of_more_connections_than_there_may_be_the_oldest_that_does_not_ask_is_closed(monkeypatch):
    monkeypatch.setattr(module, "PATIENCE", 60.0)
    with opened() as found, ExitStack() as held:
        first, *others = [held.enter_context(connect(found)) for _ in range(MOST_REQUESTS)]
        assert ask(found)[0].status == 200
        assert read_all(first) == b""
        for connection in others:
            connection.sendall(ASKED)
            assert read_all(connection).startswith(b"HTTP/1.1 200 ")


def test_while_as_many_as_there_may_be_are_answered_further_ones_are_closed():
    begun, end = Semaphore(0), Event()

    def render_slowly(form):
        begun.release()
        assert end.wait(60)
        return "slow\n"

    with opened(render=render_slowly) as found, ExitStack() as held:
        asking = [held.enter_context(connect(found)) for _ in range(MOST_REQUESTS)]
        for connection in asking:
            connection.sendall(ASKED)
        for _ in asking:
            assert begun.acquire(timeout=60)
        with connect(found) as further:
            assert read_all(further) == b""
        end.set()
        assert all(read_all(connection).endswith(b"slow\n") for connection in asking)


def test_metrics_that_cannot_be_rendered_are_an_error_of_the_server(capfd):
    with opened(render=lambda form: str(1 / 0)) as found:
        assert ask(found)[0].status == 500
        assert ask(found, "/")[0].status == 404
    assert capfd.readouterr() == ("", "")


def test_a_port_that_is_taken_is_named(endpoint):
    port = port_of(endpoint)
    with pytest.raises(HostNotFitError) as caught:
        Endpoint(parse_listen(f"127.0.0.1:{port}", anywhere=False), render)
    assert str(caught.value) == (
        f"--listen 127.0.0.1:{port}: another program listens at this address\n"
        "  -> choose another port; port 0 takes one that is free"
    )


def test_an_address_of_another_machine_cannot_be_listened_at():
    with pytest.raises(HostNotFitError, match="this machine does not have this address"):
        Endpoint(parse_listen("192.0.2.1:0", anywhere=True), render)


def test_after_its_end_nobody_listens():
    with opened() as found:
        pass
    with pytest.raises(ConnectionRefusedError):
        connect(found)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("127.0.0.1:9790", "127.0.0.1:9790"),
        ("localhost:0", "127.0.0.1:0"),
        ("[::1]:80", "[::1]:80"),
        ("127.9.9.9:1", "127.9.9.9:1"),
    ],
)
def test_addresses_of_this_machine_alone_are_listened_at(text, found):
    assert parse_listen(text, anywhere=False).text == found


@pytest.mark.parametrize("text", ["0.0.0.0:9790", "[::]:9790", "10.0.0.9:9790"])
def test_other_addresses_need_a_word(text):
    with pytest.raises(UsageError, match="other machines can reach"):
        parse_listen(text, anywhere=False)
    assert parse_listen(text, anywhere=True).text == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "9790",
        ":9790",
        "127.0.0.1",
        "127.0.0.1:",
        "127.0.0.1:65536",
        "127.0.0.1:-1",
        "::1:80",
        "[127.0.0.1]:80",
        "db1:80",
        "[::1]",
        "1.2.3.4:٣",
    ],
)
@pytest.mark.parametrize("anywhere", [False, True])
def test_what_is_no_address_is_refused(text, anywhere):
    with pytest.raises(UsageError, match="is not an address to listen at"):
        parse_listen(text, anywhere=anywhere)


def test_nothing_is_listened_at_where_nobody_asks_for_it():
    assert choose_listen(None, anywhere=False) is None
    with pytest.raises(UsageError, match="needs --listen"):
        choose_listen(None, anywhere=True)
    assert choose_listen("127.0.0.1:1", anywhere=False).text == "127.0.0.1:1"

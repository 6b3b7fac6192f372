"""Whether a guest's sshd answers, with sockets of this machine in its place."""

import socket
import time
from contextlib import closing

import pytest

from pgstrata.vms.greeting import Greeting

LIMIT = 20.0
HELLO = b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n"


@pytest.fixture
def guest():
    """Does not listen yet."""
    with socket.socket() as made:
        made.settimeout(LIMIT)
        made.bind(("127.0.0.1", 0))
        yield made


@pytest.fixture
def greeting(guest):
    with closing(Greeting(guest.getsockname()[1])) as made:
        yield made


def answer(guest, said):
    """The oldest connection that waits gets these bytes and is closed."""
    connection, _ = guest.accept()
    with connection:
        connection.sendall(said)


def soon(greeting):
    """Whether it comes while one looks again and again."""
    end = time.monotonic() + LIMIT
    while not greeting.comes(0.01):
        if time.monotonic() > end:
            return False
    return True


def test_a_guest_that_does_not_listen_or_says_nothing_is_not_up(guest, greeting):
    assert not greeting.comes(0)
    guest.listen()
    assert not greeting.comes(0)
    assert not greeting.comes(0.01)
    answer(guest, HELLO)
    assert soon(greeting)


def test_whichever_connection_is_greeted_counts(guest, greeting):
    guest.listen()
    for _ in range(3):
        assert not greeting.comes(0)
    kept, _ = guest.accept()
    with kept:
        answer(guest, HELLO)
        assert soon(greeting)


@pytest.mark.parametrize("said", [b"", b"220 mail.example ESMTP\r\n"])
def test_what_is_closed_or_says_something_else_is_given_up_and_asked_anew(guest, greeting, said):
    guest.listen()
    assert not greeting.comes(0)
    answer(guest, said)
    assert not greeting.comes(0.05)
    answer(guest, HELLO)
    assert soon(greeting)


def test_only_so_many_connections_are_kept_and_none_in_the_end(guest, greeting):
    guest.listen()
    for _ in range(12):
        assert not greeting.comes(0)
    assert len(greeting._connections) == 8
    greeting.close()
    for _ in range(12):
        connection, _ = guest.accept()
        with connection:
            connection.settimeout(LIMIT)
            assert connection.recv(1) == b""

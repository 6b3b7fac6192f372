"""The addresses by which client and server reach each other, as sshd says them."""

import socket

import pytest

from pgstrata.errors import HostNotFitError
from pgstrata.hosts.tcp_route import find_addresses, find_tcp_route, require_tcp_route
from pgstrata.model.server import TcpRoute


@pytest.mark.parametrize(
    ("said", "client", "server"),
    [
        ("198.51.100.7 50000 198.51.100.9 22\n", "198.51.100.7", "198.51.100.9"),
        ("2001:db8::7 50000 2001:db8::9 2222", "2001:db8::7", "2001:db8::9"),
        ("::ffff:198.51.100.7 50000 ::ffff:198.51.100.9 22", "198.51.100.7", "198.51.100.9"),
    ],
)
def test_the_way_is_that_of_the_ssh_connection(said, client, server):
    way = find_tcp_route(said, "db1")
    assert (way.clients, way.server) == ((client,), server)
    assert way.known_port == int(said.split()[3])


@pytest.mark.parametrize("said", ["", "1.2.3.4 5", "fe80::1%eth0 50000 fe80::2%eth0 22"])
def test_without_addresses_that_hold_there_is_no_way(said):
    with pytest.raises(HostNotFitError) as caught:
        find_tcp_route(said, "db1")
    assert caught.value.remedy


def test_an_address_that_is_not_reached_is_refused_with_what_to_do():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        require_tcp_route(TcpRoute(known_port=port), "db1")
    with pytest.raises(HostNotFitError, match=r"does not reach 127\.0\.0\.1") as caught:
        require_tcp_route(TcpRoute(known_port=port), "db1")
    assert "jump host" in caught.value.remedy


def test_a_machines_own_addresses_are_those_that_others_may_know():
    trie = (
        "Main:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 127.0.0.1\n        /32 host LOCAL\n     +-- 10.0.2.0/24 2 0 2\n"
        "        |-- 10.0.2.0\n           /24 link UNICAST\n        |-- 10.0.2.15\n           /32 host LOCAL\n"
        "Local:\n        |-- 10.0.2.15\n           /32 host LOCAL\n"
    )
    interfaces = (
        "00000000000000000000000000000001 01 80 10 80       lo\n"
        "fe800000000000000000000000000001 02 40 20 80     eth0\n"
        "20010db8000000000000000000000007 02 40 00 80     eth0\n"
    )
    assert find_addresses(trie, interfaces) == ("10.0.2.15", "2001:db8::7")
    assert find_addresses("", "") == ()

"""The addresses by which client and server reach each other, as sshd says them."""

import socket

import pytest

from pgstrata.errors import HostNotFitError
from pgstrata.hosts.tcp_route import find_tcp_route, require_tcp_route
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
    assert (way.client, way.server) == (client, server)
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

"""How long the start of a server may take."""

import time

import pytest

from pgstrata.errors import DiskFullError, ServerFailedError
from pgstrata.layers.server import ClusterControl, render_access
from pgstrata.model.experiment import Environment, ServerKind, ServerSpec
from pgstrata.model.launch import Launch
from pgstrata.model.server import TcpRoute

WHERE = Environment(name="it", levels=(), server=ServerSpec(kind=ServerKind.EMBEDDED))


class FastTime:
    """In a second of ours a minute passes."""

    def monotonic(self):
        return 60 * time.monotonic()

    def sleep(self, seconds):
        time.sleep(seconds)


@pytest.mark.server
def test_what_stands_in_front_of_a_server_may_take_longer_than_its_start(server_host, cluster):
    build, clone = cluster("embedded")
    control = ClusterControl(server_host, FastTime(), clone.folder)
    slow = Launch(server=("sh", "-c", 'sleep 2.5; exec "$@"', "sh"))
    server = control.start(WHERE, build, clone, slow)
    control.stop(server)


@pytest.mark.server
@pytest.mark.parametrize(
    ("said", "free", "error"),
    [
        ("LOG:  database system is shut down", 5, DiskFullError),
        ("LOG:  database system is shut down", 500, ServerFailedError),
        ("FATAL:  data directory has wrong ownership", 5, ServerFailedError),
        ("", 5, DiskFullError),
    ],
)
def test_a_log_that_does_not_say_why_a_server_ended_lay_on_a_full_disk_if_there_is_no_room(
    server_host, cluster, monkeypatch, said, free, error
):
    build, clone = cluster("embedded")
    monkeypatch.setattr(type(server_host), "free_bytes", lambda *_: free << 20)
    control = ClusterControl(server_host, FastTime(), clone.folder)
    with pytest.raises(error):
        control.start(WHERE, build, clone, Launch(server=("sh", "-c", f'printf %s "{said}"; exit 1', "sh")))


def test_by_tcp_the_servers_own_machine_and_the_client_may_come_in_and_nobody_else():
    far = render_access(TcpRoute(server="198.51.100.9", clients=("198.51.100.7",)))
    assert far.decode().splitlines() == [
        "local all all trust",
        "host all all 127.0.0.1/32 md5",
        "host all all 198.51.100.7/32 md5",
    ]
    assert b"2001:db8::7/128" in render_access(TcpRoute(server="2001:db8::9", clients=("2001:db8::7",)))
    assert render_access(TcpRoute()).count(b"host ") == 1

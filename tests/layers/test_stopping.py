"""How a server is stopped that has just lost a process, or that somebody else stopped."""

import pytest

from pgstrata.app.machine import SystemClock
from pgstrata.layers.server import ClusterControl, _recovering
from pgstrata.model.experiment import Environment, ServerKind, ServerSpec
from pgstrata.ports.host import StopSignal

UP = b"LOG:  database system is ready to accept connections\n"
CRASH = (
    b"LOG:  server process (PID 7) was terminated by signal 9\nLOG:  all server processes terminated; reinitializing\n"
)


@pytest.mark.parametrize(
    ("log", "recovering"), [(b"", False), (UP, False), (UP + CRASH, True), (UP + CRASH + UP, False)]
)
def test_a_server_is_recovering_from_a_crash_until_it_says_that_it_is_ready(log, recovering):
    assert _recovering(log) == recovering


@pytest.mark.server
def test_a_server_that_hangs_by_sigstop_is_shut_down_as_any_other(server_host, cluster):
    build, clone = cluster("embedded")
    control = ClusterControl(server_host, SystemClock(), clone.folder)
    where = Environment(name="it", levels=(), server=ServerSpec(kind=ServerKind.EMBEDDED))
    server = control.start(where, build, clone)
    server_host.signal_pid(server.postmaster_pid, StopSignal.STOP)
    control.stop(server)
    assert not control.alive(server)
    assert b"database system is shut down" in control.log(server)

"""How a server that has just lost a process is stopped."""

import pytest

from pgstrata.layers.server import _recovering

UP = b"LOG:  database system is ready to accept connections\n"
CRASH = (
    b"LOG:  server process (PID 7) was terminated by signal 9\nLOG:  all server processes terminated; reinitializing\n"
)


@pytest.mark.parametrize(
    ("log", "recovering"), [(b"", False), (UP, False), (UP + CRASH, True), (UP + CRASH + UP, False)]
)
def test_a_server_is_recovering_from_a_crash_until_it_says_that_it_is_ready(log, recovering):
    assert _recovering(log) == recovering

"""How long the start of a server may take."""

import time

import pytest

from pgstrata.layers.server import ClusterControl
from pgstrata.model.experiment import Environment, ServerKind, ServerSpec
from pgstrata.model.launch import Launch

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

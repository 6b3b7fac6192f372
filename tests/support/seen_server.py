"""A running server as layers see it: an environment, and the process that runs in its place."""

from pgstrata.model.server import Address
from pgstrata.ports.server import Clone, Dataset, RunningServer


def make_server(asked, pid):
    """A server of an environment whose postmaster is that process; None: of somebody else."""
    dataset = Dataset(identity="d", location="/nowhere", bytes=0, seconds_building=0.0)
    clone = Clone(dataset=dataset, location="/nowhere", database="postgres", folder="/nowhere")
    address = Address(host="/nowhere", port=1, user="u", database="postgres")
    return RunningServer(environment=asked, build=None, clone=clone, address=address, postmaster_pid=pid)

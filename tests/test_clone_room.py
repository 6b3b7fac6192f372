"""A clone that does not fit: which file system is full decides what helps."""

import pytest

from pgstrata.datasets.cluster import ClusterDatasets
from pgstrata.errors import DiskFullError
from pgstrata.hosts.local import LocalHost
from pgstrata.ports.server import Dataset


class FullHost(LocalHost):
    """A host on which nothing more can be copied."""

    def run(self, command, **keywords):
        if command.argv[0] == "cp":
            raise DiskFullError("cp: error writing '1': No space left on device")
        return super().run(command, **keywords)


@pytest.mark.parametrize(
    ("own", "remedy", "other"), [(True, "storage.size", "PGSTRATA_DATA"), (False, "PGSTRATA_DATA", "storage.size")]
)
def test_a_full_file_system_is_named_with_what_makes_it_larger(own, remedy, other, tmp_path):
    (tmp_path / "mount").mkdir()
    folder = str(tmp_path / "mount") if own else ""
    datasets = ClusterDatasets(
        host=FullHost(), sql=None, control=None, tools=None, workloads={}, recipe=None, clock=None,
        root=str(tmp_path / "data"), study="study",
    )  # fmt: skip
    dataset = Dataset(identity="d", location=str(tmp_path), bytes=1, seconds_building=1)
    with pytest.raises(DiskFullError) as caught:
        datasets.clone(dataset, "one", folder)
    assert remedy in caught.value.remedy
    assert other not in caught.value.remedy
    assert caught.value.where == (folder or str(tmp_path / "data"))
    assert not list((tmp_path / "mount").iterdir())

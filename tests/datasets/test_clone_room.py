"""A clone that does not fit: which file system is full decides what helps."""

from pathlib import Path

import pytest

from pgstrata.datasets.cluster import ClusterDatasets
from pgstrata.errors import CommandFailedError, DiskFullError
from pgstrata.hosts.local import LocalHost
from pgstrata.ports.server import Dataset


class FullHost(LocalHost):
    """A host on which nothing more can be copied."""

    def running(self, command, **keywords):
        if command.argv[0] == "cp":
            raise DiskFullError("cp: error writing '1': No space left on device")
        return super().running(command, **keywords)


@pytest.mark.parametrize(
    ("own", "remedy", "other"), [(True, "storage.size", "PGSTRATA_DATA"), (False, "PGSTRATA_DATA", "storage.size")]
)
def test_a_full_file_system_is_named_with_what_makes_it_larger(own, remedy, other, tmp_path):
    (tmp_path / "mount").mkdir()
    folder = str(tmp_path / "mount") if own else ""
    datasets = ClusterDatasets(
        host=FullHost(),
        sql=None,
        control=None,
        tools=None,
        workloads={},
        recipe=None,
        clock=None,
        root=str(tmp_path / "data"),
        study="study",
    )
    dataset = Dataset(identity="d", location=str(tmp_path), bytes=1, seconds_building=1)
    with pytest.raises(DiskFullError) as caught:
        datasets.clone(dataset, "one", folder)
    assert remedy in caught.value.remedy
    assert other not in caught.value.remedy
    assert caught.value.where == (folder or str(tmp_path / "data"))
    assert not list((tmp_path / "mount").iterdir())


def make_datasets(tmp_path, host):
    return ClusterDatasets(
        host=host,
        sql=None,
        control=None,
        tools=None,
        workloads={},
        recipe=None,
        clock=None,
        root=str(tmp_path / "data"),
        study="study",
    )


@pytest.mark.parametrize("name", ["pg_wal", "pg_xlog"])
def test_wal_on_other_storage_is_a_link_and_goes_with_its_clone(name, tmp_path):
    pristine = tmp_path / "pristine"
    (pristine / name).mkdir(parents=True)
    (pristine / name / "000000010000000000000001").write_bytes(b"wal")
    wal = tmp_path / "wal"
    wal.mkdir()
    datasets = make_datasets(tmp_path, LocalHost())
    dataset = Dataset(identity="d", location=str(pristine), bytes=1, seconds_building=1)
    for _ in range(2):  # what an earlier one left gives way
        clone = datasets.clone(dataset, "one", "", str(wal))
    assert Path(clone.location, name).readlink() == wal / "one" / name
    assert (wal / "one" / name / "000000010000000000000001").read_bytes() == b"wal"
    assert (pristine / name).is_dir()
    assert clone.folders == (clone.location, f"{wal}/one")
    datasets.discard(clone)
    assert not list(wal.iterdir())
    assert not Path(clone.folder).exists()


def test_wal_that_does_not_fit_is_said_of_its_own_storage(tmp_path):
    class FullWal(LocalHost):
        def run(self, command, **keywords):
            if "ln -s" in " ".join(command.argv):
                raise DiskFullError("cp: error writing '1': No space left on device")
            return super().run(command, **keywords)

    (tmp_path / "pristine" / "pg_wal").mkdir(parents=True)
    dataset = Dataset(identity="d", location=str(tmp_path / "pristine"), bytes=1, seconds_building=1)
    datasets = make_datasets(tmp_path, FullWal())
    (tmp_path / "wal").mkdir()
    with pytest.raises(DiskFullError) as caught:
        datasets.clone(dataset, "one", "", str(tmp_path / "wal"))
    assert caught.value.where == str(tmp_path / "wal")
    assert not list((tmp_path / "wal").iterdir())


def test_a_dataset_without_wal_or_with_a_link_for_it_is_refused(tmp_path):
    (tmp_path / "pristine").mkdir()
    (tmp_path / "wal").mkdir()
    (tmp_path / "elsewhere").mkdir()
    dataset = Dataset(identity="d", location=str(tmp_path / "pristine"), bytes=1, seconds_building=1)
    for said in ("there is no WAL", "is a link already"):
        if "link" in said:
            (tmp_path / "pristine" / "pg_wal").symlink_to(tmp_path / "elsewhere")
        with pytest.raises(CommandFailedError) as caught:
            make_datasets(tmp_path, LocalHost()).clone(dataset, "one", "", str(tmp_path / "wal"))
        assert said in "\n".join((caught.value.what, *caught.value.details))
    assert list((tmp_path / "elsewhere").iterdir()) == []

"""Files of the user's for data on another machine, which is this one behind a second transport."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pgstrata.app.data_files import DataFiles
from pgstrata.app.sent import bring_file
from pgstrata.errors import HostFileError
from pgstrata.hosts.local import LocalHost


class There(LocalHost):
    """A transport as that of ssh, to this machine."""

    def session(self, words):
        return words


@pytest.fixture
def hosts():
    both = LocalHost(), There()
    yield both
    for host in both:
        host.close()


@pytest.fixture
def named(tmp_path):
    (tmp_path / "rows.csv").write_bytes(b"1,2\n")
    (tmp_path / "prod").mkdir()
    (tmp_path / "prod" / "toc.dat").write_bytes(b"contents")
    (tmp_path / "prod" / "1.dat").write_bytes(b"rows")
    return DataFiles(tmp_path, tmp_path / "none", sure=True)


@pytest.mark.parametrize("name", ["rows.csv", "prod"])
def test_a_file_is_known_over_there_by_the_same_digest(hosts, named, tmp_path, name):
    file = named(name)
    brought = bring_file(*hosts, file, str(tmp_path / "to" / "0"))
    assert (brought.digest, brought.form, brought.stamp) == (file.digest, file.form, "")
    assert Path(brought.path) == tmp_path / "to" / "0" / name
    assert Path(brought.path).exists()


@pytest.mark.parametrize(("name", "changed"), [("rows.csv", "rows.csv"), ("prod", "prod/1.dat")])
def test_a_file_that_has_changed_since_the_plan_is_refused(hosts, named, tmp_path, name, changed):
    file, path = named(name), tmp_path / changed
    before = path.stat()
    path.write_bytes(bytes(before.st_size))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(HostFileError, match="other contents than the plan"):
        bring_file(*hosts, file, str(tmp_path / "to" / "0"))

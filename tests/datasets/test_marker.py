"""Markers, which lie where the servers' user may put anything."""

import json
import os

import pytest

from pgstrata.datasets.marker import MARKER, Marker, ProcessIdentity, load_marker, save_marker, sum_datasets
from pgstrata.hosts.local import LocalHost
from pgstrata.hosts.shell import ShellHost

OURS = Marker(
    purpose="dataset",
    subject="abc",
    study="studies/a",
    owner=ProcessIdentity(pid=1, started=2, boot="b", machine="m"),
    bytes=5,
    seconds=1.5,
)
FIELDS = {"program": "pgstrata", "purpose": "p", "subject": "s", "study": "s"}
OWNER = {"pid": 1, "started": 2, "boot": "b"}


@pytest.fixture(params=[LocalHost, lambda: ShellHost(name="a shell")], ids=["local", "shell"])
def host(request):
    host = request.param()
    yield host
    host.close()


def test_a_marker_survives_being_written_and_read(host, tmp_path):
    save_marker(host, str(tmp_path), OURS)
    assert load_marker(host, str(tmp_path)) == OURS


@pytest.mark.parametrize(
    "content",
    [
        b"", b"\xff\xfe", b'"abc"', b"[]", b"null", b"1e999", b"[" * 5000, b'{"program": "pgstrata"}', b" " * (2 << 20),
        json.dumps(FIELDS | {"owner": "me"}).encode(),
        json.dumps(FIELDS | {"owner": OWNER | {"pid": "1"}}).encode(),
        json.dumps(FIELDS | {"owner": OWNER, "bytes": "many"}).encode(),
        json.dumps(FIELDS | {"owner": OWNER, "study": ["a"]}).encode(),
    ],
)  # fmt: skip
def test_what_is_no_marker_is_no_marker_and_no_defect(host, tmp_path, content):
    folder = tmp_path / "datasets" / "evil"
    folder.mkdir(parents=True)
    (folder / MARKER).write_bytes(content)
    assert load_marker(host, str(folder)) is None
    assert sum_datasets(host, str(tmp_path)) == 0


@pytest.mark.parametrize("put", [lambda path: path.symlink_to("/dev/zero"), os.mkfifo], ids=["device", "pipe"])
def test_what_has_no_end_is_no_marker(host, tmp_path, put):
    put(tmp_path / MARKER)
    assert load_marker(host, str(tmp_path)) is None

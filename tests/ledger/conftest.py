import shlex

import pytest

from changed_files import Files, Place
from pgstrata.hosts.local import LocalHost


@pytest.fixture
def things(tmp_path):
    folder = tmp_path / "it's a folder"
    folder.mkdir()
    for name in ("one", "two"):
        (folder / name).write_text("first\n")
    return Files(folder)


@pytest.fixture
def host():
    host = LocalHost()
    yield host
    host.close()


@pytest.fixture
def place(host, tmp_path):
    return Place(host, str(tmp_path / "state" / "ledger"))


@pytest.fixture
def open_place(host, open_folder):
    """A place that other users could reach if they owned a folder of it."""
    return Place(host, str(open_folder / "state" / "ledger"))


@pytest.fixture
def ledger(place):
    return place.ledger()


def quoted(path):
    return shlex.quote(str(path))

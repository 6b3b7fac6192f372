"""Files with data: kinds, digests, and the cache of digests of large ones."""

from __future__ import annotations

import hashlib
import io
import os
import tarfile

import pytest

from pgstrata.app import data_files
from pgstrata.app.data_files import DataFiles
from pgstrata.model.own_data import DumpForm


@pytest.fixture
def look(tmp_path):
    return DataFiles(tmp_path, tmp_path / "cache" / "digests.json", sure=True)


def test_kinds_are_told_by_contents(tmp_path, look):
    (tmp_path / "a.sql").write_text("SELECT 1;\n")
    (tmp_path / "custom").write_bytes(b"PGDMP\1\2")
    with tarfile.open(tmp_path / "tar", "w") as archive:
        entry = tarfile.TarInfo("toc.dat")
        entry.size = 3
        archive.addfile(entry, io.BytesIO(b"abc"))
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "toc.dat").write_bytes(b"PGDMP")
    forms = [look(name).form for name in ("a.sql", "custom", "tar", "folder")]
    assert forms == [DumpForm.NONE, DumpForm.CUSTOM, DumpForm.TAR, DumpForm.DIRECTORY]
    assert look("a.sql").digest == hashlib.sha256(b"SELECT 1;\n").hexdigest()
    before = look("folder").digest
    (tmp_path / "folder" / "1.dat").write_bytes(b"x")
    assert look("folder").digest != before


def test_missing_files_folders_and_pipes_are_no_data(tmp_path, look):
    (tmp_path / "empty").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for name, error in (("gone", FileNotFoundError), ("empty", IsADirectoryError), ("pipe", OSError)):
        with pytest.raises(error):
            look(name)
    with pytest.raises(ValueError, match="line"):
        look("two\nlines")


def test_large_files_are_read_once_and_never_for_a_plan(tmp_path, look, monkeypatch):
    monkeypatch.setattr(data_files, "_AT_ONCE", 3)
    (tmp_path / "cache").mkdir()
    (tmp_path / "large").write_bytes(b"large")
    shown = DataFiles(tmp_path, tmp_path / "cache" / "digests.json", sure=False)
    assert shown("large").digest == ""
    digest = look("large").digest
    assert digest == hashlib.sha256(b"large").hexdigest()
    assert shown("large").digest == digest
    monkeypatch.setattr(data_files, "_read", lambda _: pytest.fail("read again"))
    assert look("large").digest == digest
    (tmp_path / "large").write_bytes(b"other")
    os.utime(tmp_path / "large", (1, 1))
    assert shown("large").digest == ""

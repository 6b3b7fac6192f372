"""Loading data of the user's own: what is run, as whom, and what is said where it fails."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fakes import build
from pgstrata.app.data_files import DataFiles
from pgstrata.datasets.own import bring_files, copy_in, digest_there, include, load_own_data
from pgstrata.errors import CommandFailedError, HostNotFitError, ServerFailedError
from pgstrata.hosts.local import LocalHost
from pgstrata.model.own_data import CopiedFile, DataFile, DumpForm, OwnData
from pgstrata.model.server import Address
from pgstrata.ports.host import Completed

ADDRESS = Address(host="/run/s", port=5432, user="pgstrata", database="bench")
DUMP = DataFile(name="prod.dump", path="/data/prod.dump", digest="d", bytes=1, stamp="1:2:3:4", form=DumpForm.CUSTOM)


class Host:
    def __init__(self, user="postgres", *, stamps=("1:2:3:4",), readable=True, fails=()):
        self.user, self.stamps, self.readable, self.fails, self.ran = user, list(stamps), readable, fails, []

    def run(self, command, *, timeout=600.0, check=True):
        if command.argv[0] == "stat":
            stamp = self.stamps.pop(0) if len(self.stamps) > 1 else self.stamps[0]
            return Completed(code=0, stdout=f"{stamp}\n".encode(), stderr=b"")
        if command.argv[0] == "test":
            return Completed(code=0 if self.readable else 1, stdout=b"", stderr=b"")
        self.ran.append(command)
        if self.fails:
            raise CommandFailedError("it ended with exit code 1", details=self.fails)
        return Completed(code=0, stdout=b"", stderr=b"")


class Sql:
    def __init__(self):
        self.scripts = []

    def execute(self, address, script):
        self.scripts.append(script)

    def executing(self, address, script):
        yield
        self.scripts.append(script)


def load(data, host, sql=None):
    load_own_data(host, sql or Sql(), build(), ADDRESS, data)


def test_a_dump_is_restored_by_the_given_build_without_owners():
    host = Host()
    load(OwnData(dump=DUMP), host)
    (command,) = host.ran
    assert command.argv[0] == build().program("pg_restore")
    assert command.argv[-3:] == ("--dbname", "bench", "/data/prod.dump")
    assert {"--no-owner", "--no-privileges", "--exit-on-error", "--jobs"} <= set(command.argv)
    assert command.environment["PGHOST"] == "/run/s"


def test_sql_comes_before_copies_and_is_read_by_psql():
    sql, file = Sql(), DataFile(name="o.csv", path="/d/it's.csv", digest="", bytes=1)
    data = OwnData(sql=file, copies=(CopiedFile(table="o", file=file, options="FORMAT csv"),))
    load(data, Host(), sql)
    assert sql.scripts == ["\\i '/d/it''s.csv'\n", "\\copy o FROM '/d/it''s.csv' WITH (FORMAT csv)\n"]
    assert include("/a\\b") == "\\i '/a\\\\b'\n"
    assert copy_in(data.copies[0]) == sql.scripts[1]


def test_a_command_works_in_the_folder_of_the_experiment():
    host = Host()
    load(OwnData(command=("./fill", "-n", "5"), folder="/home/me"), host)
    (command,) = host.ran
    assert (command.argv, command.folder) == (("/home/me/fill", "-n", "5"), "/home/me")
    assert command.environment["PGDATABASE"] == "bench"


def test_a_command_is_never_run_as_root():
    host = Host(user="root")
    with pytest.raises(HostNotFitError, match="never run as root"):
        load(OwnData(command=("./fill",)), host)
    assert host.ran == []


def test_files_that_cannot_be_read_or_change_are_refused():
    with pytest.raises(HostNotFitError, match="cannot be read by the user postgres"):
        load(OwnData(dump=DUMP), Host(readable=False))
    with pytest.raises(HostNotFitError, match="has changed"):
        load(OwnData(dump=DUMP), Host(stamps=("9:9:9:9",)))
    with pytest.raises(HostNotFitError, match="has changed"):
        load(OwnData(dump=DUMP), Host(stamps=("1:2:3:4", "9:9:9:9")))


def test_last_lines_of_loaders_are_shown_with_a_remedy():
    with pytest.raises(ServerFailedError) as caught:
        load(OwnData(dump=DUMP), Host(fails=("pg_restore: error: unsupported version (1.16) in file header",)))
    assert "the oldest server" in str(caught.value)
    with pytest.raises(ServerFailedError) as caught:
        load(OwnData(command=("fill",)), Host(fails=("no such table",)))
    assert "no such table" in str(caught.value)


def test_files_that_are_loaded_are_brought_each_to_a_folder_of_its_own():
    def bring(file, folder):
        return replace(file, path=f"{folder}/{file.name}", stamp="")

    dump = bring_files(OwnData(dump=DUMP, files=(DUMP,)), bring, "/there")
    assert (dump.dump.path, dump.dump.stamp, dump.files) == ("/there/0/prod.dump", "", ())
    file = replace(DUMP, name="o.csv", path="/d/o.csv", form=DumpForm.NONE)
    copies = tuple(CopiedFile(table=table, file=file, options="FORMAT csv") for table in ("a", "b"))
    data = OwnData(sql=file, copies=copies)
    brought = bring_files(data, bring, "/there")
    assert [each.path for each in brought.inputs] == ["/there/0/o.csv", "/there/1/o.csv", "/there/2/o.csv"]
    assert brought.digest == data.digest


def test_digests_over_there_are_those_of_the_plan(tmp_path):
    (tmp_path / "prod").mkdir()
    for name, content in (("toc.dat", b"contents"), ("10.dat.gz", b"rows"), ("9.dat.gz", b""), ("blobs.toc", b"x")):
        (tmp_path / "prod" / name).write_bytes(content)
    (tmp_path / "it's \\ o.csv").write_bytes(b"1,2\n")
    look_at, host = DataFiles(tmp_path, tmp_path / "none", sure=True), LocalHost()
    for name, form in (("prod", DumpForm.DIRECTORY), ("it's \\ o.csv", DumpForm.NONE)):
        file = look_at(name)
        assert file.form is form
        assert digest_there(host, file) == file.digest
    before = look_at("prod")
    (tmp_path / "prod" / "9.dat.gz").write_bytes(b"more")
    assert digest_there(host, before) != before.digest
    host.close()

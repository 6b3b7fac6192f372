"""What a host is told by a shell to do where somebody else may put something in the way meanwhile."""

from __future__ import annotations

import os
import pwd
import subprocess
from dataclasses import replace

import pytest

from pgstrata.system import commands

ME = pwd.getpwuid(os.geteuid()).pw_name


def test_a_folder_gets_its_mode_in_one_that_is_there(tmp_path):
    folder = tmp_path / "a folder"
    for _ in range(2):
        subprocess.run(commands.make_place(str(folder), mode="700", owner=ME).argv, check=True)
    assert folder.stat().st_mode & 0o777 == 0o700
    below = commands.make_place(str(folder / "missing" / "below"), mode="700", owner=ME)
    assert subprocess.run(below.argv, stderr=subprocess.DEVNULL).returncode == 1


@pytest.mark.parametrize("swap", ['ln -s "$PRECIOUS" "$2"', 'mv "$PRECIOUS" "$2"'])
def test_a_folder_that_is_replaced_while_it_is_made_gets_no_other_mode(tmp_path, swap):
    """`mkdir` has just made it when another user, who may write there, puts something in its place."""
    precious, programs = tmp_path / "precious", tmp_path / "bin"
    for path in (precious, programs, tmp_path / "theirs"):
        path.mkdir()
    (precious / "file").touch()
    precious.chmod(0o750)
    mkdir = programs / "mkdir"
    mkdir.write_text(f'#!/bin/sh\n/bin/mkdir "$@"; rmdir "$2"; {swap}\n')
    mkdir.chmod(0o755)
    folder = tmp_path / "theirs" / "data"
    script = commands.make_place(str(folder), mode="777", owner=ME)
    done = subprocess.run(
        replace(script, text=f"PATH={programs}:$PATH\n{script.text}").argv,
        env={**os.environ, "PRECIOUS": str(precious)},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (1, f"{folder} was replaced\n")
    assert folder.stat().st_mode & 0o777 == 0o750

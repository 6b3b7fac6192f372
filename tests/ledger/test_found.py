"""What changes a host is found in the system's folders only, whatever stands first in PATH."""

import os
import pwd
import shutil
import sys

import pytest

from pgstrata.errors import LevelNotTakenError
from pgstrata.layers.registry import Ground, privileged_changes
from pgstrata.ledger.entries import own_commands
from pgstrata.system.groups import group_change
from pgstrata.system.storage import Place, folder_change, image_change

ME = pwd.getpwuid(os.geteuid()).pw_name
PROGRAMS = (
    *("cat", "chattr", "chmod", "chown", "dd", "env", "fallocate", "find", "flock", "head", "id", "ln", "ls", "mkdir"),
    *("mv", "printf", "readlink", "rm", "rmdir", "sed", "sh", "sleep", "sort", "stat", "sync", "tail", "test"),
    *("timeout", "truncate", "wc"),
)


@pytest.fixture
def asked(tmp_path, monkeypatch):
    """The log of programs that lie in a folder first in PATH, each of which does what the real one does."""
    folder, log = tmp_path / "first", tmp_path / "asked"
    folder.mkdir()
    log.touch()
    for name in PROGRAMS:
        program = folder / name
        real = shutil.which(name)
        program.write_text(
            f"#!{sys.executable}\nimport os, sys\nopen({str(log)!r}, 'a').write({name!r} + '\\n')\n"
            f"os.execv({real!r}, sys.argv)\n"
        )
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return log


def test_a_change_its_undo_and_the_ledger_run_nothing_from_a_folder_of_somebody(place, things, tmp_path, asked):
    ledger = place.ledger()
    ledger.change(things.make("one", "second"))
    storage = Place(base=str(tmp_path / "storage"))
    group = group_change(str(tmp_path / "group"), ME, ())
    for change in (folder_change(storage), image_change(storage, 1 << 20)):
        ledger.change(change)
    ledger.undo_to(0)
    with pytest.raises(LevelNotTakenError, match="cgroup"):
        ledger.change(group)  # whose folder is none of the kernel's
    assert set(asked.read_text().split()) <= {"stat"}  # whose the ledger is, which changes nothing


def test_every_script_that_is_run_with_privilege_names_the_folders_first(tmp_path):
    ground = Ground(storage="/s", user="postgres", cgroup=2)
    found = [change for _, change in privileged_changes(ground)]
    argvs = [script.argv for change in found for script in (change.read, change.do, change.undo)]
    argvs += own_commands("/l")
    assert len(argvs) > 50
    for shell, option, text, *_ in argvs:
        assert (shell, option) == ("/bin/sh", "-c")
        assert text.startswith("PATH=/usr/sbin:/usr/bin:/sbin:/bin:")

"""Units of systemd: what is written for a command, a folder and variables with whatever characters."""

import shutil
import subprocess

import pytest

from own_machine import read_command
from pgstrata.system.units import Repeated, unit_change, unquotable


def repeated(**fields):
    usual = {
        "name": "pgstrata-resume-1.service", "command": ("/usr/bin/python3", "-m", "pgstrata"), "folder": "/srv",
        "user": "root", "variables": {},
    }  # fmt: skip
    return Repeated(**{**usual, **fields})


@pytest.mark.parametrize("word", ["a b", 'say "x"', "100 %", "$HOME", "back\\slash", "%n $1 \\n", "", "ü"])
def test_words_of_the_command_come_back_as_they_were(word):
    unit = repeated(command=("/bin/run", word)).render()
    assert read_command(unit) == ["/bin/run", word]


def test_a_dollar_stays_single_in_variables_and_percent_signs_are_doubled_everywhere():
    unit = repeated(folder="/srv/100 %", variables={"PGSTRATA_STATE": "/s$x/100 %"}).render()
    assert "WorkingDirectory=/srv/100 %%\n" in unit
    assert 'Environment="PGSTRATA_STATE=/s$x/100 %%"\n' in unit


def test_control_characters_are_found():
    assert unquotable(("a", "b\nExecStart=evil")) == "b\nExecStart=evil"
    assert not unquotable(("a", "ü b"))


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze missing")
def test_systemd_takes_it(tmp_path):
    path = tmp_path / "pgstrata-resume-1.service"
    path.write_text(repeated(command=("/bin/sh", "-c", 'echo "$1" 100 %')).render())
    done = subprocess.run(["systemd-analyze", "verify", str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_change_outlasts_a_reboot_and_its_undo_needs_no_unit():
    change = unit_change(repeated())
    assert change.lasting
    assert change.what == "systemd unit pgstrata-resume-1.service"

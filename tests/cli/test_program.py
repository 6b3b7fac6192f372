"""What the program does before any command."""

import subprocess
import sys

import pytest

import program

PROGRAM = """
import resource
from pgstrata.cli import program
resource.setrlimit(resource.RLIMIT_CORE, (resource.getrlimit(resource.RLIMIT_CORE)[1],) * 2)
program.app = lambda **_: print(resource.getrlimit(resource.RLIMIT_CORE)[0])
program.entry()
"""


def test_it_leaves_no_core_with_passwords_in_it():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert (done.stdout, done.stderr, done.returncode) == ("0\n", "", 0)


@pytest.mark.parametrize("words", [["plan"], ["run", "a", "b"], ["servers", "check"], ["servers", "fetch"], ["bisect"]])
@pytest.mark.parametrize("text", ["dsn:host=h password=geheim-7391", "postgresql://me:geheim-7391@h/d"])
def test_no_command_repeats_the_password_of_a_connection_string(tmp_path, words, text):
    done = program.run_here(tmp_path, {}, *words, text)
    assert done.returncode == 2
    assert done.stderr
    assert "geheim" not in done.stdout + done.stderr

"""What the program does before any command."""

import os
import signal
import subprocess
import sys

import pytest

import program
from pgstrata.cli.program import catch_signals

PROGRAM = """
import resource
from pgstrata.cli import program
resource.setrlimit(resource.RLIMIT_CORE, (resource.getrlimit(resource.RLIMIT_CORE)[1],) * 2)
program.app = lambda **_: print(*resource.getrlimit(resource.RLIMIT_CORE))
program.entry()
"""


def test_it_leaves_no_core_with_passwords_in_it():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert (done.stdout, done.stderr, done.returncode) == ("0 0\n", "", 0)


@pytest.mark.parametrize("words", [["plan"], ["run", "a", "b"], ["servers", "check"], ["servers", "fetch"], ["bisect"]])
@pytest.mark.parametrize("text", ["dsn:host=h password=geheim-7391", "postgresql://me:geheim-7391@h/d"])
def test_no_command_repeats_the_password_of_a_connection_string(tmp_path, words, text):
    done = program.run_here(tmp_path, {}, *words, text)
    assert done.returncode == 2
    assert done.stderr
    assert "geheim" not in done.stdout + done.stderr


@pytest.mark.parametrize("group", [(), ("servers",), ("host",), ("workload",), ("vm",)])
def test_the_list_of_commands_breaks_no_sentence_off(tmp_path, group):
    done = program.run_here(tmp_path, {"COLUMNS": "80"}, *group, "--help")
    assert done.returncode == 0
    listed = done.stdout.split("Commands:\n")[1]
    assert "..." not in listed
    assert all(line.endswith(".") for line in listed.splitlines() if line)


@pytest.mark.parametrize("pipe", ["asked.toml", "script.sql"])
def test_a_plan_waits_for_no_pipe(tmp_path, pipe):
    (tmp_path / "asked.toml").write_text(
        '[[cells]]\nscripts = [{ file = "script.sql" }]\nscale = 1\nclients = 1\n', encoding="utf-8"
    )
    (tmp_path / "script.sql").write_text("SELECT 1;\n", encoding="utf-8")
    (tmp_path / pipe).unlink()
    os.mkfifo(tmp_path / pipe)
    command = [sys.executable, "-m", "pgstrata", "plan", "asked.toml"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert pipe in done.stderr
    assert "Traceback" not in done.stderr


def test_under_nohup_the_end_of_the_session_ends_nothing():
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.getsignal(number) for number in numbers}
    try:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        catch_signals()
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        assert signal.getsignal(signal.SIGTERM) is signal.getsignal(signal.SIGINT) is not before[signal.SIGTERM]
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        catch_signals()
        assert signal.getsignal(signal.SIGHUP) is signal.getsignal(signal.SIGTERM)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

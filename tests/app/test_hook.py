"""The user's command: what it is told, what it is not told, and what becomes of one that fails or hangs."""

import json
import os
import signal
import sys
import time

import pytest

from pgstrata.app.watching.hook import MOST_WAITING, Hook, HookState, parse_hook, secrets_of
from pgstrata.errors import UsageError
from pgstrata.model.secret import Secret

DSN = "host=db password=hidden"


def script(tmp_path, text):
    """A program of its own."""
    path = tmp_path / "told.py"
    path.write_text(f"#!{sys.executable}\n{text}\n")
    path.chmod(0o700)
    return path


def hook(words, tmp_path, environment=None, **more):
    return Hook(tuple(map(str, words)), tmp_path / "archive", environment or dict(os.environ), (DSN,), **more)


def failures(called):
    said = []
    called.close(30)
    called.tell_failures(said.append)
    return said


def test_the_command_is_told_state_beginning_archive_and_a_document(tmp_path):
    out = tmp_path / "out"
    keep = "import json, os, sys; json.dump([dict(os.environ), sys.argv[1:], json.load(sys.stdin)], open({!r}, 'w'))"
    path = script(tmp_path, keep.format(str(out)))
    environment = {
        **os.environ, "PGPASSWORD": "hidden", "PGSERVICE": "db", "SOME_URL": f"x {DSN} y", "CHANNEL": "#db",
    }  # fmt: skip
    called = hook([path, "to the team"], tmp_path, environment)
    called.call(HookState.BEGIN, 1_795_710_000, json.dumps({"incident": {"begin": 1_795_710_000}}))
    assert failures(called) == []
    seen, words, document = json.loads(out.read_text())
    assert words == ["to the team"]
    assert document == {"incident": {"begin": 1_795_710_000}}
    assert seen["PGSTRATA_STATE"] == "begin"
    assert seen["PGSTRATA_INCIDENT_BEGIN"] == "1795710000"
    assert seen["PGSTRATA_ARCHIVE"] == str(tmp_path / "archive")
    assert seen["CHANNEL"] == "#db"
    assert not {"PGPASSWORD", "PGSERVICE", "SOME_URL"} & set(seen)
    assert "hidden" not in "".join(seen.values())


@pytest.mark.parametrize(
    ("dsn", "password", "gone"),
    [
        ("db", None, set()),
        ("host=db password=hidden", Secret("hidden"), {"DB_PASSWORD", "DB_URL", "DSN"}),
        ("postgresql://me:p@db/shop", Secret("p"), {"SHORT", "DB_URL"}),
    ],
)
def test_variables_with_the_password_are_left_out_and_no_others(tmp_path, dsn, password, gone):
    out = tmp_path / "out"
    path = script(tmp_path, f"import json, os; json.dump(dict(os.environ), open({str(out)!r}, 'w'))")
    mine = {
        "PATH": f"{os.environ['PATH']}:/opt/db/bin", "TEAM": "db people", "DB_PASSWORD": "hidden", "SHORT": "p",
        "DSN": "host=db password=hidden", "DB_URL": "postgresql://me:p@db/shop hidden",
    }  # fmt: skip
    called = Hook((str(path),), tmp_path, mine, secrets_of(dsn, password))
    called.call(HookState.BEGIN, 1, "{}")
    assert failures(called) == []
    assert mine.keys() - json.loads(out.read_text()).keys() == gone


def test_calls_come_one_after_the_other_in_their_order(tmp_path):
    out = tmp_path / "out"
    path = script(tmp_path, f"import os; open({str(out)!r}, 'a').write(os.environ['PGSTRATA_STATE'] + ' ')")
    called = hook([path], tmp_path)
    called.call(HookState.BEGIN, 1, "{}")
    called.call(HookState.END, 1, "{}")
    assert failures(called) == []
    assert out.read_text() == "begin end "


@pytest.mark.parametrize(
    ("text", "said"),
    [("raise SystemExit(3)", "ended with code 3"), ("import os; os.kill(os.getpid(), 9)", "ended with code -9")],
)
def test_a_command_that_fails_is_told(tmp_path, text, said):
    path = script(tmp_path, text)
    called = hook([path], tmp_path)
    called.call(HookState.BEGIN, 1, "{}")
    assert failures(called) == [f"the command of --on-incident failed: {path} {said}; recording goes on"]


def test_a_command_that_is_not_there_is_told(tmp_path):
    called = hook([tmp_path / "nowhere"], tmp_path)
    called.call(HookState.END, 1, "{}")
    (said,) = failures(called)
    assert "could not be started (No such file or directory)" in said


def test_a_command_that_hangs_is_killed_with_all_that_it_started(tmp_path):
    out = tmp_path / "pid"
    child = f"import os, time; open({str(out)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    path = script(tmp_path, f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])")
    called = hook([path], tmp_path, limit=3.0)
    called.call(HookState.BEGIN, 1, "{}")
    (said,) = failures(called)
    assert "was killed after 3 s" in said
    if out.exists():
        assert _ends(int(out.read_text()))


def test_a_command_that_runs_when_the_recorder_ends_has_some_time_and_is_killed_then(tmp_path):
    out = tmp_path / "pid"
    text = f"import os, time; open({str(out)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    called = hook([script(tmp_path, text)], tmp_path)
    called.call(HookState.BEGIN, 1, "{}")
    for _ in range(2000):
        if out.exists() and out.read_text():
            break
        time.sleep(0.01)
    called.close(0.1)
    assert _ends(int(out.read_text()))


def test_no_further_command_begins_once_the_time_at_the_end_is_over(tmp_path):
    out = tmp_path / "out"
    text = f"import os, time; open({str(out)!r}, 'a').write(os.environ['PGSTRATA_STATE']); time.sleep(600)"
    called = hook([script(tmp_path, text)], tmp_path)
    called.call(HookState.BEGIN, 1, "{}")
    called.call(HookState.END, 1, "{}")
    for _ in range(2000):
        if out.exists() and out.read_text():
            break
        time.sleep(0.01)
    called.close(0.1)
    called._worker.join(30)
    assert not called._worker.is_alive()
    assert out.read_text() == "begin"


def _ends(pid):
    """Whether a process is gone or a zombie soon."""
    for _ in range(200):
        try:
            with open(f"/proc/{pid}/stat") as file:
                if file.read().rpartition(")")[2].split()[0] == "Z":
                    return True
        except OSError:
            return True
        time.sleep(0.05)
    return False


def test_a_command_that_does_not_read_its_input_is_no_failure(tmp_path):
    called = hook([script(tmp_path, "pass")], tmp_path)
    called.call(HookState.BEGIN, 1, "x" * 1_000_000)
    assert failures(called) == []


def test_a_command_is_split_as_in_a_shell_and_no_shell_runs_it():
    assert parse_hook("cat --to 'the team; rm x' $HOME") == ("cat", "--to", "the team; rm x", "$HOME")


@pytest.mark.parametrize("text", ["", "  ", "notify 'open", "no-such-program-4711 db", "/"])
def test_a_command_that_cannot_be_read_is_refused(text):
    with pytest.raises(UsageError) as caught:
        parse_hook(text)
    assert caught.value.where == "--on-incident"


def test_a_command_that_leaves_a_child_with_its_input_behind_holds_nobody_up(tmp_path):
    out = tmp_path / "pid"
    child = f"import os, time; open({str(out)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    text = f"import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', {child!r}], start_new_session=True)"
    called = hook([script(tmp_path, f"{text}; time.sleep(600)")], tmp_path, limit=2.0)
    called.call(HookState.BEGIN, 1, "x" * 1_000_000)
    called.call(HookState.END, 1, "{}")
    called.close(60)
    said = []
    called.tell_failures(said.append)
    assert [each.rpartition("py ")[2] for each in said] == ["was killed after 2 s; recording goes on"] * 2
    if out.exists() and out.read_text():
        os.kill(int(out.read_text()), signal.SIGKILL)


def test_of_many_calls_the_oldest_are_left_out_and_that_is_told(tmp_path):
    out, gate = tmp_path / "out", tmp_path / "gate"
    text = (
        f"import os, time\nwhile not os.path.exists({str(gate)!r}):\n    time.sleep(0.01)\n"
        f"open({str(out)!r}, 'a').write(os.environ['PGSTRATA_INCIDENT_BEGIN'] + ' ')"
    )
    called = hook([script(tmp_path, text)], tmp_path)
    called.call(HookState.BEGIN, 0, "{}")
    for _ in range(2000):
        if called._asked.empty():
            break
        time.sleep(0.01)
    for number in range(1, MOST_WAITING + 4):
        called.call(HookState.BEGIN, number, "{}")
    said = []
    called.tell_failures(said.append)
    assert len(said) == 3
    assert f"was not run for one event, because {MOST_WAITING} calls were waiting already" in said[0]
    gate.touch()
    assert failures(called) == []
    assert out.read_text().split() == ["0", *map(str, range(4, MOST_WAITING + 4))]


def test_a_document_that_is_no_text_is_given_all_the_same(tmp_path):
    out = tmp_path / "out"
    path = script(tmp_path, f"import sys; open({str(out)!r}, 'wb').write(sys.stdin.buffer.read())")
    called = hook([path], tmp_path)
    called.call(HookState.BEGIN, 1, '{"archive": "/data/caf\udce9"}')
    assert failures(called) == []
    assert out.read_bytes() == b'{"archive": "/data/caf?"}'


def test_an_error_that_nobody_foresaw_is_told_and_the_next_call_is_made(tmp_path, monkeypatch):
    called = hook([script(tmp_path, "pass")], tmp_path)
    run = iter([RuntimeError("odd"), None])

    def fail(*_):
        if (error := next(run)) is not None:
            raise error
        return ""

    monkeypatch.setattr(called, "_run", fail)
    called.call(HookState.BEGIN, 1, "{}")
    called.call(HookState.END, 1, "{}")
    (said,) = failures(called)
    assert "could not be run (RuntimeError: odd)" in said
    assert next(run, "both") == "both"


def test_a_command_that_says_a_great_deal_is_heard_by_nobody(tmp_path):
    text = "import sys\nfor _ in range(2000):\n    sys.stdout.write('x' * 65536)\n    sys.stderr.write('y' * 65536)"
    called = hook([script(tmp_path, text)], tmp_path)
    called.call(HookState.BEGIN, 1, "{}")
    assert failures(called) == []

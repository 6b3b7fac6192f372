"""The steps of the tutorial that need servers, with the smaller load that it names; what they print has the shape shown."""

import getpass
import os
import re
import signal
import subprocess
from dataclasses import replace

import pytest

from tutorial import STEPS, TEXT, assert_printed, blocks, steps_of

pytestmark = [pytest.mark.server, pytest.mark.timeout(600)]

(SHORTEN,) = (step.command for step in STEPS if step.command.startswith("sed "))
LITTLE = re.search(r"add `(--scale 1 [^`]+)`", TEXT)[1].split()


@pytest.fixture(scope="module")
def reader(shared_sandbox):
    """Somebody who follows the tutorial in a folder of their own."""
    root = shared_sandbox.root / "tutorial"
    root.mkdir()
    return replace(shared_sandbox, root=root)


@pytest.fixture(scope="module")
def doctor(reader):
    """It takes ten seconds, in which it mostly waits: begun before everything else, and looked at after it."""
    (step,) = steps_of("doctor")
    with reader.start(*step.words) as process:
        yield step, process


def follow(reader, step, *more, **options):
    done = reader.pgstrata(*step.words, *more, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def shorten(reader, name):
    """As the tutorial says, on this file."""
    command = SHORTEN.replace("question.toml", name)
    subprocess.run(["sh", "-euc", command], cwd=reader.root, check=True)


def test_servers_are_fetched_and_checked(doctor, reader):
    (fetch,), (check,) = steps_of("servers", "fetch"), steps_of("servers", "check")
    levels = fetch.words[2:]
    assert [line.partition(":")[0] for line in follow(reader, fetch).splitlines()] == levels
    # others of this machine are not the tutorial's
    done = follow(reader, check, *levels)
    assert re.findall(r"^(\w+): [\d.]+", done, re.MULTILINE) == levels
    assert "ok   postgres" in done


def test_a_question_in_one_line_is_measured(reader):
    step, _ = steps_of("try")
    printed = follow(reader, step, *LITTLE)
    assert "experiment file: try-server-16-18.toml\n" in printed
    assert re.search(r"^study: studies/try-server-16-18-\w+$", printed, re.MULTILINE)
    assert "done: 2 of 2 runs" in printed
    said = re.search(r'The answer is then "([^"]+)"', TEXT)[1]
    assert said in printed.lower()


def test_a_run_is_stopped_and_goes_on_and_its_answer_is_shown(reader):
    (init,), (plan,), (run, again, other) = steps_of("init"), steps_of("plan"), steps_of("run")
    follow(reader, init)
    shorten(reader, init.words[1])
    assert len(re.findall(r"^ +b01/pg1[68]\S*", follow(reader, plan), re.MULTILINE)) == 3
    printed = ""
    with reader.start(*run.words) as process:
        for line in process.stdout:
            printed += line
            if line.startswith("[1/3]"):
                process.send_signal(signal.SIGINT)
    assert process.returncode == 130, printed
    assert_printed([line for line in run.shown if line != "^C"], printed)
    assert again.words == run.words != other.words
    rest = follow(reader, again)
    assert_printed(again.shown, rest)
    assert "done: 3 of 3 runs" in rest
    (study,) = (reader.root / "studies").glob("question-*")
    for step in (*steps_of("show"), *steps_of("report")):
        if "studies/question-…" in step.words:
            follow(reader, replace(step, command=step.command.replace("studies/question-…", str(study))))
    assert (study / "report.html").exists()


def test_a_script_of_ones_own_is_measured(reader):
    *_, step = steps_of("run")
    (name,) = set(re.findall(r"here `(\w[\w-]*\.sql)`", TEXT))
    (script,), (*_, experiment) = blocks("sql"), blocks("toml")
    reader.file(script, name)
    reader.file(experiment, step.words[1])
    shorten(reader, step.words[1])
    assert "done: 2 of 2 runs" in follow(reader, step)


@pytest.mark.soak("tutorial")
def test_running_servers_are_measured(reader, running_server):
    """Both names lead to one server: whether two differ is not asked here."""
    _, step = steps_of("try")
    where = "\n".join(running_server["dsn"].split())
    services = reader.file(f"[staging]\n{where}\n[candidate]\n{where}\n", "pg_service.conf")
    done = follow(reader, step, *LITTLE, environ={"PGSERVICEFILE": str(services)})
    assert "done: 2 of 2 runs" in done
    os.kill(running_server["pid"], 0)


def test_doctor_begins_with_the_line_that_is_shown(doctor):
    step, process = doctor
    printed, _ = process.communicate(timeout=120)
    assert process.returncode == 0, printed
    line, *rest = step.shown
    assert rest == ["…"]
    # who asks, and whether the machine is at rest, is not the tutorial's
    assert_printed([line.replace("as root", f"as {getpass.getuser()}").replace("yes.", "…")], printed)

"""`pgstrata explain STUDY`: two environments of a study in the words of an archive."""

import json

import pytest

from archives import Second, make_archive, session
from pgstrata.model.activity import SessionCount, SessionState
from program import pgstrata
from stored import write_study

QUESTION = """
question = "Is 18 slower?"
blocks = 8
[factors]
server = ["16", "18"]
[[cells]]
workload = "simple-update"
scale = 1
clients = [4]
run = "60s"
"""
TWO_CELLS = QUESTION.replace("clients = [4]", "clients = [2, 4]")
THREE = QUESTION.replace('["16", "18"]', '["16", "17", "18"]')
NAMED = QUESTION.replace(
    '[factors]\nserver = ["16", "18"]\n',
    """
[[environments]]
name = "usual"
server = "18"
[[environments]]
name = "new"
server = "18"
settings.shared_buffers = "4MB"
""",
)
UPDATE = "update pgbench_accounts set abalance = abalance + ? where aid = ?"


def rate(_, run):
    return {"tps": (400.0 if "18" in run.environment else 1000.0) + run.block}


def sampled(run):
    waiting = 2.6 if "18" in run.environment else 1.0
    numbers = ((SessionState.WAITING, "IO", "WalSync", waiting), (SessionState.AWAKE, "", "", 0.4))
    busy = tuple(
        SessionCount(state=state, wait_type=kind, event=event, query=UPDATE, samples=round(600 * mean) + run.block)
        for state, kind, event, mean in numbers
    )
    rest = 2400 - sum(count.samples for count in busy)
    return {
        "sessions": (*busy, SessionCount(state=SessionState.CLIENT, wait_type="", event="", query="", samples=rest)),
        "measured_seconds": 60.0,
    }


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("explained")
    write_study(folder, QUESTION, rate, sampled)
    for name, text, more in (("cells", TWO_CELLS, sampled), ("three", THREE, sampled), ("blind", QUESTION, None)):
        (folder / name).mkdir()
        write_study(folder / name, text, rate, more)
    make_archive(folder / "archive", 60, lambda _: Second({session(): 1}))
    return folder


def words(done):
    assert done.returncode == 0, done.stderr
    return " ".join(done.stdout.split())


def test_the_slower_environment_is_explained_by_the_baseline(place):
    said = words(pgstrata(place, "explain", "study", "--format", "text"))
    assert "In 18 transactions were slower" in said
    assert f"The largest part of the extra load was IO/WalSync in {UPDATE}"[:60] in said
    assert "From " not in said.split("Where the load is")[0]


def test_the_answer_and_options_call_environments_by_the_names_of_the_file(tmp_path):
    write_study(tmp_path, NAMED, rate, sampled)
    said = words(
        pgstrata(tmp_path, "explain", "study", "--environment", "new", "--against", "usual", "--format", "text")
    )
    assert said.startswith("No change was found in new: throughput ")
    assert "new, compared with usual" in said
    found = json.loads(pgstrata(tmp_path, "explain", "study", "--json").stdout)
    assert (found["window"]["environment"], found["comparison"]["environment"]) == ("new", "usual")


def test_programs_get_environments_instead_of_times(place):
    done = pgstrata(place, "explain", "study", "--json")
    found = json.loads(done.stdout)
    assert found["outcome"] == "incident"
    assert (found["window"]["runs"], found["comparison"]["runs"]) == (8, 8)
    assert found["window"]["environment"] != found["comparison"]["environment"]
    assert found["study"] == "study"
    assert "archive" not in found
    assert UPDATE in found["texts"].values()
    assert found["rows"][0]["event"] == "IO/WalSync"


def test_texts_can_be_left_out(place):
    done = pgstrata(place, "explain", "study", "--json", "--no-query-text")
    assert UPDATE not in done.stdout
    assert json.loads(done.stdout)["texts"] == {}


def test_a_page_is_written(place):
    done = pgstrata(place, "explain", "study", "--report", "why.html")
    assert done.returncode == 0, done.stderr
    assert "WalSync" in (place / "why.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("cells/study",), 2, "several cells could be meant"),
        (("cells/study", "--cell", "nope"), 2, "there is no cell 'nope'"),
        (("three/study",), 2, "several environments could be meant"),
        (("three/study", "--environment", "nope"), 2, "there is no environment 'nope'"),
        (("study", "--against", "nope"), 2, "there is no environment 'nope'"),
        (("study", "--from", "13:00"), 2, "a study has environments instead of windows"),
        (("archive", "--environment", "a"), 2, "an archive has windows instead of environments"),
        (("blind/study",), 1, "there is no block in which sessions"),
        (("nowhere",), 1, "there is no archive in this folder"),
    ],
)
def test_what_cannot_be_explained_has_a_remedy(place, arguments, code, said):
    done = pgstrata(place, "explain", *arguments)
    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr
    assert "\n  -> " in done.stderr


def test_the_baseline_can_be_explained_by_another_environment(place):
    found = json.loads(pgstrata(place, "explain", "study", "--json").stdout)
    ours, theirs = found["window"]["environment"], found["comparison"]["environment"]
    done = pgstrata(place, "explain", "study", "--environment", theirs, "--against", ours, "--json")
    turned = json.loads(done.stdout)
    assert (turned["window"]["environment"], turned["outcome"]) == (theirs, "faster")
    itself = pgstrata(place, "explain", "study", "--environment", ours, "--against", ours)
    assert itself.returncode == 2
    assert "an environment cannot be compared with itself" in itself.stderr

"""`pgstrata show` on a study of three servers: pairs on request, and what only the JSON form has."""

import json
import os
import pty
import subprocess
import sys
from contextlib import suppress

import pytest

from pgstrata.app.answer import load_answer
from pgstrata.model.metrics import LATENCY_QUANTILES
from pgstrata.store.repository import StudyFolder
from program import pgstrata
from stored import ask_reads, noise_of, write_study

QUESTION = ask_reads("16", "17", "18", blocks=12, more='controls = ["same"]')
LEVELS = {"pg16": 1000.0, "pg17": 1100.0, "pg18": 1000.0}


def values_of(plan, run):
    tps = LEVELS.get(run.environment, 1000.0) * noise_of(run)
    latencies = {name: quantile / tps for name, quantile in LATENCY_QUANTILES.items()}
    if run.environment == "pg17":
        # faster everywhere but in the tail
        latencies["latency_p99"] *= 1.5
    return {"tps": tps, **latencies}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    place = tmp_path_factory.mktemp("show")
    write_study(place, QUESTION, values_of)
    return place


def show(place, *arguments, command="show"):
    done = pgstrata(place, command, "study", *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_pairs_are_shown_where_they_are_asked_for(place):
    text = show(place, "--pairs")
    part = text[text.index("Environments against each other: select-only") :].split("\n\n")
    rows = {line[:13]: line for line in part[0].splitlines() if " against 1" in line[:13]}
    assert list(rows) == ["17 against 16", "18 against 16", "18 against 17"]
    assert "faster" in rows["17 against 16"]
    assert "no difference" in rows["18 against 16"]
    assert "slower" in rows["18 against 17"]
    assert "Environments against each other" not in show(place)


def test_pairs_and_the_shift_of_latency_stand_in_the_json_form(place):
    document = json.loads(show(place, "--pairs", "--json"))
    assert [(item["environment"]["name"], item["reference"]) for item in document["pairs"]] == [
        ("pg17", "pg16"),
        ("pg18", "pg16"),
        ("pg18", "pg17"),
    ]
    assert {item["exploratory"] for item in document["pairs"]} == {True}
    shift = {item["environment"]: item["quantiles"] for item in document["shift"]}
    assert [point["metric"] for point in shift["pg17"]] == list(LATENCY_QUANTILES)
    assert {point["verdict"] for point in shift["pg17"][:-1]} == {"better"}
    assert shift["pg17"][-1]["verdict"] == "worse"
    assert json.loads(show(place, "--json"))["pairs"] == []


def test_other_forms_read_no_percentile_that_they_do_not_show(place):
    answer = load_answer(StudyFolder(place / "study"))
    read = {item.metric for run in answer.study.runs for item in run.measurements}
    assert read & LATENCY_QUANTILES.keys() == {"latency_p50", "latency_p95", "latency_p99"}
    assert (answer.shifts, answer.pairs) == ((), ())


def test_the_report_has_pairs_on_request(place):
    show(place, "--pairs", command="report")
    assert "18 against 17" in (place / "study" / "report.html").read_text()


def test_why_says_what_is_missing_where_no_sessions_were_sampled(place):
    text = show(place, "--why")
    assert "18: the difference cannot be split: no sessions were sampled" in text.replace("\n  ", " ")
    assert max(map(len, text.splitlines())) <= 78
    document = json.loads(show(place, "--why", "--json"))["why"]
    assert document["attributions"] == []
    assert {item["environment"] for item in document["unattributed"]} == {"pg17", "pg18", "pg16-control"}


def test_why_and_pairs_are_not_one_text(place):
    done = pgstrata(place, "show", "study", "--why", "--pairs")
    assert done.returncode == 2
    assert "ask for one of them" in done.stderr


def test_some_of_the_comparisons_are_shown_as_a_matrix_or_a_list(place):
    text = show(place, "--filter", "server=17")
    assert "Shown are 1 of 3 comparisons with 16" in text
    assert "17, select-only" in text
    assert "18" not in text
    matrix = show(place, "--by", "server").split("Difference in throughput from 16, by server")[1].splitlines()
    assert matrix[2].split() == ["server", "16", "17", "18"]
    listed = show(place, "--sort", "effect")
    assert listed.index("17, select-only") < listed.index("18, select-only")
    assert "| comparison" in show(place, "--sort", "name", "--format", "markdown")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--filter", "server=19"], "allowed: the levels 16, 17, 18"),
        (["--filter", "sever=17"], "did you mean 'server'?"),
        (["--by", "server", "--json"], "leave out --why, --pairs, --json and --format csv"),
        (["--sort", "effect", "--why"], "leave out --why, --pairs, --json and --format csv"),
        (["--by", "server", "--sort", "effect"], "give one of them"),
    ],
)
def test_what_cannot_be_selected_is_refused(place, arguments, said):
    done = pgstrata(place, "show", "study", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


def on_terminal(place, *arguments):
    """What a terminal of 78 columns is given, without colours."""
    master, terminal = pty.openpty()
    environ = {**os.environ, "COLUMNS": "78", "NO_COLOR": "1", "TERM": "dumb"}
    words = [sys.executable, "-m", "pgstrata", "show", "study", *arguments]
    with subprocess.Popen(words, cwd=place, env=environ, stdout=terminal, stdin=terminal) as running:
        os.close(terminal)
        said = b""
        # at its end a terminal that nobody has open any more gives an error
        with suppress(OSError):
            while chunk := os.read(master, 65536):
                said += chunk
    os.close(master)
    assert running.returncode == 0
    return said.decode().replace("\r\n", "\n")


def test_a_terminal_is_given_the_answer_and_with_details_everything(place):
    text = on_terminal(place)
    assert "Difference in throughput from 16" in text
    assert "More with --details" in text
    assert "adjusted p" not in text
    whole = on_terminal(place, "--details")
    assert "How to reproduce" in whole
    assert "More with --details" not in whole
    assert "18 against 17" in on_terminal(place, "--pairs")

"""`pgstrata gate` as a script meets it: one line for each headline, the reason, the exit code."""

import json
import math

import pytest

from program import pgstrata
from stored import ask_reads, write_study
from studies import NOISE

QUESTION = ask_reads("16", "18", blocks=12, more='controls = ["same"]')


@pytest.fixture(scope="module")
def measure(tmp_path_factory):
    """A folder with a study whose environments have these levels of tps in so many blocks; each is made once."""
    made = {}

    def build(levels, blocks=12):
        if (levels, blocks) not in made:
            made[levels, blocks] = tmp_path_factory.mktemp("gate")
            make_study(made[levels, blocks], levels, blocks)
        return made[levels, blocks]

    return build


def make_study(place, levels, blocks):
    def values(plan, run):
        if run.block > blocks:
            return None
        arm = [environment.name for environment in plan.experiment.environments].index(run.environment)
        tps = levels[arm] * math.exp(NOISE[(run.block * (arm + 1) + arm) % 12])
        return {"tps": tps, "server_cpu_per_tx": 0.5 / tps, "latency_p95": 3 / tps}

    write_study(place, QUESTION, values)


def gate(place, *arguments):
    return pgstrata(place, "gate", *arguments)


@pytest.mark.parametrize(
    ("levels", "arguments", "code", "first", "last"),
    [
        ((1000, 1100, 1000), (), 0, "18 is faster than 16", "exit code 0: nothing is worse"),
        ((1000, 900, 1000), (), 1, "18 is slower than 16", "exit code 1: 18 (worse: slower)"),
        ((1000, 1000, 1000), (), 0, "No difference larger than 3 % between 18 and 16", "exit code 0: "),
        ((1000, 900, 1100), (), 1, "THE CONTROL ", "exit code 1: THE CONTROL "),
        ((1000, 1100, 1100), (), 3, "THE CONTROL ", "exit code 3: THE CONTROL "),
        ((1000, 1100, 1000), ("--threshold", "3 %", "--metric", "tps"), 0, "18 is faster", "exit code 0: "),
        ((1000, 1100, 1000), ("--threshold", "1 %"), 3, "exploratory: 18 is faster", "exit code 3: nothing is worse, but "),
        ((1000, 900, 1000), ("--threshold", "1 %"), 1, "exploratory: 18 is slower", "exit code 1: 18 (worse: slower)"),
        ((1000, 1000, 1000), ("--threshold", "0.1 %"), 3, "exploratory: 18 and 16 cannot be told apart", "exit code 3: 18 (cannot tell)"),
        ((1000, 900, 1000), ("--metric", "server_cpu_per_tx"), 1, "exploratory: 18 has more server CPU", "exit code 1: 18 (worse: more)"),
    ],
)  # fmt: skip
def test_a_study_passes_by_its_headlines(measure, levels, arguments, code, first, last):
    done = gate(measure(levels), "study", *arguments)
    assert (done.returncode, done.stderr) == (code, "")
    lines = done.stdout.splitlines()
    assert lines[0].startswith(first)
    assert lines[-1].startswith(last)


def test_declared_values_are_shown_as_such_and_pass_no_gate(tmp_path):
    text = f'{QUESTION}\n[synthetic]\nkernel = "6.12"\nchange = "-9 %"\n'

    def values(plan, run):
        arm = [environment.name for environment in plan.experiment.environments].index(run.environment)
        return {"synthetic": (1000, 910, 1000)[arm] * math.exp(NOISE[(run.block * (arm + 1) + arm) % 12])}

    write_study(tmp_path, text, values)
    shown = pgstrata(tmp_path, "show", "study").stdout
    assert "18 has lower (declared) synthetic value than 16 on select-only: -9.0 %" in " ".join(shown.split())
    done = gate(tmp_path, "study")
    assert done.returncode == 2
    assert "study: the values of this study are declared, not measured" in done.stderr


def test_a_study_that_is_not_finished_says_so(measure):
    done = gate(measure((1000, 1100, 1000), blocks=2), "study")
    assert done.returncode == 3
    assert (
        "\nincomplete: 2 of 12 planned blocks; `pgstrata run FILE --study STUDY` goes on\nexit code 3: 18 (too early)\n"
        in done.stdout
    )


def test_a_study_without_runs_is_undecided(measure):
    done = gate(measure((1000, 1100, 1000), blocks=0), "study")
    assert (done.returncode, done.stderr) == (3, "")
    assert "incomplete: 0 of 12 planned blocks" in done.stdout


@pytest.mark.parametrize(("arguments", "threshold"), [((), 0.05), (("--threshold", "3 %"), 0.03)])
def test_another_metric_is_asked_at_its_own_threshold_unless_one_is_given(measure, arguments, threshold):
    done = gate(measure((1000, 1100, 1000)), "study", "--metric", "latency_p95", "--json", *arguments)
    document = json.loads(done.stdout)
    assert (done.returncode, document["threshold"]) == (3, threshold)
    assert document["gate"]["frozen"] == {"metric": "tps", "threshold": 0.03}


def test_the_json_form_has_the_reason_too(measure):
    done = gate(measure((1000, 900, 1000)), "study", "--json")
    document = json.loads(done.stdout)
    assert (done.returncode, document["gate"]["exit_code"], document["gate"]["complete"]) == (1, 1, True)
    assert [item["verdict"] for item in document["comparisons"]] == ["worse"]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("nowhere",), 1, "there is no study here\n  -> give the folder"),
        (("study", "--metric", "speed"), 2, "--metric: there is no metric 'speed'\n  -> choose one of tps, "),
        (("study", "--metric", "latency_p99"), 2, "--metric: the study has no values of latency_p99\n  -> choose one of tps, server_cpu_per_tx"),
        (("study", "--threshold", "0"), 2, "--threshold: a threshold of 0 % makes no sense\n  -> write one between"),
    ],
)  # fmt: skip
def test_a_mistake_is_answered_with_its_place_and_a_remedy(measure, arguments, code, said):
    done = gate(measure((1000, 900, 1000)), *arguments)
    assert (done.returncode, "Traceback" in done.stderr) == (code, False)
    assert said in done.stderr

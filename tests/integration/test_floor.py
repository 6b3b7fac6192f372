"""A noise floor measured on real servers, kept, and used by the next plan."""

import json

import pytest

from pgstrata.errors import ExitCode

pytestmark = [pytest.mark.server, pytest.mark.timeout(500)]

QUESTION = """
question = "Does the default work memory matter?"
blocks = 12
interleave = "runs"
[factors]
"settings.work_mem" = ["4MB", "8MB"]
[[cells]]
workload = "select-only"
scale = 1
clients = 1
run = "1s"
warmup = "0s"
"""


@pytest.mark.soak("floors")
@pytest.mark.alone
def test_a_floor_is_measured_kept_and_used(sandbox):
    state = {"PGSTRATA_STATE": str(sandbox.root / "state-floor")}
    file = sandbox.file(QUESTION, "floor.toml")
    study = sandbox.root / "study-floor"
    before = sandbox.pgstrata("plan", file, environ=state)
    assert "no noise floor for these cells" in " ".join(before.stdout.split())

    done = sandbox.pgstrata("floor", file, "--blocks", "15", "--study", study, "--json", environ=state, timeout=400)
    assert "30/30" in done.stderr, "every planned block is measured, whatever the first ones say"
    document = json.loads(done.stdout)
    if done.returncode == ExitCode.UNDECIDED and "other processes used" in done.stderr:
        assert document["lack"]
        pytest.skip("this machine is too busy for any floor")
    assert done.returncode == 0, done.stderr
    tps = next(floor for floor in document["floors"] if floor["metric"] == "tps")
    assert 12 <= tps["differences"] <= 15
    assert 0 < tps["s0"] < 2
    assert {floor["metric"] for floor in document["floors"]} >= {"tps", "server_cpu_per_tx"}

    planned = json.loads(sandbox.pgstrata("plan", file, "--json", environ=state).stdout)
    (known,) = planned["floors"]
    assert (known["s0"], known["source"]) == (tps["s0"], "study study-floor")
    if not known["doubt"]:  # outliers of a busy machine are one
        assert planned["forecast"]["power"][0]["cell"] == "select-only-s1-c1"

    # a resumed study keeps the floors that it was made with: none
    again = sandbox.pgstrata("floor", file, "--blocks", "15", "--study", study, environ=state)
    assert again.returncode == 0, again.stderr
    assert json.loads((study / "plan.json").read_text())["plan"]["floors"] == {}


def test_a_budget_that_holds_no_block_leaves_the_floor_undecided(sandbox):
    state = {"PGSTRATA_STATE": str(sandbox.root / "state-of-nothing")}
    file = sandbox.file(QUESTION, "floor.toml")
    study = sandbox.root / "study-nothing"
    done = sandbox.pgstrata("floor", file, "--budget", "1s", "--study", study, "--json", environ=state)
    assert done.returncode == 3, done.stderr
    document = json.loads(done.stdout)
    assert (document["schema"], document["floors"], document["kept"]) == (1, [], None)
    assert "needs 12 differences, and there are 0 in select-only-s1-c1" in document["lack"]


def test_a_control_by_rebuild_runs_on_data_that_were_built_a_second_time(sandbox):
    file = sandbox.file(
        QUESTION.replace("blocks = 12", 'blocks = 1\ncontrols = ["rebuild"]').replace(
            "clients = 1", "clients = 1\nrate = 50"
        ),
        "rebuild.toml",
    )
    study = sandbox.root / "study-rebuild"
    data = sandbox.root / "data-rebuild"
    done = sandbox.pgstrata("run", file, "--study", study, environ={"PGSTRATA_DATA": str(data)})
    assert done.returncode == 0, done.stderr
    assert len(sandbox.records(study)) == 3
    assert len(list((data / "datasets").iterdir())) == 2
    shown = json.loads(sandbox.pgstrata("show", study, "--json").stdout)
    assert "rebuild" in {one["environment"]["control"] for one in shown["comparisons"]}

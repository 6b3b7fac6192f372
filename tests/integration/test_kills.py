"""kill -9 at random moments of an experiment: resuming completes it, every run once, nothing left running."""

import json
import random
import signal
import time

import pytest

pytestmark = [pytest.mark.server, pytest.mark.slow, pytest.mark.timeout(1800)]

EXPERIMENT = """
question = "What survives?"
blocks = 4
controls = ["same"]
[common]
server = "embedded"
settings.shared_buffers = "64MB"
[[cells]]
workload = "simple-update"
scale = 1
clients = 2
rate = 50
run = "1s"
warmup = "0s"
"""


@pytest.mark.parametrize("most", [5, pytest.param(50, marks=pytest.mark.soak("kills"))])
def test_kills_lose_no_run_and_leave_nothing(sandbox, most):
    draw = random.Random(9)
    file = sandbox.file(EXPERIMENT, "kills.toml")
    planned = set(json_plan(sandbox, file))
    kills = rounds = 0
    while kills < most:
        rounds += 1
        study = sandbox.root / f"study-kills-{rounds}"
        committed = {}
        for _ in range(60):
            ended = run_and_kill(sandbox, file, study, draw)
            if ended:
                break
            kills += 1
            now = sandbox.records(study)
            assert committed.items() <= now.items()
            committed = now
            if kills == most:
                break
        done = sandbox.pgstrata("run", file, "--study", study)
        assert done.returncode == 0, done.stdout + done.stderr
        shown = json.loads(sandbox.pgstrata("show", study, "--json").stdout)
        assert set(sandbox.records(study)) == planned
        assert shown["comparisons"][0]["runs"] == len(planned)
    assert not sandbox.wait_for_silence()
    assert not sandbox.clones()


def run_and_kill(sandbox, file, study, draw):
    """Start, kill after a number of events drawn at random; True if it had ended by itself."""
    process = sandbox.start("run", file, "--study", study, "--events")
    # a run tells some fifteen events: the kills fall into every step, and every second attempt or so finishes a run
    patience = draw.randrange(1, 30)
    for count, _ in enumerate(process.stdout, start=1):
        if count >= patience:
            break
    else:
        process.communicate(timeout=60)
        return process.returncode == 0
    time.sleep(draw.random() * 0.2)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    return False


def json_plan(sandbox, file):
    """Identities of all planned runs."""
    plan = json.loads(sandbox.pgstrata("plan", file, "--json").stdout)
    stages = [stage for block in plan["blocks"] for visit in block["visits"] for stage in visit["stages"]]
    found = [run["identity"] for stage in stages for run in stage["runs"]]
    assert len(found) == len(set(found)) == 8
    return found

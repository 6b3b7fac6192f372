"""The example of a gate for CI does what its page says."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "gate-in-ci"
# A benchmark whose result depends on its own run number only: no clock, no chance.
BENCH = "n=$(cat {name} 2>/dev/null || echo 0); echo $((n + 1)) > {name}; echo $(({level} + n * {step} % 11))"


def run_gate(place, baseline, change, *arguments):
    paths = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    return subprocess.run(
        [str(EXAMPLE / "gate.sh"), baseline, change, *arguments],
        cwd=place,
        capture_output=True,
        text=True,
        timeout=240,
        env=os.environ | {"PATH": paths},
    )


@pytest.mark.parametrize(
    ("levels", "arguments", "code", "first", "blocks"),
    [
        ((1000, 800), (), 1, "The value of change is lower than that of baseline, which is worse", 7),
        ((1000, 800), ("--lower-is-better",), 0, "The value of change is lower than that of baseline, which is better", 7),
        ((1000, 1000), (), 0, "No difference larger than 3 % between change and baseline", 7),
        ((1000, 1000), ("--threshold", "0.01 %"), 3, "change and baseline cannot be told apart", 24),
    ],
)  # fmt: skip
def test_the_script_measures_until_there_is_an_answer(tmp_path, levels, arguments, code, first, blocks):
    commands = [
        BENCH.format(name=name, level=level, step=step)
        for name, level, step in zip(("b", "c"), levels, (7, 5), strict=True)
    ]
    done = run_gate(tmp_path, *commands, *arguments)
    assert done.returncode == code, done.stderr
    assert " ".join(done.stdout.split()).startswith(first)
    lines = (tmp_path / "results.csv").read_text().splitlines()
    assert len(lines) == 1 + 2 * blocks


@pytest.mark.parametrize("failing", ["exit 1", "exit 3", "echo nonsense"])
def test_a_benchmark_that_fails_is_neither_worse_nor_undecided(tmp_path, failing):
    done = run_gate(tmp_path, "echo 1", failing)
    assert done.returncode == 2
    assert done.stderr


@pytest.mark.parametrize(("metric", "code", "word"), [("tps", 1, "slower"), ("latency_p95", 1, "slower")])
def test_the_file_can_be_decided_as_the_page_says(metric, code, word):
    done = subprocess.run(
        [sys.executable, "-m", "pgstrata", "decide", "results.csv", "--baseline", "main", "--metric", metric],
        cwd=EXAMPLE,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (code, "")
    assert " ".join(done.stdout.split()).startswith(f"change is {word} than main over all cells together: ")


def test_both_metrics_at_once_are_refused():
    words = [sys.executable, "-m", "pgstrata", "decide", "results.csv"]
    done = subprocess.run(words, cwd=EXAMPLE, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "mixes 2 metrics: tps, latency_p95" in done.stderr

"""Records the noise of a machine: an A/A series of 600 short runs, about an hour in which nothing else should run.

    .venv/bin/python bench/noise/record.py FOLDER

Eight experiments one after the other compare a server with a copy of itself, select-only and simple-update: five with
runs of 2 s (24 blocks, 96 runs each) and, between them, three with runs of 8 s (10 blocks, 40 runs each). Afterwards
`bench/noise/extract.py FOLDER` makes the data file of them. What was there already is not measured again.
"""

import sys
from pathlib import Path

from pgstrata.app.question import load_plan
from pgstrata.app.run import run_experiment
from pgstrata.cli.progress import PlainSink
from pgstrata.store.repository import StudyFolder

EXPERIMENT = """
question = "How does this machine vary?"
blocks = {blocks}
seed = {seed}
controls = ["same"]
interleave = "runs"
[common]
server = "embedded"
[[cells]]
workload = "select-only"
scale = 10
clients = 2
run = "{run}s"
warmup = "1s"
[[cells]]
workload = "simple-update"
scale = 10
clients = 2
run = "{run}s"
warmup = "1s"
"""
# Seconds of a run and blocks, in the order of recording.
SERIES = ((2, 24), (8, 10), (2, 24), (2, 24), (8, 10), (2, 24), (8, 10), (2, 24))


def record(folder: Path) -> None:
    """Run what is missing of the series below `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, (run, blocks) in enumerate(SERIES, start=1):
        file = folder / f"series-{number}.toml"
        file.write_text(EXPERIMENT.format(run=run, blocks=blocks, seed=number))
        # A study of users ends where its control is found equal; a recording needs all its blocks.
        run_experiment(
            load_plan(file), StudyFolder(folder / f"series-{number}"), PlainSink(sys.stdout), stop_early=False
        )


if __name__ == "__main__":
    record(Path(sys.argv[1]))

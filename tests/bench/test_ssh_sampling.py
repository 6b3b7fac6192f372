"""Whose CPU on a server's host is whose: the benchmark's own arithmetic, on looks that are written down here."""

import importlib
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[2] / "bench"


@pytest.fixture(scope="module")
def sampling():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(BENCH)
        yield importlib.import_module("ssh_sampling")


def look(sampling, *rows):
    return {pid: sampling.Process(parent=parent, title=title, cpu=cpu) for pid, parent, title, cpu in rows}


def test_each_process_counts_for_its_part_and_the_server_for_itself(sampling):
    titles = (
        (1, 0, "sshd: root@notty"), (2, 1, "sh"), (3, 2, "sh -c lines pgstrata-seconds"),
        (4, 2, "/opt/pg/bin/postgres -D /data"), (5, 4, "postgres: bench 10.0.0.1 idle"), (6, 4, "postgres: writer"),
    )  # fmt: skip
    first = look(sampling, *((*each, 1.0) for each in titles), (7, 2, "sleep 1", 9.0))
    last = look(sampling, *((*each, 1.0 + each[0] / 100) for each in titles), (8, 2, "sleep 1", 9.0))
    share = sampling._share(first, last, frozenset({5}))
    percent = 1 / sampling.SECONDS
    assert share == pytest.approx({
        "sshd": 1 * percent,
        "shells of the transport": 2 * percent,
        "the sampler of /proc": 3 * percent,
        "sampling backends": 5 * percent,
        "server": 10 * percent,
    })  # fmt: skip

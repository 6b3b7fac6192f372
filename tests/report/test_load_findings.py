"""Sentences on differences that depend on the load."""

from dataclasses import replace

import pytest

from pgstrata.model.answer import Interval, LoadDrop, LoadFinding, LoadRange, Verdict
from pgstrata.model.own_data import OwnData
from pgstrata.report.sentences.load import drop_sentences, load_sentences, say_load
from studies import BASE, OTHER, cell_of, make_environment, make_plan

CLIENTS = (1, 8, 64, 128)
PLAN = make_plan(clients=CLIENTS)
EQUAL = LoadRange(
    first=1, last=8, verdict=Verdict.EQUIVALENT, effect=1.001, interval=Interval(low=0.99, high=1.01), blocks=9
)
SLOWER = LoadRange(
    first=64, last=128, verdict=Verdict.WORSE, effect=0.88, interval=Interval(low=0.85, high=0.91), blocks=9
)
FINDING = LoadFinding(
    environment=OTHER,
    cells=tuple(map(cell_of, CLIENTS)),
    clients=CLIENTS,
    metric="tps",
    ranges=(EQUAL, SLOWER),
    p=0.002,
    reachable=True,
    blocks=9,
)


class Answered:
    def __init__(self, *findings):
        self.load_findings = findings
        self.study = type("Study", (), {"plan": PLAN})


@pytest.mark.parametrize(
    ("ranges", "said"),
    [
        (
            (EQUAL, SLOWER),
            ": no difference larger than 3 % up to 8 clients, -12.0 % [-15.0, -9.0] throughput from 64 clients on",
        ),
        (
            (replace(EQUAL, last=1, verdict=Verdict.NEGLIGIBLE), replace(SLOWER, first=8, last=64), replace(EQUAL, first=128, last=128, verdict=Verdict.INCONCLUSIVE)),
            (": +0.1 % [-1.0, +1.0], negligible, up to 1 client, -12.0 % [-15.0, -9.0] throughput from 8 to 64 clients, "
            "not decided (+0.1 % [-1.0, +1.0]) from 128 clients on"),
        ),
        (
            (replace(EQUAL, verdict=Verdict.BETTER, effect=1.1, interval=Interval(low=1.08, high=1.12)), SLOWER),
            (", better at some loads and worse at others: +10.0 % [+8.0, +12.0] throughput up to 8 clients, "
            "-12.0 % [-15.0, -9.0] throughput from 64 clients on"),
        ),
    ],
)  # fmt: skip
def test_each_range_is_told_with_its_loads(ranges, said):
    text = say_load(replace(FINDING, ranges=ranges), PLAN.experiment)
    assert text == f"18 on simple-update{said} (p = 0.002, exploratory)"


def test_a_workload_behind_an_environment_that_is_called_on_follows_a_comma():
    on = make_plan((make_environment(BASE), make_environment(OTHER, levels={"settings.jit": "on"})), clients=CLIENTS)
    assert say_load(FINDING, on.experiment).startswith("jit = on, on simple-update: ")


def test_only_what_depends_on_the_load_is_told():
    assert load_sentences(Answered(replace(FINDING, ranges=(EQUAL,)))) == ()
    assert len(load_sentences(Answered(FINDING))) == 1


def test_drops_and_collapses_are_told_by_their_own_figures():
    drop = LoadDrop(fewer=64, more=128, effect=0.94, interval=Interval(low=0.93, high=0.95), blocks=9)
    finding = replace(FINDING, drops=(drop,), collapsed_from=128)
    assert drop_sentences(Answered(finding)) == (
        "18 on simple-update: -6.0 % [-7.0, -5.0] throughput from 64 to 128 clients",
        "18 on simple-update: collapses at 128 clients",
    )


def test_data_of_ones_own_are_named_in_place_of_a_scale():
    own = tuple(replace(cell, scale=1, data=OwnData(command=("./fill",))) for cell in PLAN.experiment.cells)
    other = replace(own[0], data=None, workload="select-only")
    finding = replace(FINDING, cells=tuple(cell.identity for cell in own))
    text = say_load(finding, replace(PLAN.experiment, cells=(*own, other)))
    assert text.startswith("18 on simple-update on data by the command ./fill: ")
    assert say_load(finding, replace(PLAN.experiment, cells=own)).startswith("18 on simple-update: ")

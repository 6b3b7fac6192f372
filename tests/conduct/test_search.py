"""A search over fakes: rates, evidence and record; and the same record from the evidence alone."""

import random
from dataclasses import replace

import pytest

import fakes
import records
from little_plan import CELLS, carry_out, make_plan
from pgstrata.conduct.derive import derive_record
from pgstrata.conduct.steps import add_steps
from pgstrata.model.experiment import Allow
from pgstrata.model.objective import STEPS, Objective, Search
from pgstrata.model.runs import RunStatus, Validity
from pgstrata.ports.driver import StepCounts
from pgstrata.ports.events import EventKind

LIMIT = Objective(of="p99", limit=0.02)
CELL = replace(CELLS[0], objective=LIMIT, run=60.0)


class RatedDriver(fakes.FakeDriver):
    """Goes as fast as `maximum`; the share of late transactions is 1 % at `capacity`, and tenfold 5 % above it."""

    def __init__(self, world, *, capacity=800.0, maximum=1000.0, dies_at=None):
        super().__init__(world)
        self.capacity, self.maximum, self.dies_at = capacity, maximum, dies_at
        self.load = None

    def start(self, load, folder, *, on_parent_death=None):
        self.load = load
        process = super().start(load, folder, on_parent_death=on_parent_death)
        if self.dies_at and "step." in folder and folder.endswith(f"{self.dies_at:02d}"):
            process.code = 2
        return process

    def collect(self, folder):
        if folder.endswith("/ceiling"):
            return {"pgbench.out": b"tps = 1000000"}
        rate = self.load.cell.rate
        if self.dies_at and folder.endswith(f"step.{self.dies_at:02d}"):
            return {"pgbench.out": b"error: the server closed the connection"}
        late = min(1.0, 0.01 * ((rate or self.maximum) / self.capacity) ** 47)
        return {"pgbench.out": f"tps = {rate or self.maximum}".encode(), "late": str(late).encode()}

    def count_late(self, evidence, *, limit, lead):
        assert limit == LIMIT.limit
        late = float(evidence["late"])
        return StepCounts(transactions=4000, late=round(4000 * late), mean=0.001, growth=0.0)


def search(**more):
    world = fakes.World()
    driver = RatedDriver(world, **more)
    plan = make_plan(names=("a", "b"), blocks=1, cells=(CELL,))
    _, rig = carry_out(plan, world, drivers={"pgbench": driver})
    return world, plan, rig, driver


def test_a_run_is_a_search_whose_first_step_is_as_fast_as_it_goes():
    world, plan, rig, _ = search()
    (identity, *_) = rig.store.kept
    record, header = rig.store.kept[identity], rig.store.headers[identity]
    assert (record.status, record.validity) == (RunStatus.COMPLETED, Validity.VALID)
    assert record.value("sustained_rate") == pytest.approx(800, rel=0.01)
    assert record.value("tps") == 1000.0
    assert record.value("transactions") == STEPS * 1000
    assert len(header.search.rates) == STEPS
    assert header.search.rates[0] == 0.0
    loads = [load for folder, load in world.loads if "step." in folder][:STEPS]
    assert [load.cell.rate for load in loads] == [None, *header.search.rates[1:]]
    assert {load.seconds for load in loads} == {5}
    assert len({load.seed for load in loads}) == STEPS, "no step draws the rows of another"
    assert loads[0].sampling_rate is None, "as fast as it goes without a log"
    assert loads[1].sampling_rate is not None
    assert header.client_cpu == STEPS


def test_a_limit_that_every_rate_misses_is_a_collapse_that_says_so():
    _, _, rig, _ = search(capacity=1.0)
    record = next(iter(rig.store.kept.values()))
    assert record.status is RunStatus.COLLAPSED
    assert [reason.code for reason in record.reasons] == ["objective_missed"]
    assert record.value("sustained_rate") is None
    told = [event.value for event in rig.events.events if event.kind is EventKind.RUN_FINISHED]
    assert told == [None, None], "its throughput at full speed is no rate within the limit"


def test_a_limit_that_every_rate_keeps_leaves_its_run_suspect():
    _, _, rig, _ = search(capacity=1e6)
    record = next(iter(rig.store.kept.values()))
    assert (record.status, record.validity) == (RunStatus.COMPLETED, Validity.SUSPECT)
    assert [reason.code for reason in record.reasons] == ["objective_kept"]
    assert record.value("sustained_rate") > 1000


def test_a_driver_that_fails_in_a_step_ends_the_search_and_fails_the_run():
    _, _, rig, _ = search(dies_at=4)
    record = next(iter(rig.store.kept.values()))
    header = next(iter(rig.store.headers.values()))
    assert record.status is RunStatus.FAILED
    assert len(header.search.rates) == 4
    assert record.reasons[0].said == "error: the server closed the connection"


def test_the_record_follows_from_header_and_evidence():
    parser = RatedDriver(fakes.World())
    rates = (0.0, 700.0, 900.0, 780.0, 820.0)
    names = {0.0: 1000.0}
    evidence = {}
    for number, rate in enumerate(rates, 1):
        late = min(1.0, 0.01 * ((rate or 1000.0) / 800.0) ** 47)
        evidence |= {
            f"step.{number:02d}.pgbench.out": f"tps = {names.get(rate, rate)}".encode(),
            f"step.{number:02d}.late": str(late).encode(),
        }
    header = records.make_header(cell=CELL.identity, search=Search(objective=LIMIT, seconds=5.0, rates=rates))
    record = derive_record(header, evidence, parser, (), Allow())
    assert record.value("sustained_rate") == pytest.approx(800, rel=0.01)
    assert record.value("latency_mean") is None, "latencies of different rates are no run's"
    shuffled = list(evidence)
    random.Random(1).shuffle(shuffled)
    assert derive_record(header, {name: evidence[name] for name in shuffled}, parser, (), Allow()) == record


def test_steps_add_up_and_the_first_one_has_the_throughput():
    first = records.make_result(tps=1000.0, transactions=5000)
    second = records.make_result(tps=500.0, transactions=2500, failed=3, errors=("a",))
    found = add_steps([first, second])
    assert (found.tps, found.transactions, found.failed, found.errors) == (1000.0, 7500, 3, ("a",))
    assert not add_steps([first, replace(second, complete=False)]).complete

"""Guards that need the loop: what the client could drive, changed environments, what could not be seen; with fakes."""

from dataclasses import replace

import pytest

import fakes
import records
from guard_book import observe
from pgstrata.compare.environments.changes import changed_facts
from pgstrata.conduct.ceiling import AGAIN, CEILINGS
from pgstrata.conduct.loop import Conduct
from pgstrata.errors import HostNotFitError, ServerFailedError, SqlError
from pgstrata.model.experiment import Cell, HostSpec
from pgstrata.model.plan import Block, Forecast, Plan, PlannedRun, Stage, Visit
from pgstrata.model.runs import Validity
from pgstrata.model.server import Fingerprint
from pgstrata.ports.events import EventKind
from pgstrata.ports.server import QueryResult
from pgstrata.report.sentences.reasons import say_reason
from pgstrata.sources.ceilings import drop_wrong_ceilings

CELL = Cell(workload="select-only", scale=1, clients=2, threads=2, run=4.0, warmup=1.0)


def make_plan(*, names=("a", "b"), cells=(CELL,), blocks=2):
    environments = tuple(fakes.environment(name) for name in names)
    experiment = records.make_experiment(environments, blocks=blocks, cells=tuple(cells))

    def visit(block, name):
        runs = [
            PlannedRun(
                identity=f"b{block:02}/{name}/{cell.identity}",
                block=block,
                environment=name,
                cell=cell.identity,
                seed=block,
            )
            for cell in cells
        ]
        stages = tuple(Stage(cell=run.cell, runs=(run,)) for run in runs)
        return Visit(identity=f"b{block:02}/{name}", residents=(name,), stages=stages)

    return Plan(
        identity="p",
        experiment=experiment,
        blocks=tuple(Block(number=n, visits=tuple(visit(n, name) for name in names)) for n in range(1, blocks + 1)),
        forecast=Forecast(seconds_per_block=12, seconds_building=0, seconds_total=24, disk_bytes=0, datasets=()),
    )


def carry_out(plan, world, *, store=None, **changes):
    rig = fakes.with_client(fakes.make_rig(world, plan, store=store), **changes)
    Conduct(rig=rig, plan=plan, budget=None).carry_out()
    return rig


def reasons(rig):
    return {reason.code for record in rig.store.kept.values() for reason in record.reasons}


def ceilings_tried(world):
    return [folder for folder, _ in world.loads if folder.endswith("/ceiling")]


def again(plan, store, done):
    """The store of a study that goes on after its first runs."""
    resumed = fakes.FakeStore(done=[run.identity for run in plan.runs[:done]])
    resumed.fingerprints = dict(store.fingerprints)
    return resumed


# ----------------------------------------------------------------------------------------------- ceiling


def test_the_ceiling_is_measured_once_for_a_way_that_no_environment_comes_close_to():
    world = fakes.World()
    rig = carry_out(make_plan(), world)
    assert len(ceilings_tried(world)) == 1
    assert rig.store.fingerprint(CEILINGS).facts == {"2 clients, 2 threads, prepared, socket": "300.0"}
    assert {header.facts["client.ceiling"] for header in rig.store.headers.values()} == {"300.0"}


def test_the_ceiling_is_the_least_load_of_the_driver_by_the_same_clients():
    world = fakes.World()
    carry_out(make_plan(), world)
    (load,) = [load for folder, load in world.loads if folder.endswith("/ceiling")]
    assert load.cell.options == {"least": "1"}
    assert (load.cell.clients, load.cell.threads) == (2, 2)


def test_an_environment_that_comes_close_to_the_ceiling_has_its_own_measured_and_the_highest_is_kept():
    world = fakes.World(rates={"a": 100, "b": 290})
    rig = carry_out(make_plan(), world)
    assert len(ceilings_tried(world)) == 2
    assert rig.store.fingerprint(CEILINGS).facts == {"2 clients, 2 threads, prepared, socket": "870.0"}


def test_every_way_to_ask_has_a_ceiling_of_its_own():
    world = fakes.World()
    rig = carry_out(make_plan(cells=(CELL, replace(CELL, clients=4))), world)
    assert len(rig.store.fingerprint(CEILINGS).facts) == 2


def test_runs_near_the_ceiling_are_suspect():
    rig = carry_out(make_plan(), fakes.World(ceiling=1.1))
    assert reasons(rig) == {"near_ceiling"}
    assert {record.validity for record in rig.store.kept.values()} == {Validity.SUSPECT}


def test_a_workload_that_connects_for_each_transaction_has_no_ceiling():
    world = fakes.World(ceiling=1.0)
    rig = carry_out(make_plan(cells=(replace(CELL, workload="connect"),)), world)
    assert not ceilings_tried(world)
    assert not reasons(rig)


def test_a_resumed_study_judges_by_the_ceiling_that_it_began_with():
    plan, store = make_plan(), fakes.FakeStore()
    carry_out(plan, fakes.World(), store=store)
    world = fakes.World(ceiling=1.0)
    rig = carry_out(plan, world, store=again(plan, store, 2))
    assert not ceilings_tried(world)
    assert not reasons(rig)


class Recovering(fakes.World):
    """Others work in the preflight, in which two ceilings are measured, and no more in the first visit."""

    def __getattribute__(self, name):
        if name == "ceiling":
            return 0.64 if len(ceilings_tried(self)) <= 2 else 3.0
        return super().__getattribute__(name)


def test_a_ceiling_that_a_run_exceeds_is_measured_again_in_the_next_visit():
    world = Recovering()
    rig = carry_out(make_plan(blocks=3), world)
    assert len(ceilings_tried(world)) == 3
    assert list(rig.store.fingerprint(CEILINGS).facts.values()) == ["300.0"]
    assert [header.facts["client.ceiling"] for header in rig.store.headers.values()] == ["64.0"] + ["300.0"] * 5
    first, *others = rig.store.kept.values()
    (reason,) = first.reasons
    assert (reason.code, reason.value, reason.of) == ("above_ceiling", 100.0, 64.0)
    assert say_reason(reason).startswith("100 transactions per second are 156% of the 64 that `select 1` reached")
    assert first.validity is Validity.VALID
    assert not [record for record in others if record.reasons]


def test_a_ceiling_that_stays_too_low_judges_no_run_and_is_not_measured_for_ever():
    world = fakes.World(ceiling=0.5)
    rig = carry_out(make_plan(blocks=6), world)
    assert rig.store.fingerprint(AGAIN).facts == {"2 clients, 2 threads, prepared, socket": "5.0"}
    assert len(ceilings_tried(world)) == 2 + 5
    assert ["client.ceiling" in header.facts for header in rig.store.headers.values()] == [True] + [False] * 11


def test_a_load_that_is_as_fast_as_select_1_stays_near_its_ceiling_though_it_exceeds_it_a_little():
    rig = carry_out(make_plan(), fakes.World(ceiling=0.98))
    first, *others = rig.store.kept.values()
    assert [reason.code for reason in first.reasons] == ["above_ceiling"]
    assert {reason.code for record in others for reason in record.reasons} == {"near_ceiling"}


def test_runs_that_were_near_a_ceiling_are_not_doubted_once_another_exceeds_it():
    world = fakes.World(ceiling=1.1)
    rig = carry_out(make_plan(), world)
    near = tuple(rig.store.kept.values())
    assert {record.validity for record in near} == {Validity.SUSPECT}
    (reason,) = near[-1].reasons
    reasons_above = (replace(reason, code="above_ceiling", value=157.0),)
    above = replace(near[-1], reasons=reasons_above, validity=Validity.VALID)
    mended = drop_wrong_ceilings((*near[:-1], above))
    assert [record.reasons for record in mended[:-1]] == [(), (), ()]
    assert {record.validity for record in mended} == {Validity.VALID}
    assert drop_wrong_ceilings(near) == near
    # as version 0.1 kept it
    assert drop_wrong_ceilings((*near[:-1], replace(near[-1], reasons=(replace(reason, value=157.0),)))) == mended


# ---------------------------------------------------------------------------------- changed environments


def test_a_study_is_not_resumed_on_a_machine_that_changed():
    plan, store = make_plan(), fakes.FakeStore()
    carry_out(plan, fakes.World(kernel="6.1"), store=store)
    world = fakes.World(kernel="6.12")
    with pytest.raises(HostNotFitError, match=r"host\.kernel 6\.1 -> 6\.12") as caught:
        carry_out(plan, world, store=again(plan, store, 2))
    assert "new study" in caught.value.remedy
    assert not [entry for entry in world.log if entry[0] == "measure"]
    assert not world.up
    assert not world.clones


def test_an_environment_that_changes_under_way_makes_its_later_runs_invalid():
    plan, store = make_plan(), fakes.FakeStore()
    world = fakes.World()

    class Layer:
        name = "settings"

        def observe(self, server, sql):
            return {"asked.work_mem": "4096" if len(store.kept) < 2 else "8192"}

    rig = carry_out(plan, world, store=store, layers=(Layer(),))
    late = [record for record in rig.store.kept.values() if record.block == 2]
    assert {record.validity for record in late} == {Validity.INVALID}
    assert late[0].reasons[0].names == ("asked.work_mem 4096 -> 8192",)
    assert all(record.validity is Validity.VALID for record in rig.store.kept.values() if record.block == 1)


def test_settings_that_belong_to_the_data_of_one_cell_are_compared_within_that_cell():
    class Layer:
        name = "settings"

        def observe(self, server, sql):
            return {"settings.work_mem": "4096" if "s1" in server.clone.dataset.identity else "8192"}

    cells = (CELL, replace(CELL, scale=7))
    rig = carry_out(make_plan(cells=cells), fakes.World(), layers=(Layer(),))
    assert len(rig.store.kept) == 8
    assert not reasons(rig)


def test_changes_that_mean_nothing_are_none():
    first = {
        "host.memory": "24000000 kB",
        "host.schedulers": "sda none, vda mq-deadline",
        "settings.port": "5432",
        "host.kernel": "6.1",
    }
    now = {
        "host.memory": "23900000 kB",
        "host.schedulers": "sdb none, vda mq-deadline",
        "settings.port": "5433",
        "host.kernel": "6.1",
        "host.virtual": "kvm",
    }
    assert changed_facts(first, now) == ()


def test_changes_are_told_with_both_values():
    flags = "'CFLAGS=-O2 -g -fstack-protector-strong -Wformat' "
    first = {
        "host.memory": "24000000 kB",
        "settings.jit": "off",
        "server.configure": f"{flags}--with-icu",
        "settings.x.y": "1",
    }
    now = {"host.memory": "16000000 kB", "settings.jit": "", "server.configure": f"{flags}--without-icu"}
    assert changed_facts(first, now) == (
        "host.memory 24000000 kB -> 16000000 kB",
        "server.configure ...at' --with-icu -> ...at' --without-icu",
        "settings.jit off -> (empty)",
        "settings.x.y 1 -> not there",
    )


def test_a_scheduler_of_a_device_that_is_still_there_is_a_change():
    first, now = {"host.schedulers": "vda none"}, {"host.schedulers": "vda mq-deadline"}
    assert changed_facts(first, now) == ("host.schedulers vda none -> vda mq-deadline",)


# ------------------------------------------------------------------------------------- what is not seen


def test_an_emulated_machine_is_told_before_the_first_run_and_all_runs_are_invalid():
    facts = Fingerprint(facts={"host.emulation": "QEMU without hardware virtualisation"})
    home = replace(fakes.home_of(fakes.make_rig(fakes.World(), make_plan())), fingerprint=facts)
    rig = carry_out(make_plan(), fakes.World(), targets={HostSpec(): fakes.FakeTarget(fakes.World(), home)})
    assert any("emulated" in event.text for event in rig.events.events if event.kind is EventKind.WARNING)
    assert reasons(rig) == {"emulated"}
    assert {record.validity for record in rig.store.kept.values()} == {Validity.INVALID}


def test_a_checkpoint_that_is_not_allowed_is_reported(request):
    class Sql(fakes.FakeSql):
        def execute(self, address, script):
            if "CHECKPOINT" in script:
                raise SqlError("must be superuser or have privileges of pg_checkpoint", sqlstate="42501")

    rig = carry_out(make_plan(), fakes.World(), sql=Sql())
    assert reasons(rig) == {"no_checkpoint"}
    observe(request.node.nodeid, "no_checkpoint", say_reason(next(iter(rig.store.kept.values())).reasons[0]))


def of_order_entry(answer):
    """A study of a workload that writes data which can be checked afterwards, where the check gives that answer."""

    class Sql(fakes.FakeSql):
        def query(self, address, statement):
            return answer() if statement == "SELECT consistency" else super().query(address, statement)

    data = replace(fakes.DATA, consistency="SELECT consistency")
    workload = replace(fakes.WORKLOAD, data=data, writes=True)
    return carry_out(make_plan(), fakes.World(), sql=Sql(), workloads={"select-only": workload})


def test_data_that_contradict_themselves_after_a_run_make_it_invalid(request):
    rows = (("takings", "0", "2", "f"), ("numbers", "0", "0", "t"))
    rig = of_order_entry(lambda: QueryResult(columns=("item", "expected", "found", "ok"), rows=rows))
    assert reasons(rig) == {"inconsistent_data"}
    record = next(iter(rig.store.kept.values()))
    assert record.validity is Validity.INVALID
    assert record.reasons[0].names == ("takings",)
    observe(request.node.nodeid, "inconsistent_data", say_reason(record.reasons[0]))


def test_a_run_whose_data_cannot_be_checked_is_invalid():
    def fail():
        raise ServerFailedError("the connection was lost")

    rig = of_order_entry(fail)
    assert {record.reasons[0].how for record in rig.store.kept.values()} == {"unseen"}


def test_statistics_that_could_not_be_read_afterwards_are_reported(request):
    class Collector:
        name = "pgstat"
        with_clients = False

        def __init__(self):
            self.times = 0

        def capture(self, subject):
            self.times += 1
            if self.times % 2 == 0:
                raise ServerFailedError("terminating connection due to administrator command")
            return b""

        def parse(self, before, after, window):
            return ()

    rig = carry_out(make_plan(), fakes.World(), collectors=(Collector(),))
    assert reasons(rig) == {"capture_failed"}
    observe(request.node.nodeid, "capture_failed", say_reason(next(iter(rig.store.kept.values())).reasons[0]))

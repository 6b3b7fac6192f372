"""The loop over a plan, with fakes on every port."""

from dataclasses import replace

import pytest

import fakes
from little_plan import CELLS, carry_out, make_plan
from pgstrata.conduct.cost import SPENT, UnmeasuredTime, own_seconds
from pgstrata.conduct.loop import Conduct, Ending
from pgstrata.errors import DatabaseFullError, DiskFullError, LevelNotTakenError, ServerFailedError
from pgstrata.model.experiment import Allow, Cell, Reset, Script
from pgstrata.model.runs import RunStatus, Validity
from pgstrata.ports.events import EventKind


def steps(world, *kinds):
    return [entry for entry in world.log if entry[0] in kinds]


def test_every_planned_run_is_committed_once_in_the_planned_order():
    world, plan = fakes.World(), make_plan()
    ending, rig = carry_out(plan, world)
    assert ending is Ending.COMPLETE
    assert list(rig.store.kept) == [run.identity for run in plan.runs]
    assert all(record.validity is Validity.VALID for record in rig.store.kept.values())


def test_every_run_has_its_own_clone_and_nothing_stays_up():
    world, plan = fakes.World(), make_plan()
    carry_out(plan, world)
    clones = [entry[1] for entry in steps(world, "clone")]
    assert len(clones) == len(set(clones)) == 2 + 4
    assert not world.up
    assert not world.clones


def test_resuming_makes_only_what_is_missing():
    world, plan = fakes.World(), make_plan()
    store = fakes.FakeStore(done=[run.identity for run in plan.runs[:3]])
    carry_out(plan, world, store=store)
    assert list(store.kept) == [plan.runs[3].identity]


def test_a_complete_study_starts_nothing():
    world, plan = fakes.World(), make_plan()
    ending, _ = carry_out(plan, world, store=fakes.FakeStore(done=[run.identity for run in plan.runs]))
    assert ending is Ending.COMPLETE
    assert not world.log


def test_residents_of_one_visit_are_all_up_before_the_first_is_measured():
    world, plan = fakes.World(), make_plan(together=True)
    carry_out(plan, world)
    measured = steps(world, "measure")
    assert len(measured) == 4
    assert all(entry[2] == ("a", "b") for entry in measured)
    assert not world.up


def test_with_one_resident_servers_are_never_up_together():
    world, plan = fakes.World(), make_plan()
    carry_out(plan, world)
    assert all(len(entry[2]) == 1 for entry in steps(world, "measure"))


def test_the_budget_keeps_whole_blocks_and_is_not_exceeded():
    world, plan = fakes.World(), make_plan(blocks=6)
    begun = world.now
    ending, rig = carry_out(plan, world, budget=45.0)
    assert ending is Ending.BUDGET
    assert world.now - begun <= 45.0
    assert len(rig.store.done) == 8  # four blocks of about ten seconds


def test_a_resumed_run_has_the_rest_of_the_budget():
    world, plan = fakes.World(), make_plan(blocks=6)
    ending, rig = carry_out(plan, world, budget=45.0, spent=40.0)
    assert ending is Ending.BUDGET
    assert not rig.store.done
    assert [event.budget_left for event in rig.events.events if event.kind is EventKind.STUDY_STARTED] == [5.0]


def slow_to_build(rig, seconds):
    """The first time that each environment's data is asked for, it is built."""

    class Building(fakes.FakeDatasets):
        built = False

        def ensure(self, environment, build, cell):
            if not self.built:
                self.built = True
                self.world.now += seconds
            return super().ensure(environment, build, cell)

    world = rig.clock.world
    return with_datasets(rig, lambda: Building(world))


def with_datasets(rig, make):
    """The rig with others instead of its own, one for each environment."""
    homes = {
        spec: replace(home, supplies={name: replace(one, datasets=make()) for name, one in home.supplies.items()})
        for spec, home in ((spec, target.observe()) for spec, target in rig.targets.items())
    }
    return fakes.with_hosts(rig, homes)


def spent_in(store):
    return UnmeasuredTime.of(store.fingerprint(SPENT)).seconds + sum(own_seconds(record) for record in store.records())


def test_data_that_are_looked_for_again_before_a_run_are_in_its_steps():
    world, plan = fakes.World(), make_plan()
    rig = fakes.make_rig(world, plan)

    class Slow(fakes.FakeDatasets):
        def ensure(self, environment, build, cell):
            self.world.now += 4.0
            return super().ensure(environment, build, cell)

    rig = with_datasets(rig, lambda: Slow(world))
    Conduct(rig=rig, plan=plan, budget=None).carry_out()
    assert all(record.dead_time["prepare"] >= 4 for record in rig.store.kept.values())


def test_no_block_is_begun_where_building_has_used_up_the_budget():
    world, plan = fakes.World(), make_plan()
    conduct = Conduct(rig=slow_to_build(fakes.make_rig(world, plan), 30.0), plan=plan, budget=70.0)
    assert conduct.carry_out() is Ending.BUDGET
    assert not steps(world, "measure")
    assert conduct.preparing >= 60
    assert 10 < conduct.block_seconds < 20


def test_building_counts_in_the_budget_of_the_blocks_that_follow():
    world, plan = fakes.World(), make_plan(blocks=9)
    begun = world.now
    rig = slow_to_build(fakes.make_rig(world, plan), 30.0)
    assert Conduct(rig=rig, plan=plan, budget=105.0).carry_out() is Ending.BUDGET
    assert world.now - begun <= 105.0
    assert {record.block for record in rig.store.kept.values()} == {1, 2, 3, 4}


def test_what_was_done_before_the_loop_counts_in_the_budget():
    world, plan = fakes.World(), make_plan(blocks=9)
    rig = fakes.make_rig(world, plan)
    late = Conduct(rig=rig, plan=plan, budget=105.0, begun=world.now - 100)
    assert late.carry_out() is Ending.BUDGET
    assert late.preparing == pytest.approx(100.0)
    short = Conduct(rig=fakes.make_rig(fakes.World(), plan), plan=plan, budget=1.0)
    assert (short.carry_out(), short.preparing) == (Ending.BUDGET, 0.0)
    assert not world.log


UNEQUAL = (CELLS[0], replace(CELLS[0], clients=4, run=70.0))


def unequal_rest():
    """A plan with a short and a long cell, of whose second block only the long runs are missing."""
    plan = make_plan(cells=UNEQUAL)
    _, rig = carry_out(plan, fakes.World())
    short = [run.identity for run in plan.blocks[1].runs if run.cell == UNEQUAL[0].identity]
    return plan, kept_only(rig.store, short)


def test_a_block_of_long_cells_is_not_taken_for_one_of_average_cells():
    plan, store = unequal_rest()
    world = fakes.World()
    begun = world.now
    # the first block takes 152 s, the two long runs that are left 142 s: by the run they would be 76 s
    ending, _ = carry_out(plan, world, store=store, budget=280.0)
    assert ending is Ending.BUDGET
    assert world.now - begun <= 280.0
    assert {record.block for record in store.kept.values() if record.cell == UNEQUAL[1].identity} == {1}


def test_a_block_of_long_cells_that_fits_is_measured():
    plan, store = unequal_rest()
    world = fakes.World()
    begun = world.now
    ending, _ = carry_out(plan, world, store=store, budget=310.0)
    assert ending is Ending.COMPLETE
    assert world.now - begun <= 310.0


def test_what_runs_took_is_known_again_when_a_study_is_resumed():
    plan = make_plan(blocks=3)
    world = fakes.World(start_seconds=50.0)
    _, rig = carry_out(plan, world)
    first = kept_only(rig.store, [run.identity for run in plan.blocks[0].runs])
    world.log.clear()
    # the plan forecasts 14 s for a block of 110 s
    ending, _ = carry_out(plan, world, store=first, budget=100.0)
    assert ending is Ending.BUDGET
    assert not world.log


def test_all_that_a_study_took_is_known_to_the_next_call():
    world, plan = fakes.World(), make_plan()
    begun = world.now
    rig = slow_to_build(fakes.make_rig(world, plan), 30.0)
    Conduct(rig=rig, plan=plan, budget=80.0).carry_out()
    assert len(rig.store.done) == 2
    assert spent_in(rig.store) == pytest.approx(world.now - begun, abs=0.01)
    used = world.now - begun
    again = fakes.make_rig(world, plan, store=rig.store)
    assert Conduct(rig=again, plan=plan, budget=200.0, spent=used).carry_out() is Ending.COMPLETE
    assert spent_in(rig.store) == pytest.approx(world.now - begun, abs=0.01)


def test_a_run_that_was_lost_and_a_preflight_that_failed_were_spent_too():
    world, plan = fakes.World(fail_start={("b", True)}), make_plan()
    begun, store = world.now, fakes.FakeStore()
    with pytest.raises(ServerFailedError):
        carry_out(plan, world, store=store)
    assert spent_in(store) == pytest.approx(world.now - begun, abs=0.01)
    world.fail_start.clear()
    world.raise_in_measure.append(DiskFullError("full"))
    with pytest.raises(DiskFullError):
        carry_out(plan, world, store=store)
    assert not store.kept
    assert spent_in(store) == pytest.approx(world.now - begun, abs=0.01)


def test_the_time_left_knows_short_and_long_cells():
    plan, store = unequal_rest()
    _, rig = carry_out(plan, fakes.World(), store=store)
    left = [event.seconds_left for event in rig.events.events if event.kind is EventKind.BLOCK_FINISHED]
    assert 140 < left[0] < 150
    assert left[1] == 0


def test_an_environment_that_does_not_start_is_refused_before_anything_is_measured():
    world, plan = fakes.World(fail_start={("b", True)}), make_plan()
    with pytest.raises(ServerFailedError, match="did not start"):
        carry_out(plan, world)
    assert not steps(world, "measure")
    assert not world.clones


def test_a_server_that_fails_later_is_recorded_and_the_other_environment_goes_on():
    world, plan = fakes.World(fail_start={("b", False)}), make_plan()
    _, rig = carry_out(plan, world)
    records = rig.store.kept
    assert records["b01/a/select-only-s1-c2"].status is RunStatus.COMPLETED
    failed = records["b01/b/select-only-s1-c2"]
    assert (failed.status, failed.validity) == (RunStatus.FAILED, Validity.INVALID)
    assert "did not start" in failed.reasons[0].said
    assert not world.clones


def test_running_out_of_connections_is_a_collapse():
    world, plan = fakes.World(outputs={"b": b"pgbench: error: FATAL: sorry, too many clients already"}), make_plan()
    _, rig = carry_out(plan, world)
    assert rig.store.kept["b01/b/select-only-s1-c2"].status is RunStatus.COLLAPSED


def test_a_server_that_dies_in_a_run_is_named():
    world = fakes.World(
        outputs={"b": b""}, server_logs={"b": b"LOG: server process (PID 5) was terminated by signal 9: Killed"}
    )
    _, rig = carry_out(make_plan(), world)
    record = rig.store.kept["b01/b/select-only-s1-c2"]
    assert record.status is RunStatus.FAILED
    assert "terminated by signal 9" in record.reasons[0].said


def test_failed_transactions_make_a_run_invalid_unless_they_are_allowed():
    world, plan = fakes.World(outputs={"b": b"tps failed"}), make_plan()
    _, rig = carry_out(plan, world)
    record = rig.store.kept["b01/b/select-only-s1-c2"]
    assert (record.status, record.validity) == (RunStatus.COMPLETED, Validity.INVALID)
    allowed = replace(plan, experiment=replace(plan.experiment, allow=Allow(failed_transactions=True)))
    _, rig = carry_out(allowed, fakes.World(outputs={"b": b"tps failed"}))
    assert rig.store.kept["b01/b/select-only-s1-c2"].validity is Validity.VALID


def test_a_clock_that_jumps_makes_a_run_suspect():
    world = fakes.World(wall_jump=3600.0)
    _, rig = carry_out(make_plan(), world)
    record = rig.store.kept["b01/a/select-only-s1-c2"]
    assert record.validity is Validity.SUSPECT
    assert record.reasons[0].code == "clock_jump"


def test_a_full_disk_ends_the_experiment_and_commits_nothing_of_the_run():
    world, plan = fakes.World(raise_in_measure=[DiskFullError("full")]), make_plan()
    store = fakes.FakeStore()
    with pytest.raises(DiskFullError):
        carry_out(plan, world, store=store)
    assert not store.kept
    assert not world.up
    assert not world.clones


def test_a_statement_that_finds_the_disk_full_names_the_folder_of_the_clone():
    world, plan = fakes.World(), make_plan()

    class Full(fakes.FakeSql):
        def execute(self, address, script):
            where = "database bench at /tmp/socket"
            raise DatabaseFullError("could not write init file", host=address.host, port=address.port, where=where)

    with pytest.raises(DiskFullError) as caught:
        Conduct(rig=fakes.with_client(fakes.make_rig(world, plan), sql=Full()), plan=plan, budget=None).carry_out()
    assert (caught.value.details, caught.value.where) == (
        ("could not write init file",),
        "/clones/b01-a-select-only-s1-c2",
    )
    assert not world.up
    assert not world.clones


def test_ctrl_c_takes_everything_down_and_keeps_finished_runs():
    world, plan = fakes.World(), make_plan()
    store = fakes.FakeStore()

    class Interrupting(fakes.FakeDriver):
        def start(self, load, folder):
            if folder.endswith("/run") and len(store.kept) == 2:
                raise KeyboardInterrupt
            return super().start(load, folder)

    rig = fakes.with_client(fakes.make_rig(world, plan, store=store), drivers={"pgbench": Interrupting(world)})
    with pytest.raises(KeyboardInterrupt):
        Conduct(rig=rig, plan=plan, budget=None).carry_out()
    assert len(store.kept) == 2
    assert not world.up
    assert not world.clones


def test_six_failures_in_a_row_end_the_experiment_with_the_last_reason():
    world, plan = fakes.World(fail_start={("a", False), ("b", False)}), make_plan(blocks=9)
    store = fakes.FakeStore()
    with pytest.raises(ServerFailedError, match="6 runs in a row"):
        carry_out(plan, world, store=store)
    assert len(store.kept) == 6


def test_a_level_that_did_not_take_is_found_before_anything_is_measured():
    class Layer:
        name = "settings"

        def observe(self, server, sql):
            raise LevelNotTakenError("jit = on was asked for")

    world, plan = fakes.World(), make_plan()
    with pytest.raises(LevelNotTakenError):
        carry_out(plan, world, layers=(Layer(),))
    assert not steps(world, "measure")


def test_reset_restart_keeps_one_clone_for_a_visit():
    cells = (*CELLS, replace(CELLS[0], clients=4))
    world, plan = fakes.World(), make_plan(cells=cells, reset=Reset.RESTART, blocks=1)
    carry_out(plan, world)
    visit_clones = [entry for entry in steps(world, "clone") if "preflight" not in entry[1]]
    assert len(visit_clones) == 2
    assert len(steps(world, "start")) == 2 + 4
    assert not world.clones


def test_reset_none_keeps_the_server_up_for_a_visit():
    cells = (*CELLS, replace(CELLS[0], clients=4))
    world, plan = fakes.World(), make_plan(cells=cells, reset=Reset.NONE, blocks=1)
    carry_out(plan, world)
    assert len(steps(world, "start")) == 2 + 2
    assert not world.up


def test_custom_scripts_are_tried_once_before_hours_are_spent():
    script = Script(file="mine.sql", text="SELEKT;")
    cells = (Cell(workload="custom", scale=1, clients=2, threads=2, run=4.0, warmup=1.0, scripts=(script,)),)
    world, plan = fakes.World(), make_plan(cells=cells)

    class Complaining(fakes.FakeDriver):
        def parse(self, evidence):
            return replace(super().parse(evidence), errors=('ERROR:  syntax error at or near "SELEKT"',))

    rig = fakes.with_client(fakes.make_rig(world, plan), drivers={"pgbench": Complaining(world)})
    with pytest.raises(ServerFailedError, match="tried once") as caught:
        Conduct(rig=rig, plan=plan, budget=None).carry_out()
    assert caught.value.where == "mine.sql"
    assert not steps(world, "measure")
    assert not world.up


def test_time_left_is_told_after_every_block():
    world, plan = fakes.World(), make_plan()
    _, rig = carry_out(plan, world)
    finished = [event for event in rig.events.events if event.kind is EventKind.BLOCK_FINISHED]
    assert [event.done for event in finished] == [1, 2]
    assert finished[-1].seconds_left == 0


def test_what_is_left_of_the_budget_is_told_after_every_block():
    world, plan = fakes.World(), make_plan()
    rig = fakes.make_rig(world, plan)
    assert Conduct(rig=rig, plan=plan, budget=10_000.0).carry_out() is Ending.COMPLETE
    finished = [event for event in rig.events.events if event.kind is EventKind.BLOCK_FINISHED]
    first, last = (event.budget_left for event in finished)
    assert 10_000 > first > last > 0
    assert all(event.seconds_left <= event.budget_left for event in finished)


def rates_of(rig):
    return {header.sampling_rate for header in rig.store.headers.values()}


def test_the_fastest_environment_sets_the_rate_of_the_transaction_log_for_all():
    world = fakes.World(rates={"a": 3000, "b": 28000})
    _, rig = carry_out(make_plan(), world)
    assert rates_of(rig) == {1 / 32}


def test_without_warm_up_the_transaction_log_is_sampled_too():
    world = fakes.World(rates={"a": 120000, "b": 120000})
    _, rig = carry_out(make_plan(cells=(replace(CELLS[0], warmup=0.0),)), world)
    assert rates_of(rig) == {1 / 128}


def test_a_resumed_study_keeps_its_rate():
    plan, store = make_plan(), fakes.FakeStore()
    carry_out(plan, fakes.World(rates={"a": 3000, "b": 3000}), store=store)
    again = fakes.FakeStore(done=[run.identity for run in plan.runs[:2]])
    again.fingerprints = store.fingerprints
    _, rig = carry_out(plan, fakes.World(rates={"a": 90000, "b": 90000}), store=again)
    assert rates_of(rig) == {1 / 4}


def test_the_warm_up_draws_other_rows_than_the_measured_run():
    world = fakes.World()
    carry_out(make_plan(blocks=1), world)
    warm = {load.seed for folder, load in world.loads if folder.endswith("/warmup")}
    measured = {load.seed for folder, load in world.loads if folder.endswith("/run")}
    assert len(warm) == len(measured) == 1  # the arms of a block share both
    assert warm != measured


def test_scripts_are_tried_with_the_options_of_their_environment():
    script = Script(file="mine.sql", text="SELECT :extra;")
    cells = (Cell(workload="custom", scale=1, clients=2, threads=2, run=4.0, warmup=1.0, scripts=(script,)),)
    plan = make_plan(cells=cells)
    environments = tuple(replace(each, options={"extra": each.name}) for each in plan.experiment.environments)
    plan = replace(plan, experiment=replace(plan.experiment, environments=environments))
    world = fakes.World()
    carry_out(plan, world)
    tried = {load.cell.options["extra"] for folder, load in world.loads if "/try-" in folder}
    assert tried == {"a", "b"}


def test_cells_with_different_data_are_tried_on_their_own_data():
    cells = (*CELLS, replace(CELLS[0], scale=7))
    world = fakes.World()
    carry_out(make_plan(cells=cells), world)
    assert len([entry for entry in steps(world, "clone") if "preflight" in entry[1]]) == 4


def test_everything_is_quiet_before_each_measured_window_of_servers_that_are_up_together():
    world = fakes.World()
    carry_out(make_plan(together=True, blocks=1), world)
    order = [entry for entry in world.log if entry[0] in {"run", "measure"}]
    assert [entry[0] for entry in order] == ["run", "measure", "run", "measure"]
    # the file systems of both servers
    assert [(*entry[1:3], len(entry[3:])) for entry in order if entry[0] == "run"] == [("sync", "-f", 2)] * 2


def test_a_clone_that_cannot_be_removed_costs_no_run():
    world = fakes.World(fail_discard=True)
    _, rig = carry_out(make_plan(), world)
    assert len(rig.store.kept) == 4
    assert any(event.kind is EventKind.WARNING for event in rig.events.events)


def test_what_is_decided_is_not_measured_any_more():
    world, plan = fakes.World(rates={"a": 100, "b": 200}), make_plan(blocks=12)
    ending, rig = carry_out(plan, world)
    assert ending is Ending.DECIDED
    assert len(rig.store.done) == 7 * 2


def test_a_decided_study_starts_nothing():
    world, plan = fakes.World(rates={"a": 100, "b": 200}), make_plan(blocks=12)
    _, rig = carry_out(plan, world)
    world.log.clear()
    ending, _ = carry_out(plan, world, store=rig.store)
    assert ending is Ending.DECIDED
    assert not world.log


def test_a_block_that_was_interrupted_is_finished_as_it_was_begun():
    world, plan = fakes.World(rates={"a": 100, "b": 200}), make_plan(blocks=12)
    _, rig = carry_out(plan, world)
    lost = plan.blocks[6].runs[-1].identity
    rig.store.done.discard(lost)
    del rig.store.kept[lost]
    ending, _ = carry_out(plan, world, store=rig.store)
    assert ending is Ending.DECIDED
    assert len(rig.store.done) == 7 * 2


def test_an_open_question_takes_all_planned_blocks():
    world, plan = fakes.World(), make_plan(blocks=8)
    world.rates = {"a": 100, "b": 104}
    rig = fakes.make_rig(world, plan)
    assert Conduct(rig=rig, plan=plan, budget=None, stop_early=False).carry_out() is Ending.COMPLETE
    assert len(rig.store.done) == 8 * 2


CURVE = tuple(replace(CELLS[0], clients=clients) for clients in (1, 2, 4, 8, 16))
DENT = {"a": 100, "b": 200, ("b", 4): 150}


def test_a_kink_costs_no_block():
    world, plan = fakes.World(rates=DENT), make_plan(blocks=20, cells=CURVE)
    ending, rig = carry_out(plan, world)
    assert ending is Ending.DECIDED
    assert {record.block for record in rig.store.kept.values()} == set(range(1, 8))


def kept_only(store, identities):
    left = fakes.FakeStore(done=identities)
    left.kept = {identity: store.kept[identity] for identity in identities}
    left.fingerprints = store.fingerprints
    return left

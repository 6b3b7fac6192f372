"""Doubts that hold for a whole study, from the facts of its host and from what its runs never contained."""

from dataclasses import replace

import pytest

import records
from guard_book import observe
from pgstrata.compare.environments.surroundings import surrounding_warnings
from pgstrata.model.doubts import FewClients, NamedDoubt
from pgstrata.model.experiment import (
    Cell,
    Environment,
    HostKind,
    HostSpec,
    ServerKind,
    ServerSpec,
)
from pgstrata.model.metrics import Measurement
from pgstrata.model.plan import Forecast, Plan
from pgstrata.model.runs import RunRecord, RunStatus, Validity
from pgstrata.model.server import Fingerprint
from pgstrata.model.study import Study
from pgstrata.report.sentences.findings import say_doubt

CELL = Cell(workload="simple-update", scale=10, clients=4, threads=2)
HOST = {"host.cpus": "4", "host.virtual": "kvm", "host.clocksource": "tsc", "host.thp": "madvise"}
MEASURED = {"wal_per_tx": 600.0, "checkpoints": 2.0, "latency_p99": 0.01}


def make_run(block=1, validity=Validity.VALID, **measured):
    values = {name: value for name, value in {**MEASURED, **measured}.items() if value is not None}
    return RunRecord(
        identity=f"b{block:02}/a/{CELL.identity}",
        block=block,
        environment="a",
        cell=CELL.identity,
        status=RunStatus.COMPLETED,
        validity=validity,
        reasons=(),
        started="",
        measured_seconds=60.0,
        measurements=tuple(Measurement(metric=name, value=value) for name, value in values.items()),
    )


def make_study(*, host=(), cell=CELL, metric="tps", settings=(), facts=(), runs=None, layers=()):
    spec = ServerSpec(kind=ServerKind.CATALOGUE, value="18")
    environment = Environment(name="a", levels=(), server=spec, settings=dict(settings), layers=dict(layers))
    experiment = records.make_experiment((environment,), metric=metric, cells=(cell,), factors=())
    forecast = Forecast(seconds_per_block=0, seconds_building=0, seconds_total=0, disk_bytes=0, datasets=())
    return Study(
        name="s",
        plan=Plan(identity="p", experiment=experiment, blocks=(), forecast=forecast),
        runs=(make_run(),) if runs is None else tuple(runs),
        host=Fingerprint(facts={**HOST, **dict(host)}),
        client=Fingerprint(facts={}),
        environments={"a": Fingerprint(facts=dict(facts))},
        created="",
        version="",
    )


def found(study):
    return {doubt.code: doubt for doubt in surrounding_warnings(study)}


def test_a_sound_study_has_no_doubts():
    assert not found(make_study())


def test_fewer_clients_than_cpus_on_a_virtual_machine_are_reported(request):
    cell = replace(CELL, clients=2)
    doubt = found(make_study(cell=cell))["few_clients"]
    assert doubt == FewClients(cpus=4, machine="kvm", cells=("simple-update-s10-c2",))
    observe(request.node.nodeid, "few_clients", say_doubt(doubt))
    assert not found(make_study(cell=cell, host={"host.virtual": ""}))


def test_few_clients_are_no_doubt_where_a_transaction_works_for_long():
    """Waking a CPU shows in microseconds, not in analytic queries."""
    cell = replace(CELL, clients=1)
    runs = [replace(make_run(server_cpu_per_tx=seconds), cell=cell.identity) for seconds in (0.2, 0.4, 0.3)]
    assert "few_clients" not in found(make_study(cell=cell, runs=runs))
    runs = [replace(make_run(server_cpu_per_tx=seconds), cell=cell.identity) for seconds in (0.02, 0.04, 0.03)]
    assert "few_clients" in found(make_study(cell=cell, runs=runs))


def test_a_clock_that_takes_a_system_call_is_reported(request):
    doubt = found(make_study(host={"host.clocksource": "acpi_pm"}))["clock_source"]
    observe(request.node.nodeid, "clock_source", say_doubt(doubt))
    assert not found(make_study(host={"host.clocksource": "kvm-clock"}))


def test_transparent_huge_pages_that_are_always_on_are_reported(request):
    doubt = found(make_study(host={"host.thp": "always"}))["thp_always"]
    observe(request.node.nodeid, "thp_always", say_doubt(doubt))


def test_a_governor_that_saves_energy_is_reported(request):
    doubt = found(make_study(host={"host.governor": "powersave"}))["cpu_governor"]
    observe(request.node.nodeid, "cpu_governor", say_doubt(doubt))
    assert not found(make_study(host={"host.governor": "performance"}))


def test_what_every_environment_sets_itself_is_no_doubt_about_the_host():
    host = {"host.thp": "always", "host.governor": "powersave"}
    assert not found(make_study(host=host, layers={"thp": "never", "cpu.governor": "performance"}))
    assert found(make_study(host=host, layers={"pages": "2MB"})).keys() == {"thp_always", "cpu_governor"}


def test_huge_pages_that_were_not_there_are_reported(request):
    study = make_study(settings={"huge_pages": "try"}, facts={"settings.huge_pages_status": "off"})
    observe(request.node.nodeid, "huge_pages_fallback", say_doubt(found(study)["huge_pages_fallback"]))


@pytest.mark.parametrize(("asked", "status", "told"), [("try", None, True), ("try", "on", False), ("on", "on", False),
                                                       ("on", None, False), ("off", "off", False), ("on", "unknown", True)])  # fmt: skip
def test_huge_pages_are_believed_where_the_server_says_so(asked, status, told):
    facts = {} if status is None else {"settings.huge_pages_status": status}
    assert ("huge_pages_fallback" in found(make_study(settings={"huge_pages": asked}, facts=facts))) is told


def test_a_cell_that_writes_carries_the_label_of_its_checkpoints():
    assert found(make_study(runs=[make_run(checkpoints=0.0), make_run(2, checkpoints=0.0)])).keys() == {
        "checkpoint_free"
    }
    assert found(make_study(runs=[make_run(checkpoints=2.0), make_run(2, checkpoints=1.0)])).keys() == {"cut_cycles"}
    assert not found(make_study(runs=[make_run(checkpoints=0.0, wal_per_tx=20.0)]))
    assert not found(make_study(runs=[make_run(checkpoints=0.0, validity=Validity.INVALID)]))


def test_a_percentile_without_enough_samples_is_told_where_it_is_the_question():
    few = found(make_study(metric="latency_p99", runs=[make_run(latency_p99=None)]))["few_samples"]
    assert few == NamedDoubt(code="few_samples", names=(CELL.identity,), of="latency_p99")
    assert not found(make_study(metric="tps", runs=[make_run(latency_p99=None)]))
    assert not found(make_study(metric="latency_p99"))


def with_servers(*servers):
    study = make_study()
    experiment = study.plan.experiment
    (first,) = experiment.environments
    environments = tuple(
        replace(first, name=f"e{place}", server=ServerSpec(kind=kind, value=value))
        for place, (kind, value) in enumerate(servers)
    )
    return replace(study, plan=replace(study.plan, experiment=replace(experiment, environments=environments)))


def test_running_servers_are_these_instances_because_nobody_restarts_them():
    dsn, catalogue = ServerKind.DSN, ServerKind.CATALOGUE
    doubt = found(with_servers((dsn, "staging"), (dsn, "candidate")))["these_instances"]
    assert doubt.names == ("dsn:staging", "dsn:candidate")
    assert found(with_servers((catalogue, "18"), (dsn, "candidate")))["these_instances"].names == ("dsn:candidate",)


def test_environments_of_one_running_server_share_its_start():
    assert "these_instances" not in found(with_servers((ServerKind.DSN, "staging"), (ServerKind.DSN, "staging")))


def test_servers_that_are_restarted_before_each_run_are_not_only_these_instances():
    study = with_servers((ServerKind.DSN, "staging"), (ServerKind.DSN, "candidate"))
    experiment = study.plan.experiment
    restarted = tuple(
        replace(each, server=replace(each.server, restart=("restart", each.name))) for each in experiment.environments
    )
    plan = replace(study.plan, experiment=replace(experiment, environments=restarted))
    assert "these_instances" not in found(replace(study, plan=plan))


def test_several_machines_are_these_machines_and_no_others():
    study = make_study()
    experiment = study.plan.experiment
    (here,) = experiment.environments
    there = replace(here, name="b", host=HostSpec(kind=HostKind.SSH, destination="db1"))
    two = replace(study, plan=replace(study.plan, experiment=replace(experiment, environments=(here, there))))
    assert found(two)["these_machines"].names == ("local", "ssh:db1")
    alone = replace(study, plan=replace(study.plan, experiment=replace(experiment, environments=(there,))))
    assert "these_machines" not in found(alone)

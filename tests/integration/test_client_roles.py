"""Clients apart from their server and beside it: two machines of network namespaces, real servers, real loads."""

import json

import pytest

import sshd
from fake_clock import RecordingEvents
from far_place import far_machines, far_study
from pgstrata.app.answer import load_answer
from pgstrata.collectors.procfs.snapshot import split_captures
from pgstrata.drivers.pgbench.parse import parse_summary
from pgstrata.ports.clients import parse_delays
from pgstrata.report.json.answer import answer_json
from pgstrata.store.repository import StudyFolder
from rendering import render_text

pytestmark = [
    pytest.mark.server,
    pytest.mark.root,
    pytest.mark.company,
    pytest.mark.skipif(bool(sshd.why_not()), reason=sshd.why_not()),
]

BOTH = "client-far2-far3"
CELL = "select-only-s1-c2"
TEXT = """
blocks = 1
[factors]
client = ["same", "ssh:far2", "ssh:far2, ssh:far3"]
[common]
host = "ssh:far1"
settings.shared_buffers = "32MB"
[[cells]]
workload = "select-only"
scale = 1
clients = 2
run = "1s"
warmup = "0s"
"""


@pytest.fixture(scope="module")
def place():
    """One machine for the server and two for clients, each with folders of its own."""
    with far_machines(3) as found:
        yield found


@pytest.fixture(scope="module")
def folder(place):
    return place[0]


@pytest.fixture(scope="module")
def made(place):
    """The study, its outcome and what was said."""
    folder, machines = place
    with far_study(folder, machines[0], TEXT, RecordingEvents()) as study:
        yield study


def header(study, environment):
    return json.loads((study / f"evidence/b01/{environment}/{CELL}/run.json").read_text())


def evidence(study, environment):
    return {path.name for path in (study / f"evidence/b01/{environment}/{CELL}").iterdir()}


def test_the_same_server_is_loaded_from_beside_it_and_from_another_machine(made):
    study, outcome, _ = made
    assert outcome.done == outcome.total == 3
    beside, apart = header(study, "client-same"), header(study, "client-far2")
    assert not beside["failure"]
    assert not apart["failure"]
    assert (beside["apart"], apart["apart"]) == (False, True)
    assert (beside["facts"]["client.host"], apart["facts"]["client.host"]) == ("ssh:far1", "ssh:far2")
    assert beside["facts"]["connection.kind"] == apart["facts"]["connection.kind"] == "tcp"
    assert "network.clock_offset" in apart["facts"]
    assert "network.clock_offset" not in beside["facts"]
    assert beside["client_cpu"] > 0
    assert apart["client_cpu"] > 0


def test_what_is_seen_of_clients_is_seen_on_their_machine(made):
    study, _, _ = made
    assert {"client.procfs.before", "client.host.kernel.txt"} <= evidence(study, "client-far2")
    assert not {"client.procfs.before", "client.host.kernel.txt"} & evidence(study, "client-same")
    assert header(study, "client-far2")["client_door_pids"]
    assert {"pgbench.out", "pgbench.err", "sessions.samples.gz"} <= evidence(study, "client-same")


def test_nothing_of_the_clients_is_left_on_their_machine(made, folder):
    assert not [path for path in (folder / "there2" / "run").iterdir() if path.name != "ssh"]
    assert not list((folder / "there2" / "data").glob("datasets/*"))


def test_one_load_comes_from_two_machines_that_begin_together(made):
    study, _, _ = made
    run = header(study, BOTH)
    assert not run["failure"]
    assert [reason["code"] for reason in run["remarks"]] == []
    (further,) = run["further_clients"]
    assert 0 < further["cpu"] < run["client_cpu"]
    assert further["transport_pids"]
    kept = study / f"evidence/b01/{BOTH}/{CELL}"
    each = [parse_summary((kept / name).read_text()) for name in ("pgbench.out", "pgbench.1.out")]
    record = next(run for run in StudyFolder(study).load().runs if run.environment == BOTH)
    assert all(one.transactions for one in each)
    assert record.value("transactions") == sum(one.transactions for one in each)
    assert all(delay < 0.5 for delay in parse_delays((kept / "generators.txt").read_bytes()))


def test_both_machines_of_a_load_are_seen(made):
    study, _, _ = made
    assert {"client.2.host.kernel.txt", "client.host.kernel.txt"} <= evidence(study, BOTH)
    captured = (study / f"evidence/b01/{BOTH}/{CELL}/client.procfs.before").read_bytes()
    assert len(split_captures(captured)) == 2


def test_the_answer_says_where_clients_were(made):
    study, _, _ = made
    answer = load_answer(StudyFolder(study))
    document = json.loads(answer_json(answer))["rig"]["environments"]
    assert {name: each["client"] for name, each in document.items()} == {
        "client-same": "ssh:far1",
        "client-far2": "ssh:far2",
        BOTH: "ssh:far2, ssh:far3",
    }
    assert "ssh:far2" in render_text(answer)

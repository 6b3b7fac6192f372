"""A server on another machine and the client here: real servers behind a real sshd, in a network of their own.

One short study is made by all that is real, with the cable pulled before servers are sent, in the preflight and in the
middle; the tests look at what it left.
"""

import json
import os
from pathlib import Path

import pytest

import sshd
from fake_clock import RecordingEvents
from far_place import far_study
from pgstrata.app import site
from pgstrata.app.answer import load_answer
from pgstrata.app.wiring import make_derive, reparse
from pgstrata.conduct import losses
from pgstrata.hosts.ssh_link import Patience
from pgstrata.ports.events import EventKind
from pgstrata.report.json.answer import answer_json
from pgstrata.store.load import load_study
from pgstrata.store.repository import StudyFolder
from pgstrata.store.study import load_plan_file
from rendering import render_text
from working_folder import working_folder

pytestmark = [
    pytest.mark.server,
    pytest.mark.root,
    pytest.mark.company,
    pytest.mark.skipif(bool(sshd.why_not()), reason=sshd.why_not()),
]

HASTY = Patience(connect=5, alive=1, tries=2, pulse=0.3, silence=1.5)
SENT = "server embedded on ssh:far1"
TRIED, LOST = (f"b0{block}/far1/select-only-s1-c2" for block in (1, 2))
TEXT = """
blocks = 2
[factors]
host = ["local", "ssh:far1"]
[common]
settings.shared_buffers = "64MB"
[[cells]]
workload = "select-only"
scale = 1
clients = 2
run = "1s"
warmup = "0s"
"""


class Pulling(RecordingEvents):
    """Pulls the cable when those steps of those runs come for the first time, and mends it when that is noticed."""

    def __init__(self, far):
        super().__init__()
        self.far = far
        self.to_come = [("", SENT), (TRIED, "ceiling"), (LOST, "measure")]
        self.cut = False

    def emit(self, event):
        super().emit(event)
        if event.kind is EventKind.STEP and (event.run, event.text) in self.to_come:
            self.to_come.remove((event.run, event.text))
            self.cut = True
            self.far.cut()
        if event.kind is EventKind.WARNING and "again in" in event.text and self.cut:
            self.cut = False
            self.far.mend()


@pytest.fixture(scope="module")
def folder():
    with working_folder("pgstrata-far-") as made:
        yield made


@pytest.fixture(scope="module")
def far(folder):
    """A machine that keeps its things apart from this one's."""
    there = folder / "there"
    there.mkdir()
    with sshd.far_hosts(folder / "net", 1, [sshd.own_folders(there)]) as (found,):
        yield found


@pytest.fixture(scope="module")
def made(folder, far):
    """The study, its outcome and what was said."""
    patches = ((site, "PATIENCE", HASTY), (losses, "PAUSES", (1.0,) * 15))
    with far_study(folder, far, TEXT, Pulling(far), patches) as study:
        yield study


def facts_of(study, environment):
    return json.loads((study / f"evidence/b01/{environment}/select-only-s1-c2/run.json").read_text())


def test_every_run_is_there_although_the_cable_was_pulled(made):
    study, outcome, events = made
    assert outcome.done == outcome.total == 4
    assert not events.to_come
    warnings = [event.text for event in events.of_kind(EventKind.WARNING)]
    assert any(f"broke in {LOST.rpartition('/')[0]}" in text for text in warnings), warnings
    assert any("broke in the preflight of far1" in text for text in warnings), warnings
    assert any("ssh:far1 broke in sending servers there" in text for text in warnings), warnings
    assert sum("is connected again" in text for text in warnings) == 3
    runs = [json.loads(path.read_text()) for path in study.glob("evidence/b*/*/*/run.json")]
    assert not [run["failure"] for run in runs if run["failure"]]


def test_the_server_was_there_and_the_client_here(made, far):
    study, _, _ = made
    here, there = (facts_of(study, name) for name in ("local", "far1"))
    assert (here["apart"], there["apart"]) == (False, True)
    assert there["facts"]["connection.kind"] == here["facts"]["connection.kind"] == "tcp"
    assert there["client_door_pids"] == [os.getpid()]
    assert there["facts"]["client.kernel"] == there["facts"]["host.kernel"]
    assert float(there["facts"]["network.round_trip"]) < 1
    assert "network.round_trip" not in here["facts"]
    evidence = {path.name for path in (study / "evidence/b01/far1/select-only-s1-c2").iterdir()}
    assert {"client.procfs.before", "client.procfs.after", "procfs.before"} <= evidence
    assert {"host.kernel.txt", "client.host.kernel.txt"} <= evidence
    assert "client.procfs.before" not in {
        path.name for path in (study / "evidence/b01/local/select-only-s1-c2").iterdir()
    }


def test_the_client_is_no_stranger_where_both_hosts_are_one_machine(made):
    study, outcome, events = made
    assert (facts_of(study, "local")["shared"], facts_of(study, "far1")["shared"]) == ("", "processes")
    assert any("ssh:far1 is the client's own machine" in event.text for event in events.of_kind(EventKind.NOTE))
    reparse(StudyFolder(study))
    run = next(run for run in load_study(study).runs if run.identity == "b01/far1/select-only-s1-c2")
    evidence = {path.name: path.read_bytes() for path in (study / "evidence" / run.identity).iterdir()}
    strangers = make_derive(load_plan_file(study).plan.experiment)(
        {**evidence, "run.json": evidence["run.json"].replace(b'"processes"', b'""')}
    )
    assert run.value("client_cpu") > 0
    assert run.value("foreign_cpu") < strangers.value("foreign_cpu") - run.value("client_cpu") / 2
    assert run.value("client_foreign_cpu") is None
    assert strangers.value("client_foreign_cpu") is not None


def test_settings_that_nobody_gave_follow_from_the_memory_of_both(made):
    study, _, _ = made
    notes = load_plan_file(study).plan.experiment.notes
    assert any(note.startswith("effective_cache_size") and "the least of those with servers" in note for note in notes)


def test_nothing_is_left_over_there(made, folder):
    there = folder / "there"
    assert not list((there / "data" / "clones").glob("*/*"))
    assert not [path for path in (there / "run").iterdir() if path.name != "ssh"]
    assert not list((there / "state" / "ledger").glob("*.json"))
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            assert f"{there}/data".encode() not in words, words


def test_only_the_client_may_come_in_and_its_password_is_nowhere_in_the_study(made, folder):
    study, _, _ = made
    (password,) = (folder / "there" / "data" / "datasets").glob("*/data/pgstrata.password")
    secret = password.read_bytes().strip()
    assert len(secret) == 32
    for path in study.rglob("*"):
        assert not path.is_file() or secret not in path.read_bytes(), path
    assert b"0.0.0.0/0" not in (password.parent / "pg_hba.conf").read_bytes()


def test_the_answer_is_about_these_machines(made):
    study, _, _ = made
    answer = load_answer(StudyFolder(study))
    assert "these_machines" in {warning.code for warning in answer.warnings}
    document = json.loads(answer_json(answer))
    assert document["rig"]["environments"]["far1"]["host"] == "ssh:far1"
    assert "network.round_trip" in document["rig"]["environments"]["far1"]["network"]
    assert document["rig"]["environments"]["local"]["network"] == {}
    assert "ssh:far1: network" in render_text(answer)

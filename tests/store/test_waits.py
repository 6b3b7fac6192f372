from dataclasses import replace

from pgstrata.model.activity import SessionCount, SessionState, WaitProfile
from pgstrata.store import catalogue
from pgstrata.store.database import transaction


def test_waits_are_read_back_as_they_were(tmp_path, bench):
    wait = SessionCount(state=SessionState.WAITING, wait_type="IO", event="WalSync", query="", samples=70)
    run = SessionCount(state=SessionState.RUNNING, wait_type="", event="", query="", samples=7)
    profiles = WaitProfile(hertz=99.5, counts=(wait, run)), WaitProfile(hertz=20.0, counts=()), None
    runs = [run for block in bench.plan(3).blocks for run in block.runs]
    path = tmp_path / catalogue.CATALOGUE
    catalogue.create_catalogue(path)
    connection = catalogue.open_for_writing(path)
    with transaction(connection):
        for planned, waits in zip(runs, profiles, strict=False):
            record = bench.record(bench.header(planned, bench.plan(3)), 1000.0)
            catalogue.save_run(connection, replace(record, waits=waits))
    found = catalogue.load_runs(connection, metrics=(), series=False, sessions=True)
    assert tuple(record.waits for record in found) == profiles
    without = catalogue.load_runs(connection, metrics=(), series=False, sessions=False)
    assert {record.waits for record in without} == {None}

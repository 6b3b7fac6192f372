from __future__ import annotations

import dataclasses
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pgstrata.errors import StudyError
from pgstrata.model.experiment import ServerSpec
from pgstrata.model.floor import Floor
from pgstrata.model.objective import QUANTILES, Objective, Search
from pgstrata.model.plan import Plan
from pgstrata.model.reasons import Reason
from pgstrata.ports.store import RunHeader
from pgstrata.ports.studies import StudyHead
from pgstrata.store.serialise import (
    parse_fingerprint,
    parse_header,
    parse_plan_file,
    render_header,
    render_plan_file,
)

st.register_type_strategy(ServerSpec, st.builds(ServerSpec, conninfo=st.none()))
st.register_type_strategy(
    Objective, st.builds(Objective, of=st.sampled_from(sorted(QUANTILES)), limit=st.floats(1e-6, 3600))
)
st.register_type_strategy(
    Search,
    st.builds(
        Search,
        objective=st.from_type(Objective),
        seconds=st.floats(0, 3600),
        rates=st.lists(st.floats(0, 1e9)).map(tuple),
    ),
)
st.register_type_strategy(float, st.floats(allow_nan=False))

_SLOW_TO_DRAW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]


@settings(max_examples=15, deadline=None, suppress_health_check=_SLOW_TO_DRAW)
@given(plan=st.from_type(Plan))
def test_a_plan_comes_back_as_it_was(plan):
    file = StudyHead(plan=plan, created="now", version="1")
    assert parse_plan_file(render_plan_file(file), where="here") == file


@settings(max_examples=50, deadline=None, suppress_health_check=_SLOW_TO_DRAW)
@given(header=st.from_type(RunHeader))
def test_a_header_comes_back_as_it_was(header):
    assert parse_header(render_header(header)) == header


def test_the_words_of_a_former_version_are_read_as_such(bench):
    header = json.loads(render_header(bench.header(bench.plan().runs[0], bench.plan())))
    header["remarks"] = [{"code": "clock_jump", "text": "the wall clock jumped by +2.1 s"}]
    (remark,) = parse_header(json.dumps(header).encode()).remarks
    assert remark == Reason(code="clock_jump", text="the wall clock jumped by +2.1 s")


@pytest.mark.parametrize(
    ("kept", "read"),
    [("", None), (None, None), ("the server died: x", Reason(code="", text="the server died: x"))],
)
def test_the_failure_of_a_run_of_a_former_version_is_read(bench, kept, read):
    header = json.loads(render_header(bench.header(bench.plan().runs[0], bench.plan()))) | {"failure": kept}
    assert parse_header(json.dumps(header).encode()).failure == read


@pytest.mark.parametrize(("kept", "read"), [("", None), ("it is old", Reason(code="", text="it is old"))])
def test_the_doubt_of_a_floor_of_a_former_version_is_read(bench, kept, read):
    floor = Floor(s0=0.01, differences=12, cell="c", metric="tps", design="d", host="h", measured="now")
    file = StudyHead(plan=dataclasses.replace(bench.plan(), floors={"c": floor}), created="now", version="1")
    data = json.loads(render_plan_file(file))
    data["plan"]["floors"]["c"]["doubt"] = kept
    assert parse_plan_file(json.dumps(data).encode(), where="here").plan.floors["c"].doubt == read


@pytest.mark.parametrize("remark", [{}, {"code": "steal", "said": 1}, {"code": "steal", "on": 1}, []])
def test_a_remark_of_unknown_shape_is_a_study_error(bench, remark):
    header = json.loads(render_header(bench.header(bench.plan().runs[0], bench.plan()))) | {"remarks": [remark]}
    with pytest.raises(StudyError):
        parse_header(json.dumps(header).encode())


def test_a_secret_is_dropped_and_everything_else_is_kept(bench):
    file = StudyHead(plan=bench.plan(), created="now", version="1")
    content = render_plan_file(file)
    assert bench.canary.encode() not in content
    environments = tuple(
        dataclasses.replace(item, server=dataclasses.replace(item.server, conninfo=None))
        for item in file.plan.experiment.environments
    )
    experiment = dataclasses.replace(file.plan.experiment, environments=environments)
    expected = dataclasses.replace(file, plan=dataclasses.replace(file.plan, experiment=experiment))
    assert parse_plan_file(content, where="here") == expected


def test_a_secret_in_a_file_is_refused(bench):
    data = json.loads(render_plan_file(StudyHead(plan=bench.plan(), created="now", version="1")))
    data["plan"]["experiment"]["environments"][0]["server"]["conninfo"] = "password=x"
    with pytest.raises(StudyError, match="secret"):
        parse_plan_file(json.dumps(data).encode(), where="here")


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"format": 2}', b'{"format": 2, "plan": 3}', b"\xff"])
def test_a_damaged_plan_is_a_study_error(content):
    with pytest.raises(StudyError, match="damaged"):
        parse_plan_file(content, where="here")


def test_another_format_of_the_study_is_named():
    with pytest.raises(StudyError, match="format 7"):
        parse_plan_file(b'{"format": 7}', where="here")


def test_unknown_keys_are_errors_because_they_could_mean_something(bench):
    data = json.loads(render_plan_file(StudyHead(plan=bench.plan(), created="now", version="1")))
    data["plan"]["experiment"]["novelty"] = 1
    with pytest.raises(StudyError, match="novelty"):
        parse_plan_file(json.dumps(data).encode(), where="here")


def test_a_damaged_header_is_a_study_error():
    with pytest.raises(StudyError, match="damaged"):
        parse_header(b'{"identity": 3}')


def test_a_damaged_fingerprint_is_a_study_error():
    with pytest.raises(StudyError, match="damaged"):
        parse_fingerprint(b'{"kernel": 3}', where="here")

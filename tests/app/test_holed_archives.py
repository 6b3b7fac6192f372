"""Whatever an archive lacks, each command answers in every form, or refuses with a remedy."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archives import BLOCKER, START, Second, behind, make_archive, session, use
from pgstrata.app.correlate import load_associations
from pgstrata.app.explain import load_explanation, load_periods, load_profile
from pgstrata.app.incidents import load_incidents
from pgstrata.app.waiting import load_waits
from pgstrata.report.live.correlate import associations_json, make_associations_document
from pgstrata.report.live.document import make_explanation
from pgstrata.report.live.incidents import make_incidents
from pgstrata.report.live.incidents_json import incidents_json
from pgstrata.report.live.json import explanation_json
from pgstrata.report.live.periods import make_periods_document, periods_json
from pgstrata.report.live.profile import make_profile_document, profile_json
from pgstrata.report.live.waiting import make_waits_document, waits_json
from rendering import attempt, plain_charts, show_everywhere

SECONDS = 1500
CPU, WAL, LOCK = session("select"), session("update", "LWLock/WALWrite"), session("update", "Lock/transactionid")
HOLES = {
    "nobody looks": lambda second: replace(second, sessions=None, host={}),
    "nobody is there": lambda second: replace(second, sessions={}),
    "nothing ends": lambda second: replace(second, commits=0.0),
    "nobody knows what ends": lambda second: replace(second, commits=math.nan),
    "slow": lambda second: replace(second, commits=0.2 * second.commits),
    "locks": lambda second: replace(
        second, sessions={LOCK: 9, BLOCKER: 1}, blocked=behind(LOCK, sessions=9), commits=0.0
    ),
    "one session": lambda second: replace(second, sessions={BLOCKER: 1}),
    "no host": lambda second: replace(second, host={}),
}
TIMES = st.integers(0, SECONDS // 60).map(lambda minute: 60 * minute)


def usual(number):
    """A second of which everything is known."""
    return Second(
        sessions={CPU: 3 + number % 3, WAL: number // 7 % 3},
        commits=900.0 + 37 * number % 101,
        host={"disk_await": 0.001 + 0.004 * (number // 30 % 2), "disk_iops": 7.0},
    )


def ask(load, make, render, *asked):
    """In every form, or refused with a remedy."""
    found = attempt(lambda: load(*asked))
    if found is not None:
        show_everywhere(make(found, "0.1.0"))
        assert json.loads(render(found))


def ask_everything(archive, first, last):
    begin, end = f"@{START + min(first, last)}", f"@{START + max(first, last) + 30}"
    against = f"@{START}..@{START + 120}"
    for window in ((begin, end), (None, None)):
        ask(load_profile, make_profile_document, profile_json, archive, *window)
        ask(load_explanation, make_explanation, explanation_json, archive, *window, None)
        ask(load_explanation, make_explanation, explanation_json, archive, *window, against)
        ask(load_periods, make_periods_document, periods_json, archive, *window, against)
        ask(load_associations, make_associations_document, associations_json, archive, *window)
        ask(load_waits, make_waits_document, waits_json, archive, *window, "LWLock", 1)
    ask(lambda *window: load_incidents(archive, *window, rate=1 / 3600), make_incidents, incidents_json, None, None)


@pytest.fixture(scope="module", autouse=True)
def no_drawing():
    with plain_charts():
        yield


@settings(max_examples=6)
@given(
    st.lists(st.tuples(st.sampled_from(sorted(HOLES)), TIMES, st.sampled_from([1, 20, 90, 400])), max_size=4),
    TIMES, TIMES, st.booleans(), st.sampled_from([SECONDS, 40, 1]),
)  # fmt: skip
def test_any_archive_with_holes_is_shown_in_every_form(holes, first, last, counted, seconds):
    def tell(number):
        second = usual(number)
        for name, begin, length in holes:
            if begin <= number < begin + length:
                second = HOLES[name](second)
        return second

    with TemporaryDirectory() as folder:
        uses = (lambda _: {"update": use(5, 0.5)}) if counted else None
        archive = make_archive(Path(folder, "archive"), seconds, tell, uses=uses)
        ask_everything(archive, first, last)

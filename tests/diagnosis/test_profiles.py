"""Accounts of samples that the server took by itself."""

from dataclasses import replace

import numpy as np
import pytest

from pgstrata.diagnosis.account import Seen
from pgstrata.diagnosis.attribution import attribute, average
from pgstrata.diagnosis.counting import TOGETHER
from pgstrata.diagnosis.profiles import use_profiles
from pgstrata.model.activity import SessionCount, SessionState, WaitProfile
from pgstrata.model.attribution import Origin, Part, SampleSource

CLASSES = {
    (SessionState.CLIENT, "", ""): {"": 0.3},
    (SessionState.RUNNING, "", ""): {"UPDATE t": 0.2, "END": 0.05},
    (SessionState.WAITING, "IO", "WalSync"): {"END": 0.3, "UPDATE t": 0.1},
    (SessionState.WAITING, "LWLock", "WALWrite"): {"END": 0.05},
}


def counts(samples):
    return tuple(
        SessionCount(state=state, wait_type=kind, event=event, query=query, samples=int(number))
        for (state, kind, event, query), number in samples.items()
        if number
    )


def draw(rng, shift=0.0, few=100, many=1000, *, profile=True):
    """A window with `few` samples that tell statements, and `many` that do not."""
    shares = {(*place, query): share for place, among in CLASSES.items() for query, share in among.items()}
    shares[SessionState.WAITING, "IO", "WalSync", "END"] += shift
    values = np.array(list(shares.values()))
    drawn = dict(zip(shares, rng.multinomial(few, values / values.sum()), strict=True))
    events = {}
    for (*place, _), share in shares.items():
        events[*place, ""] = events.get((*place, ""), 0) + share
    by_event = np.array(list(events.values()))
    taken = dict(zip(events, rng.multinomial(many, by_event / by_event.sum()), strict=True))
    return Seen(
        seconds=1e-3 * float(values.sum()),
        sessions=counts(drawn),
        cpu=0.25e-3,
        queue=0.0,
        profile=WaitProfile(hertz=100.0, counts=counts(taken)) if profile else None,
    )


def sides(rng, blocks=5, **rest):
    return [draw(rng, shift=0.2, **rest) for _ in range(blocks)], [draw(rng, **rest) for _ in range(blocks)]


def test_samples_of_a_profile_sleep_as_often_as_those_that_tell():
    sessions = counts(
        {
            (SessionState.RUNNING, "", "", "SELECT"): 60,
            (SessionState.ASLEEP, "", "", "END"): 40,
            (SessionState.CLIENT, "", "", ""): 100,
        }
    )
    profile = counts({(SessionState.RUNNING, "", "", ""): 1000, (SessionState.CLIENT, "", "", ""): 1000})
    seen = Seen(seconds=1e-3, sessions=sessions, profile=WaitProfile(hertz=100.0, counts=profile))
    ((made,), _), _ = use_profiles([[seen], [seen]])
    found = {(count.state, count.query): count.samples for count in made.sessions}
    assert found == {
        (SessionState.CLIENT, ""): 1000,
        (SessionState.RUNNING, "SELECT"): 600,
        (SessionState.ASLEEP, "END"): 400,
    }


def split(made):
    return attribute(*made, environment="new", reference_name="old", cell="c")


def find(found, event, query=None):
    rows = found.parts if query is None else found.rows
    return next(row for row in rows if (row.event, row.query) == (event, query or ""))


def half(row):
    return (row.interval.high - row.interval.low) / 2


def test_profiles_are_used_where_all_windows_have_one_and_else_none_of_them():
    rng = np.random.default_rng(1)
    value, reference = sides(rng)
    found = split((value, reference))
    assert found.origin == Origin(source=SampleSource.PROFILE, hertz=100.0, statement_samples=1000)
    assert found.samples == 10_000
    reference[2] = draw(rng, profile=False)
    fallen_back = split((value, reference))
    assert fallen_back.origin == Origin()
    assert fallen_back.samples == 1000
    assert average((value, reference))[1][0].origin == Origin()


def test_samples_of_an_event_are_those_of_the_profile_and_its_statements_those_that_were_seen():
    rng = np.random.default_rng(2)
    windows = [draw(rng) for _ in range(4)]
    (used,), _ = use_profiles((windows,))
    for before, after in zip(windows, used, strict=True):
        assert after.samples == 1000
        assert after.told == 100
        for wanted in before.profile.counts:
            same = [item for item in after.sessions if (item.state, item.event) == (wanted.state, wanted.event)]
            assert sum(item.samples for item in same) == wanted.samples


def test_an_event_that_a_window_did_not_see_has_the_statements_of_other_windows():
    def window(saw, samples, event="WalSync"):
        wait = SessionCount(state=SessionState.WAITING, wait_type="IO", event=event, query="", samples=samples)
        sessions = {(SessionState.WAITING, "IO", "WalSync", query): number for query, number in saw.items()}
        return Seen(
            seconds=1e-3,
            profile=WaitProfile(hertz=100.0, counts=(wait,)),
            sessions=counts({(SessionState.CLIENT, "", "", ""): 9, **sessions}),
        )

    often = {"END": 10, "INSERT": 5, "seldom": 1}
    one = [window(often, 160), window({"END": 1}, 8), window({}, 30)]
    other = [window({}, 3), window({}, 7, event="DataFileRead")]
    sides, _ = use_profiles((one, other))
    found = [{item.query: item.samples for item in seen.sessions} for side in sides for seen in side]
    assert found[0] == {"END": 100, "INSERT": 50, TOGETHER: 10}
    assert found[1] == {"END": 8}
    assert found[2] == {"END": 19, "INSERT": 9, TOGETHER: 2}
    assert found[3] == {"END": 2, "INSERT": 1}
    assert found[4] == {"": 7}


def test_intervals_of_events_are_narrower_and_those_of_statements_no_narrower_than_was_seen():
    few, many, rows = [], [], []
    for seed in range(20):
        made = sides(np.random.default_rng(seed))
        plain = split(sides(np.random.default_rng(seed), profile=False))
        both = split(made)
        few.append(half(find(plain, "LWLock/WALWrite")))
        many.append(half(find(both, "LWLock/WALWrite")))
        rows.append(half(find(both, "IO/WalSync", "UPDATE t")) / half(find(both, "LWLock/WALWrite")))
    assert np.mean(many) < 0.6 * np.mean(few)
    assert np.mean(rows) > 2


@pytest.mark.parametrize(("event", "query"), [("IO/WalSync", None), ("IO/WalSync", "END"), ("LWLock/WALWrite", None)])
def test_intervals_hold_what_is_true(event, query):
    true = {("IO/WalSync", None): 0.2e-3, ("IO/WalSync", "END"): 0.2e-3, ("LWLock/WALWrite", None): 0.0}[event, query]
    held = 0
    for seed in range(200):
        row = find(split(sides(np.random.default_rng(seed))), event, query)
        held += row.interval.low <= true <= row.interval.high
    assert held >= 184


def test_the_first_cause_is_found():
    found = split(sides(np.random.default_rng(3)))
    first = found.causes[0]
    assert (first.part, first.event, first.query) == (Part.WAIT, "IO/WalSync", "END")
    assert sum(row.difference for row in found.rows) == pytest.approx(found.total.difference)


def test_statements_that_were_seldom_seen_are_not_given_to_the_frequent_one():
    def seen(name):
        seldom = {(SessionState.RUNNING, "", "", f"{name} {number}"): 4 for number in range(50)}
        told = {**seldom, (SessionState.RUNNING, "", "", "UPDATE"): 50, (SessionState.CLIENT, "", "", ""): 100}
        profile = counts({(SessionState.RUNNING, "", "", ""): 2500, (SessionState.CLIENT, "", "", ""): 1000})
        return Seen(
            seconds=1e-3, sessions=counts(told), cpu=0.5e-3, queue=0.0, profile=WaitProfile(hertz=100.0, counts=profile)
        )

    found = split(([seen("a"), seen("b")], [seen("c"), seen("d")]))
    shares = {row.query: row.value for row in found.rows if row.part is Part.CPU}
    assert set(shares) == {"", "UPDATE"}
    assert shares["UPDATE"] == pytest.approx(0.2 * sum(shares.values()))


def test_a_profile_without_a_sample_is_not_used():
    ours, theirs = sides(np.random.default_rng(1), blocks=2)
    silent = replace(ours[0], profile=WaitProfile(hertz=100.0, counts=()))
    together, origin = use_profiles([[silent, *ours[1:]], theirs])
    assert origin == Origin()
    assert together[0][0] is silent

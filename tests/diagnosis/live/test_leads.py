"""What server and host did before the load rose, and what after it."""

from dataclasses import replace

import numpy as np
import pytest

from archives import session
from pgstrata.diagnosis.live.explain import explain
from pgstrata.diagnosis.live.leads import AROUND, around_onset
from pgstrata.model.archive import ArchiveWindow, Span
from pgstrata.model.attribution import ValueInterval
from pgstrata.model.explanation import Onset

CPU = session("select")
BEGIN, LENGTH = 600, 900
"""When the load rises, and how long everything is."""


def recorded(*, lead=0, size=1.0, seed=5):
    """Seconds of a server whose host began to do something so long before the load rose, each with its scatter."""
    draws, seconds = np.random.default_rng(seed), np.arange(LENGTH)
    load = draws.poisson(np.where(seconds >= BEGIN, 8, 2))
    commits = np.where(seconds >= BEGIN, 50, 100) * draws.normal(1, 0.05, LENGTH)
    host = np.where(seconds >= BEGIN - lead, 1.0 + size, 1.0) * draws.normal(1, 0.15, LENGTH)
    return load, commits, host


def cut(series, span, cell=1):
    load, commits, host = (each[span.begin : span.end].reshape(-1, cell) for each in series)
    return ArchiveWindow(
        span=span, unit=1, cell=cell, looks=(cell,) * len(load), sessions={CPU: tuple(load.sum(axis=1).tolist())},
        rates={"commits": tuple(commits.mean(axis=1).tolist()), "host_user_cpu": tuple(host.mean(axis=1).tolist())},
    )  # fmt: skip


def leads(series, closer=None):
    windows = (Span(begin=BEGIN, end=LENGTH), Span(begin=0, end=BEGIN))
    value, reference = (cut(series, span) for span in windows)
    whole = cut(series, Span(begin=0, end=LENGTH), cell=3)
    return explain(value, reference, whole, closer or (lambda span: cut(series, even(span), cell=2))).leads


def even(span):
    return Span(begin=span.begin, end=span.end - (span.end - span.begin) % 2)


@pytest.mark.parametrize("lead", [40, 15, -20])
def test_what_began_before_or_after_the_load_is_told_with_an_interval(lead):
    (found,) = leads(recorded(lead=lead))
    assert found.name == "host_user_cpu"
    assert found.interval.low <= lead <= found.interval.high
    assert found.seconds == pytest.approx(lead, abs=6)
    assert (found.interval.low > 0, found.interval.high < 0) == (lead > 0, lead < 0)


def test_what_began_with_the_load_is_not_said_to_lead():
    found = [lead for seed in range(20) for lead in leads(recorded(seed=seed))]
    assert len(found) >= 15
    assert sum(not lead.interval.low <= 0 <= lead.interval.high for lead in found) <= 1


def test_what_did_not_change_leads_nothing():
    assert leads(recorded(size=0.0)) == ()


def test_a_figure_that_is_missing_or_drifts_leads_nothing():
    load, commits, host = recorded(lead=20)
    drifting = 1 + np.arange(LENGTH) / 300 + np.random.default_rng(6).normal(0, 0.02, LENGTH)
    assert leads((load, commits, host))
    assert leads((load, commits, np.full(LENGTH, np.nan))) == ()
    assert leads((load, commits, drifting)) == ()


def test_sums_of_minutes_are_too_coarse():
    series = recorded(lead=40)
    assert leads(series, lambda span: replace(cut(series, even(span), cell=2), unit=60)) == ()


def onset(begin, end=None):
    either = ValueInterval(low=begin - 1, high=begin + 1)
    ended = None if end is None else ValueInterval(low=end - 1, high=end + 1)
    return Onset(begin=begin, begin_interval=either, end=end, end_interval=ended)


def test_only_the_time_around_the_beginning_is_looked_at():
    whole = Span(begin=0, end=10_000)
    assert around_onset(onset(5000.4), whole) == Span(begin=5000 - AROUND, end=5001 + AROUND)
    assert around_onset(onset(5000.0, 5060.0), whole).end == 5059
    assert around_onset(onset(5000.0, 5020.0), whole) is None
    assert around_onset(onset(10.0), whole) is None

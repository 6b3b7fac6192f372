"""What every sampler makes of what it left: values, doubts or a refusal, whatever is there, and never anything else."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from damage import DAMAGES, damaged
from pgstrata.app.wiring import make_samplers
from pgstrata.errors import ParseError
from pgstrata.testing_samplers import SamplerParsing, check_sampled, parse_purely
from samplers import KNOWN

SAMPLERS = {sampler.name: sampler for sampler in make_samplers()}
TURNS = tuple((begin, begin + 0.25) for begin in (1795335834.8, 1795335835.6, 1795335836.9))


def parse_or_refuse(sampler, evidence, window):
    try:
        found = parse_purely(sampler, evidence, window)
    except ParseError:
        return None
    check_sampled(found)
    return found


def test_every_sampler_that_is_wired_is_looked_at():
    assert SAMPLERS.keys() == KNOWN.keys()


@pytest.mark.parametrize("name", KNOWN)
class TestEverySampler(SamplerParsing):
    @pytest.fixture
    def sampler(self, name):
        return SAMPLERS[name]

    @pytest.fixture
    def evidence(self, name):
        return KNOWN[name].evidence()

    @pytest.fixture
    def window(self, name):
        return KNOWN[name].window()


@pytest.mark.parametrize("name", KNOWN)
@given(which=st.integers(0, 2), damages=DAMAGES, in_turns=st.booleans())
def test_of_damaged_evidence_there_are_values_or_a_refusal(name, which, damages, in_turns):
    evidence, window = KNOWN[name].evidence(), KNOWN[name].window()
    hit = sorted(evidence)[which % len(evidence)]
    evidence[hit] = damaged(evidence[hit], damages)
    parse_or_refuse(SAMPLERS[name], evidence, replace(window, turns=TURNS) if in_turns else window)


@pytest.mark.parametrize("name", KNOWN)
@given(text=st.binary(max_size=200))
def test_of_any_bytes_there_are_values_or_a_refusal(name, text):
    parse_or_refuse(SAMPLERS[name], {f"{name}.samples": text}, KNOWN[name].window())


@pytest.mark.parametrize("name", KNOWN)
@pytest.mark.parametrize(
    "odd", [{"transactions": 0}, {"seconds": 0.0}, {"seconds": 1e-9}, {"postmaster_pid": None}, {"turns": TURNS[:1]}]
)
def test_odd_windows_break_nothing(name, odd):
    known = KNOWN[name]
    check_sampled(SAMPLERS[name].parse(known.evidence(), replace(known.window(), **odd)))


@pytest.mark.parametrize("name", ["sessions", "seconds"])
def test_samples_in_another_order_are_no_error(name):
    evidence = KNOWN[name].evidence()
    own = f"{name}.samples"
    head, *blocks = (
        evidence[own].split(b"\n@ ") if name == "seconds" else (b"", *evidence[own].splitlines(keepends=True))
    )
    joint = b"\n@ " if name == "seconds" else b""
    evidence[own] = head + joint + joint.join(reversed(blocks)) + b"\n"
    assert parse_or_refuse(SAMPLERS[name], evidence, KNOWN[name].window()) is not None


@pytest.mark.parametrize(("name", "most"), [(name, "samples_missing") for name in ("pgstat", "seconds", "sessions")])
def test_half_a_window_without_samples_is_told(name, most):
    evidence = KNOWN[name].evidence()
    own = f"{name}.samples"
    text = evidence[own]
    cut = text.index(b"\n@ ", len(text) // 2) + 1 if name == "seconds" else text.index(b"\n", len(text) // 2) + 1
    evidence[own] = text[:cut]
    found = SAMPLERS[name].parse(evidence, KNOWN[name].window())
    assert [remark.code for remark in found.remarks] == [most]


def test_what_refuses_says_what_it_refused():
    for name, sampler in SAMPLERS.items():
        with pytest.raises(ParseError) as caught:
            sampler.parse({f"{name}.samples": b"no such line\n"}, KNOWN[name].window())
        assert "no such line" in str(caught.value)

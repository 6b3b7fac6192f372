"""An examination of a host in a sentence, in tables, as JSON."""

import json
from dataclasses import replace

import pytest

from pgstrata.model.doctor import Examination, LayerFinding, Possible, Probe
from pgstrata.report.commands.doctor import doctor_json, render_text, say_verdict
from pgstrata.units import Unit

QUIET = Examination(
    host="local",
    user="anna",
    layers=(
        LayerFinding(layer="settings", key="settings.*", possible=Possible.YES),
        LayerFinding(layer="memory", key="pages=2MB", possible=Possible.NOT_FOR_USER, note="needs root [sudo]"),
        LayerFinding(layer="cpu", key="cpu.turbo", possible=Possible.NOT_ON_HOST, note="this machine " * 12),
    ),
    probes=(
        Probe(name="fsync", title="cost of fsync", text="200 µs", value=200e-6, unit=Unit.SECONDS),
        Probe(name="timing", title="cost of timing", failure="there is no server"),
    ),
)
NOISY = replace(
    QUIET, probes=(*QUIET.probes, Probe(name="swap", title="swap", text="1 GB", doubt="1 GB are swapped out"))
)


@pytest.mark.parametrize(
    ("examination", "end"),
    [
        (QUIET, "fit for measuring: yes."),
        (NOISY, "fit for measuring: with doubts, because 1 GB are swapped out."),
        (replace(NOISY, unfit=("no room", "no memory")), "fit for measuring: no, because no room; no memory."),
    ],
)
def test_the_verdict_comes_first_and_in_one_sentence(examination, end):
    sentence = f"On this host 1 of 3 factors can be compared as anna; {end}"
    assert say_verdict(examination) == sentence
    assert " ".join(render_text(examination).partition("\n\n")[0].split()) == sentence


def test_every_factor_and_every_probe_has_its_line():
    text = render_text(NOISY)
    assert "\nsettings.*  yes\n" in text
    assert "\npages=2MB   not for this user  needs root [sudo]\n" in text
    assert "\ncost of timing  not measured: there is no server\n" in text
    assert "\nswap            ! 1 GB\n" in text
    assert max(map(len, text.splitlines())) <= 100


def test_long_notes_go_on_below_themselves():
    lines = render_text(QUIET).splitlines()
    (place,) = [place for place, line in enumerate(lines) if line.startswith("cpu.turbo")]
    column = lines[place].index("  this machine") + 2
    assert lines[place + 1][column - 1 :].startswith(" machine this")
    assert not lines[place + 1][:column].strip()


def test_a_narrower_terminal_shows_the_same():
    text = render_text(NOISY, 80)
    assert max(map(len, text.splitlines())) <= 80
    for words in ("1 of 3 factors", "pages=2MB", "not for this user", "[sudo]", "! 1 GB", "clients = 1"):
        assert words in text


def test_json_has_everything_by_name():
    document = json.loads(doctor_json(NOISY))
    assert (document["schema"], document["fit"], document["possible"], document["factors"]) == (1, "with doubts", 1, 3)
    assert document["layers"][1] == {
        "layer": "memory",
        "key": "pages=2MB",
        "possible": "not for this user",
        "note": "needs root [sudo]",
    }
    assert document["probes"][0] == {
        "name": "fsync",
        "title": "cost of fsync",
        "text": "200 µs",
        "value": 200e-6,
        "unit": "s",
        "doubt": "",
        "failure": "",
    }
    assert document["doubts"] == ["1 GB are swapped out"]

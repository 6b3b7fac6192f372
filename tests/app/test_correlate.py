"""`pgstrata correlate` from an archive to its answer, and what it says of windows of which too little is known."""

import json

import numpy as np
import pytest

from archives import START, Second, make_archive, session
from pgstrata.store.archives.thinning import Keep
from program import pgstrata

CPU, WAL = session("select"), session("update", "LWLock/WALWrite")
SECONDS = 2400


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    """Sessions wait for WAL ten seconds after the disk becomes slow; a gap of a minute."""
    draws = np.random.default_rng(1)
    slow = np.repeat(draws.integers(0, 2, SECONDS // 10 + 1), 10)

    def tell(number):
        if 1200 <= number < 1260:
            return Second(sessions=None)
        return Second(
            sessions={CPU: int(draws.poisson(3)), WAL: int(draws.poisson(1 + 4 * slow[max(0, number - 10)]))},
            commits=float(draws.normal(1000, 50)),
            host={"disk_await": float(0.001 + 0.004 * slow[number] + draws.gamma(1, 0.001)), "disk_iops": 7.0},
        )

    return make_archive(tmp_path_factory.mktemp("live") / "archive", SECONDS, tell, facts={"limits": "standby"})


def test_the_answer_names_wait_series_strength_and_lead(archive, tmp_path):
    done = pgstrata(tmp_path, "correlate", archive, "--format", "text")
    said = " ".join(done.stdout.split())
    assert done.returncode == 0
    assert said.startswith("Load in LWLock/WALWrite goes with time of a request to a disk (rho 0.")
    assert ", which leads by 10 s." in said
    assert "1 of 4 pairs of a wait event and another series is associated. An association is not a cause." in said
    assert said.count("not a cause") == 1
    assert "6 steps of 240 have no samples of sessions and were left out" in said
    assert "hardly changing: sessions connected; requests that disks finished" in said
    assert "transactions" in said


def test_programs_get_the_same_in_base_units(archive, tmp_path):
    found = json.loads(pgstrata(tmp_path, "correlate", archive, "--json").stdout)
    assert (found["schema"], found["step"], found["steps"], found["all_steps"], found["longest"]) == (
        1,
        10,
        234,
        240,
        60,
    )
    assert found["window"] == {"begin": START, "end": START + SECONDS}
    assert (found["tested"], found["held"], found["shapes"]) == (4, True, [300])
    assert found["constant"] == ["connections", "disk_iops"]
    assert found["limits"] == ["standby"]
    first = found["associations"][0]
    assert (first["event"], first["rate"], first["lead"], first["leads"]) == (
        "LWLock/WALWrite",
        "disk_await",
        10,
        [10, 10],
    )
    assert first["interval"][0] < first["rho"] < first["interval"][1]
    assert first["p"] <= first["adjusted"] <= 0.05
    assert [each["resolved"] for each in found["associations"]] == [True, False, False, False]
    assert len(found["answer"]) == 2


def test_a_page_is_written_beside(archive, tmp_path):
    done = pgstrata(tmp_path, "correlate", archive, "--report", "page.html")
    assert "page.html" in done.stderr
    assert "LWLock/WALWrite" in (tmp_path / "page.html").read_text()


def test_a_window_that_is_too_short_is_refused_with_the_length_that_it_needs(archive, tmp_path):
    done = pgstrata(tmp_path, "correlate", archive, "--from", f"@{START}", "--to", f"@{START + 305}")
    assert done.returncode == 1
    assert "30 steps of 10 s" in done.stderr
    assert "at least 10 min" in done.stderr


def test_a_window_without_data_is_refused(archive, tmp_path):
    done = pgstrata(tmp_path, "correlate", archive, "--from", f"@{START + 1200}", "--to", f"@{START + 1260}")
    assert "0 steps of 10 s" in done.stderr
    done = pgstrata(tmp_path, "correlate", archive, "--from", "@1000", "--to", "@2000")
    assert "nothing is recorded from" in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("nowhere",), "there is no archive in this folder"),
        (("{archive}", "--format", "pdf"), "'pdf' is not a valid format"),
        (("{archive}", "--from", "soon"), "'soon' is not a time"),
    ],
)
def test_bad_input_ends_with_what_to_do(archive, tmp_path, words, said):
    done = pgstrata(tmp_path, "correlate", *(word.replace("{archive}", str(archive)) for word in words))
    assert done.returncode
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_an_archive_of_years_is_not_read_at_once(tmp_path):
    folder = tmp_path / "archive"
    for begin in (START, START + 100 * 86_400):
        make_archive(folder, 3, lambda _: Second(sessions={CPU: 1}), begin=begin, keep=Keep(total=200 * 86_400))
    done = pgstrata(tmp_path, "correlate", folder)
    assert "the window is longer than 92 days" in done.stderr
    assert "Traceback" not in done.stderr

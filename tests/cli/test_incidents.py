"""`pgstrata incidents` at the command line: words, JSON, a page, and what is refused."""

import json

import pytest

from archives import START, Second, make_archive, session
from program import pgstrata

SELECT, WAITING = session("77"), session("78", "Lock/transactionid", application="x\x1b[0m")
TEXT = "update <b> set x = 1\x1b[31m"


def tell(number):
    slow = 1200 <= number < 1800
    rate = (600 if slow else 1000) + number % 7
    return Second({SELECT: 4, WAITING: 6 if slow else 1}, commits=float(rate))


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    folder = tmp_path_factory.mktemp("incidents")
    make_archive(folder / "a", 2400, tell, texts={"78": TEXT})
    make_archive(folder / "short", 120, tell)
    return folder


def test_an_incident_is_told_with_where_the_load_is(archive):
    done = pgstrata(archive, "incidents", "a")
    assert done.returncode == 0, done.stderr
    said = " ".join(done.stdout.split())
    assert said.startswith("1 incident in 33 min 10 s; one false alarm a week is expected.")
    assert "transactions took 3.3 times as long" in said
    assert "most likely, sessions waited for Lock/transactionid, most of all in update <b> set x = 1?[31m" in said
    assert f"pgstrata explain a --from @{START + 1200} --to @{START + 1800}" in said
    assert "\x1b" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 78


def test_programs_and_pages_get_the_same(archive):
    done = pgstrata(archive, "incidents", "a", "--json", "--report", "page.html", "--no-query-text")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [(each["begin"], each["end"]) for each in found["incidents"]] == [(START + 1200, START + 1800)]
    assert found["texts"] == {}
    page = (archive / "page.html").read_text()
    assert "update" not in page
    assert "<svg" in page
    assert "incidents are shaded" in page


def test_the_rate_of_false_alarms_is_chosen(archive):
    done = pgstrata(archive, "incidents", "a", "--false-alarms-per", "day", "--json")
    assert json.loads(done.stdout)["false_alarms_per_day"] == pytest.approx(1.0)
    done = pgstrata(archive, "incidents", "a", "--false-alarms-per", "3d", "--format", "markdown")
    assert "one false alarm every 72 h is expected" in done.stdout


def test_an_archive_of_two_minutes_cannot_tell_yet(archive):
    done = pgstrata(archive, "incidents", "short")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Cannot tell yet")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("a", "--false-alarms-per", "fortnight"), "--false-alarms-per"),
        (("a", "--false-alarms-per", "10m"), "the time between false alarms is too short"),
        (("a", "--format", "yaml"), "is not a valid format"),
        (("a", "--from", "noon"), "is not a time"),
        (("nowhere",), "there is no archive"),
    ],
)
def test_what_makes_no_sense_is_refused(archive, words, said):
    done = pgstrata(archive, "incidents", *words)
    assert done.returncode != 0
    assert said in done.stderr
    assert "Traceback" not in done.stderr

"""`pgstrata window`: the statements that waited for an event, and two windows side by side."""

import json

import pytest

from archives import START, Second, make_archive, session
from program import pgstrata

EVENT = "LWLock/BufferMapping"
TEXT = "select <b> from t\x1b[31m where id = $1"


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    seen = {
        session("77", EVENT): 2,
        session("78", EVENT, application="x\x1b[0m"): 1,
        session("79", "IO/DataFileRead"): 1,
    }
    idle = {session("", "Activity/WalWriterMain", kind="walwriter", state=""): 1}
    folder = tmp_path_factory.mktemp("window")
    make_archive(folder / "a", 120, lambda n: Second({**seen, **idle} if n % 4 else idle), texts={"77": TEXT})
    return folder


def test_statements_with_enough_samples_are_listed_with_their_texts(archive):
    done = pgstrata(archive, "window", "a", "--event", EVENT.lower())
    assert done.returncode == 0, done.stderr
    said = " ".join(done.stdout.split())
    assert "Sessions waited for LWLock/BufferMapping in 270 samples [239, 304]" in said
    assert "1 statement with at least 100 samples had 67 % of it" in said
    assert "text: select <b> from t?[31m where id = $1" in said
    assert "\x1b" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 78


def test_without_texts_statements_are_known_by_their_ids(archive):
    done = pgstrata(archive, "window", "a", "--event", EVENT, "--no-query-text", "--json")
    found = json.loads(done.stdout)
    assert found["answer"][0].startswith(f"Sessions waited for {EVENT} in ")
    assert found["warnings"] == []
    assert found["texts"] == {}
    assert [(row["statement"], row["samples"]) for row in found["statements"]] == [("77", 180)]
    assert found["remainder"]["statements"] == 1
    assert found["whole"]["seconds"] == 270.0
    assert "select" not in pgstrata(archive, "window", "a", "--event", EVENT, "--no-query-text").stdout


def test_a_page_is_written(archive):
    done = pgstrata(archive, "window", "a", "--event", EVENT, "--report", "waits.html", "--format", "markdown")
    assert done.returncode == 0, done.stderr
    page = (archive / "waits.html").read_text()
    assert "select &lt;b&gt; from t" in page
    assert "\x1b" not in page


WINDOW = ("--from", f"@{START + 60}", "--to", f"@{START + 120}", "--against", f"@{START}..@{START + 60}")


def test_two_windows_are_shown_side_by_side_and_written_as_a_page(archive):
    done = pgstrata(archive, "window", "a", *WINDOW, "--report", "both.html")
    assert done.returncode == 0, done.stderr
    assert "in the comparison window" in done.stdout
    assert "Load by wait event" in done.stdout
    assert (archive / "both.html").read_text().count('role="img"') == 2


def test_two_windows_are_there_for_programs_without_texts(archive):
    done = pgstrata(archive, "window", "a", *WINDOW, "--json", "--no-query-text")
    found = json.loads(done.stdout)
    assert found["texts"] == {}
    assert (found["window"]["looks"], found["comparison"]["looks"]) == (60, 60)
    assert "outcome" not in found


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--event", "Nothing"), 1, "no statement was seen waiting for 'Nothing'"),
        (("--event", "Nothing"), 1, "| LWLock/BufferMapping: 270 samples\n  | IO/DataFileRead: 90 samples\n"),
        (("--event", "WalWriterMain"), 1, "only processes and idle sessions that are no part of the load"),
        (("--at-least", "5"), 2, "add --event TYPE/EVENT"),
        (("--event", "Lock", "--at-least", "0"), 2, "--at-least"),
        (("--event", "Lock", "--against", f"@{START}..@{START + 9}"), 2, "leave out --against"),
    ],
)
def test_what_cannot_be_listed_is_refused_with_a_remedy(archive, arguments, code, said):
    done = pgstrata(archive, "window", "a", *arguments)
    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr

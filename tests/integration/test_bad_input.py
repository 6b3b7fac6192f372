"""Bad input of the diagnosis on real servers: samplers that die or fall behind, ids switched off, hostile texts."""

import gzip
import html
import json
import os
import signal
import time
from pathlib import Path

import pytest

pytestmark = [pytest.mark.server, pytest.mark.timeout(300)]

EXPERIMENT = """
question = "What is said of what was not seen?"
blocks = 2
interleave = "slices"
[common]
server = "embedded"
settings.shared_buffers = "16MB"
settings.shared_preload_libraries = "pg_stat_statements"
settings.compute_query_id = "off"
[factors]
"settings.work_mem" = ["4MB", "5MB"]
[[cells]]
workload = "custom"
scripts = [{ file = "hostile.sql", weight = 1 }]
options.setup_sql = "setup.sql"
scale = 1
clients = 2
run = "3s"
warmup = "0s"
"""
SECRET = "hunter2"
TAG = "<svg/onload=x()>"
HOSTILE = (
    f'SELECT n."{TAG}[red]" AS "\x1b[31m", pg_sleep(0.01), \'{SECRET}\' /* {SECRET} */ FROM notes n\n'
    f"WHERE n.\"{TAG}[red]\" = '{SECRET}' AND n.id = 70707;\nSELECT pg_sleep(0.02);\n"
)


def children(parent, word):
    """Processes of that parent in whose command line a word stands."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat, words = (entry / "stat").read_text(), (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if int(stat.rpartition(")")[2].split()[1]) == parent and word in words:
                found.append(int(entry.name))
    return found


def wait_for(running, word, number):
    """So many such children, once they are there."""
    while running.poll() is None:
        if len(found := children(running.pid, word)) >= number:
            return sorted(found)
        time.sleep(0.05)
    return []


@pytest.fixture(scope="module")
def study(shared_sandbox):
    """In the first of two visits one environment loses its samplers, and the host of the other is not seen any more."""
    shared_sandbox.file(HOSTILE, "hostile.sql")
    shared_sandbox.file(
        f"CREATE TABLE notes AS SELECT g AS id, '{SECRET}'::text AS \"{TAG}[red]\" FROM generate_series(70700, 70709) g;\n",
        "setup.sql",
    )
    folder = shared_sandbox.root / "study-bad"
    running = shared_sandbox.start("run", shared_sandbox.file(EXPERIMENT), "--study", folder)
    seconds = wait_for(running, b"pgstrata-seconds", 2)
    sessions = wait_for(running, b"sessions.samples.sql", 2)
    time.sleep(1.0)
    for pid, number in ((seconds[0], signal.SIGKILL), (sessions[0], signal.SIGKILL), (seconds[1], signal.SIGSTOP)):
        os.kill(pid, number)
    said, _ = running.communicate(timeout=200)
    assert running.returncode == 0, said
    return shared_sandbox, folder


def squeezed(text):
    return " ".join(text.split())


def test_no_run_is_lost_and_each_doubt_is_told_wherever_the_answer_is_shown(study):
    sandbox, folder = study
    forms = [
        sandbox.pgstrata(*words).stdout
        for words in (("show", folder), ("show", folder, "--why"), ("show", folder, "--json"))
    ]
    assert sandbox.pgstrata("report", folder).returncode == 0
    forms.append(html.unescape((folder / "report.html").read_text()))
    for form in map(squeezed, forms):
        assert "the sampler seconds ended before the run did" in form
        assert "the sampler sessions ended before the run did" in form
        assert "sessions were not sampled for" in form
        assert "the host and the server's processes were not sampled for" in form
    document = json.loads(forms[2])
    assert {"sampler_lost", "samples_missing"} <= {warning["code"] for warning in document["warnings"]}
    assert [comparison["runs"] for comparison in document["comparisons"]][:1] == [4]
    assert [comparison["invalid"] for comparison in document["comparisons"]][:1] == [0]


def test_without_ids_of_queries_the_sampled_sessions_are_there_and_the_counts_say_why_not(study):
    sandbox, folder = study
    why = json.loads(sandbox.pgstrata("show", folder, "--why", "--json").stdout)["why"]
    (attribution,) = why["attributions"]
    assert any("pg_sleep" in row["query"] for row in attribution["rows"])
    (counted,) = why["queries"]
    assert counted["queries"] == []
    assert "compute_query_id" in counted["lost"][0]
    assert "compute_query_id" in squeezed(sandbox.pgstrata("show", folder, "--why").stdout)


def test_constants_are_nowhere_in_samples_and_hostile_texts_do_nothing_where_they_are_shown(study):
    sandbox, folder = study
    samples = b"".join(
        gzip.decompress(path.read_bytes()) for path in folder.glob("evidence/b*/*/*/sessions.samples.gz")
    )
    assert TAG.encode() in samples
    assert SECRET.encode() not in samples
    assert b"70707" not in samples
    shown = sandbox.pgstrata("show", folder, "--why").stdout
    assert TAG in squeezed(shown), shown
    assert "\x1b" not in shown
    assert SECRET not in shown
    assert sandbox.pgstrata("report", folder).returncode == 0
    page = (folder / "report.html").read_text()
    assert TAG not in page
    assert html.escape(TAG) in page
    assert "\x1b" not in page
    assert SECRET not in page


def test_reparse_finds_the_same(study):
    sandbox, folder = study
    before = sandbox.pgstrata("show", folder, "--why", "--json").stdout
    assert sandbox.pgstrata("reparse", folder).returncode == 0
    assert sandbox.pgstrata("show", folder, "--why", "--json").stdout == before

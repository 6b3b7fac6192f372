"""One study of two majors, and all that is said of it."""

import gzip
import json
import re

import pytest

pytestmark = [pytest.mark.server, pytest.mark.timeout(600)]

TWO_MAJORS = """
question = "Are 16 and 18 alike?"
blocks = 1
controls = ["same"]
[factors]
server = ["18", "16"]
[[cells]]
workload = "select-only"
scale = 1
clients = 2
run = "1s"
warmup = "0s"
[[cells]]
workload = "simple-update"
scale = 1
clients = 2
run = "1s"
warmup = "0s"
"""


@pytest.fixture(scope="module")
def measured(shared_sandbox):
    """One study of two majors that several tests look at."""
    sandbox = shared_sandbox
    shared_root = sandbox.root
    study = shared_root / "kept"
    file = sandbox.file(TWO_MAJORS, "kept.toml")
    done = sandbox.pgstrata("run", file, "--study", study)
    assert done.returncode == 0, done.stdout + done.stderr
    return sandbox, study, done


def test_two_majors_are_measured_and_the_answer_does_not_pretend(measured):
    sandbox, study, done = measured
    assert "done: 6 of 6 runs" in done.stdout
    assert "Not enough blocks yet to compare 16 with 18" in done.stdout
    answer = json.loads(sandbox.pgstrata("show", study, "--json", real=True).stdout)
    assert answer["schema"] == 1
    primary = [found for found in answer["comparisons"] if found["metric"] == "tps"]
    assert {found["verdict"] for found in primary} == {"insufficient"}
    assert all(found["interval"] is None for found in primary)
    # beside other work blocks are left out, and a run may be many times slower than the next
    assert all(found["effect"] is None or 0.01 < found["effect"] < 100 for found in primary)


def test_every_run_has_evidence_of_what_it_measured(measured):
    _, study, _ = measured
    folder = study / "evidence/b01/pg16/simple-update-s1-c2"
    names = {path.name for path in folder.iterdir()}
    assert {"run.json", "pgbench.out", "pgbench.err", "transactions.log.gz", "server.log", "settings.tsv",
            "procfs.before", "procfs.after", "pgstat.before", "pgstat.after", "host.system.txt", "host.sysctl.txt"} <= names  # fmt: skip
    header = json.loads((folder / "run.json").read_text())
    assert header["facts"]["server.version_num"].startswith("16")
    assert re.fullmatch(r"[0-9a-f]{64}", header["facts"]["driver.sha256"])
    assert header["facts"]["server.configure"]
    assert "simple update" in (folder / "pgbench.out").read_text()


def logged_latencies(folder):
    """Number of transactions of a run with a latency: counted by slice, or lines of the log."""
    if (folder / "slices.txt").exists():
        rows = (line.split() for line in (folder / "slices.txt").read_text().splitlines())
        return sum(int(row[2]) for row in rows if row[0] == "latency")
    return len(gzip.decompress((folder / "transactions.log.gz").read_bytes()).splitlines())


def test_cpu_per_transaction_of_server_and_client_is_measured_apart(measured):
    sandbox, study, _ = measured
    from pgstrata.store.load import load_study

    for run in load_study(
        study, metrics=("server_cpu_per_tx", "client_cpu_per_tx", "client_share", "wal_per_tx", "latency_p50", "tps")
    ).runs:
        server, client = run.value("server_cpu_per_tx"), run.value("client_cpu_per_tx")
        assert 1e-6 < client < 1e-2
        assert 1e-6 < server < 1e-2
        assert run.value("client_share") == pytest.approx(client / (client + server), rel=0.01)
        # a median needs 200 latencies, and beside other work a second may hold fewer
        assert logged_latencies(study / "evidence" / run.identity) < 200 or run.value("latency_p50") > 0
        wal = run.value("wal_per_tx")
        assert wal > 100 if "simple-update" in run.cell else wal < 100


def test_the_control_runs_the_same_binary_as_the_baseline(measured):
    sandbox, study, _ = measured
    records = sandbox.records(study)
    digests = {name.split("/")[1]: record["facts"]["server.digest"] for name, record in records.items()}
    assert digests["pg18"] == digests["pg18-control"] != digests["pg16"]


def test_data_checksums_and_jit_are_the_same_in_both_majors(measured):
    _, study, _ = measured
    for name in ("pg16", "pg18"):
        rows = (study / f"evidence/b01/{name}/select-only-s1-c2/settings.tsv").read_text().splitlines()
        settings = dict(row.split("\t")[:2] for row in rows)
        assert (settings["data_checksums"], settings["jit"]) == ("on", "off")


def test_reparse_gives_the_same_figures_from_evidence_alone(measured):
    sandbox, study, _ = measured
    before = sandbox.pgstrata("show", study, "--json", real=True).stdout
    (study / "catalogue.sqlite").unlink()
    done = sandbox.pgstrata("reparse", study, real=True)
    assert "6 runs derived anew" in done.stdout, done.stderr
    assert sandbox.pgstrata("show", study, "--json", real=True).stdout == before


def test_the_same_command_on_a_complete_study_measures_nothing_again(measured):
    sandbox, study, _ = measured
    begun = {path: path.stat().st_mtime_ns for path in study.glob("evidence/b*/*/*/run.json")}
    done = sandbox.pgstrata("run", sandbox.root / "kept.toml", "--study", study)
    assert done.returncode == 0
    assert begun == {path: path.stat().st_mtime_ns for path in study.glob("evidence/b*/*/*/run.json")}


def test_a_study_that_belongs_to_another_plan_is_refused_with_the_difference(measured):
    sandbox, study, _ = measured
    other = sandbox.file(TWO_MAJORS.replace('run = "1s"', 'run = "3s"'), "other.toml")
    done = sandbox.pgstrata("run", other, "--study", study)
    assert done.returncode != 0
    assert "3s" in done.stderr
    assert "new folder" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_report_is_one_file_without_links_to_elsewhere(measured):
    sandbox, study, _ = measured
    done = sandbox.pgstrata("report", study, "-o", sandbox.root / "r.html")
    assert done.returncode == 0, done.stderr
    html = (sandbox.root / "r.html").read_text()
    assert "Are 16 and 18 alike?" in html
    assert not re.search(r"""(src|href)=["']?https?:""", html)


def test_text_fits_a_mailing_list(measured):
    sandbox, study, _ = measured
    text = sandbox.pgstrata("show", study, "--format", "text", real=True).stdout
    assert max(map(len, text.splitlines())) <= 78


def test_datasets_are_kept_and_clones_are_not(measured):
    sandbox, _, _ = measured
    assert len(list((sandbox.root / "data/datasets").iterdir())) >= 2
    assert not sandbox.clones()
    assert not sandbox.processes()

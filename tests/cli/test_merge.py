"""`pgstrata merge`: blocks stay those of their study, and no more is claimed than was measured."""

import json
import math
import shutil
from dataclasses import replace

import pytest

import stored
from pgstrata.app.question import load_plan
from pgstrata.model.server import Fingerprint
from pgstrata.ports.store import FinishedRun
from pgstrata.store.study import StudyStore
from program import pgstrata

QUESTION = """
question = "Is 18 faster?"
blocks = {blocks}
[factors]
server = ["17", "18"]
[[cells]]
workload = "select-only"
scale = 1
clients = 2
run = "1s"
"""
SMALL = {"host.model": "small.4", "host.cpu": "X", "host.cpus": "4", "host.memory": "16384000 kB"}
LARGE = SMALL | {"host.model": "large.8", "host.cpus": "8"}


def write(place, name, base, ratio, *, blocks=12, facts=SMALL, question=QUESTION, boot=""):
    """A study whose records are derived from its evidence, as those of the program are; the study's folder."""
    (place / f"{name}.toml").write_text(question.format(blocks=blocks))
    plan = load_plan(place / f"{name}.toml")
    with StudyStore.create(place / name, plan, "0.1.0") as store:
        for run in plan.runs:
            noise = math.exp(0.004 * math.sin(7 * run.block + 3 * (run.environment == "pg18") + len(name)))
            tps = base * (ratio if run.environment == "pg18" else 1) * noise
            header = stored.make_header(run, plan)
            header = replace(header, started=f"2026-01-01T00:00:{len(name):02}+00:00", seconds=10.0)
            evidence = store.begin(run.identity)
            evidence.keep("pgbench.out", output(tps))
            evidence.keep("host.kernel.txt", f"{boot or name}\npid:[1]\n".encode())
            store.commit(FinishedRun(evidence=evidence, header=header, record=stored.make_record(run, {"tps": tps})))
        for environment in ("pg17", "pg18"):
            store.keep_fingerprint(f"environment/{environment}", Fingerprint(facts=facts))
    return place / name


def output(tps):
    return (
        "pgbench (18.0)\ntransaction type: <builtin: select only>\nscaling factor: 1\nquery mode: prepared\n"
        "number of clients: 2\nnumber of threads: 2\nmaximum number of tries: 1\nduration: 10 s\n"
        f"number of transactions actually processed: {tps * 10:.0f}\n"
        "number of failed transactions: 0 (0.000%)\nlatency average = 1.0 ms\n"
        f"initial connection time = 1.0 ms\ntps = {tps:.6f} (without initial connection time)\n"
    ).encode()


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    place = tmp_path_factory.mktemp("merge")
    for name, base, ratio, facts in (
        ("a", 1000, 1.10, SMALL), ("bb", 1050, 1.11, SMALL), ("ccc", 980, 1.09, SMALL), ("dddd", 2000, 1.00, LARGE),
    ):  # fmt: skip
        write(place, name, base, ratio, facts=facts)
    return place


def run(place, *arguments, code=0):
    done = pgstrata(place, *arguments)
    assert done.returncode == code, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def merged(place):
    assert "merged: all (4 studies" in run(place, "merge", "a", "bb", "ccc", "big=dddd", "-o", "all")
    return place


def document(place, name):
    return json.loads(run(place, "show", name, "--json"))


def test_effects_are_found_within_each_part_by_its_own_blocks(merged):
    found = {item["part"]: item for item in document(merged, "all")["comparisons"]}
    assert list(found) == ["a", "bb", "ccc", "big"]
    assert [item["verdict"] for item in found.values()] == ["better", "better", "better", "equivalent"]
    # decided by looks after each block, with the error of four headlines
    assert [item["blocks"] for item in found.values()] == [10, 10, 10, 8]
    assert found["bb"]["effect"] == pytest.approx(1.11, rel=0.01)


def test_parts_that_share_no_block_are_never_paired(merged):
    whole = document(merged, "all")
    effects = {item["part"]: item for item in whole["effects_between"]}
    assert effects["big"]["verdict"] == "worse"
    assert effects["big"]["effect"] == pytest.approx(1 / 1.10, rel=0.01)
    assert effects["bb"]["verdict"] in {"equivalent", "negligible"}
    levels = [item for item in whole["levels_between"] if item["part"] == "big"]
    assert [item["environment"] for item in levels] == ["pg17", "pg18"]
    assert levels[0]["effect"] == pytest.approx(2.0, rel=0.01)
    assert (levels[0]["values"], levels[0]["base_values"]) == (12, 12)


def test_three_machines_of_a_type_say_something_of_it_and_one_does_not(merged):
    small, large = document(merged, "all")["types"]
    assert (small["instances"], large["instances"]) == (3, 1)
    assert small["effect"] == pytest.approx(1.10, rel=0.005)
    # the scatter between machines, not that between blocks: t with 2 degrees of freedom
    assert 1.05 < small["interval"][0] < 1.085
    assert (large["effect"], large["interval"]) == (None, None)
    text = " ".join(run(merged, "show", "all").split())
    assert "Nothing can be claimed about the type of big (large.8, X, 8 CPUs, 16 GB): 1 machine of it" in text
    assert "about these 4 machines, and about no others" in text
    assert "confounded with the time" in text
    assert "not the same everywhere" in text


def test_two_types_are_compared_by_their_machines_and_not_by_their_blocks(place):
    parts = {"s1": 1000, "s22": 1050, "s333": 980, "l4444": 1010, "l55555": 1040, "l666666": 985, "m7777777": 1300}
    for number, (name, base) in enumerate(parts.items(), start=1):
        facts = {"s": SMALL, "l": LARGE, "m": SMALL | {"host.cpus": "16"}}[name[0]]
        write(place, name, base, 1.1, blocks=4, facts=facts, boot=f"types{number}")
    run(place, "merge", *parts, "-o", "types")
    whole = document(place, "types")
    level, effect = whole["types_between"]
    assert (level["compared"], level["environment"], effect["compared"]) == ("level", "pg17", "effect")
    assert (level["instances"], level["base_instances"]) == (3, 3)
    # blocks leave no doubt that machines of one type differ, and the types do not
    assert level["interval"][0] < 1 < level["interval"][1]
    (within,) = [item for item in whole["levels_between"] if (item["part"], item["environment"]) == ("s22", "pg17")]
    assert within["interval"][0] > 1.04
    text = " ".join(run(place, "show", "types").split())
    assert "no difference is shown" in text
    assert "Nothing can be claimed about the type of m7777777" in text


def test_types_whose_machines_are_all_apart_differ(place):
    parts = {"t1": 1000, "t22": 1010, "t333": 990, "u4444": 1300, "u55555": 1290, "u666666": 1315}
    for number, (name, base) in enumerate(parts.items(), start=1):
        write(place, name, base, 1.1, blocks=4, facts=SMALL if name[0] == "t" else LARGE, boot=f"apart{number}")
    run(place, "merge", *parts, "-o", "apart")
    level, _ = document(place, "apart")["types_between"]
    assert level["effect"] == pytest.approx(1.3, rel=0.01)
    assert level["interval"][0] > 1.2
    assert "differs, +30" in " ".join(run(place, "show", "apart").split())


def test_a_merged_study_is_reported_and_judged(merged):
    assert run(merged, "report", "all") == "report: all/report.html\n"
    page = (merged / "all" / "report.html").read_text()
    assert "<svg" in page
    assert "Types of machines" in page
    assert "not the same everywhere" in run(merged, "gate", "all")
    assert "| " in run(merged, "show", "all", "--format", "markdown")
    assert "use it with a single part" in pgstrata(merged, "show", "all", "--pairs").stderr


def test_the_page_of_a_merged_study_begins_with_a_matrix_and_has_its_charts_and_figures(merged):
    said = run(merged, "report", "all", "-o", "again.html", "--charts", "charts")
    assert said == "report: again.html\ncharts: charts\n"
    assert {file.suffix for file in (merged / "charts").iterdir()} == {".svg", ".png"}
    answer = (merged / "again.html").read_text().split("</header>")[0]
    assert '<table class="matrix"' in answer
    assert [f'<th scope="col">{part}</th>' in answer for part in ("a", "bb", "ccc", "big")] == [True] * 4
    lines = run(merged, "show", "all", "--format", "csv").splitlines()
    assert lines[0].startswith("kind,part,environment,reference,cell,metric,")
    assert [line.split(",")[1] for line in lines if line.startswith("comparison,")] == ["a", "bb", "ccc", "big"]
    assert any(line.startswith("difference between parts,big,pg18,a,") for line in lines)


def test_each_part_is_still_a_study(merged):
    run(merged, "reparse", "a")
    ours, theirs = (json.loads(run(merged, "show", study, "--json")) for study in ("a", "all/parts/a"))
    assert ours == theirs


@pytest.mark.parametrize("command", ["bundle", "export", "reparse"])
def test_what_takes_a_single_study_says_so_of_a_merged_one(merged, command):
    done = pgstrata(merged, command, "all")
    assert done.returncode == 1
    assert "this is a merged study" in done.stderr
    assert "name one of its parts: " in done.stderr


def test_bundles_can_be_merged(place):
    run(place, "bundle", "a", "-o", "a.tar.xz")
    run(place, "merge", "a.tar.xz", "bb", "-o", "two")
    assert [part["name"] for part in document(place, "two")["parts"]] == ["a", "bb"]
    assert document(place, "two")["types"][0]["effect"] is None


def test_anonymous_bundles_of_two_machines_are_two_hosts(place):
    ids = {"anon1": "f5855e79-98fc-4e3d-b424-5a565c576444", "anon22": "0c9e2b1d-7a41-4f7e-9d5e-2b1f0a6c3d88"}
    for name, boot in ids.items():
        write(place, name, 1000, 1.1, blocks=4, boot=boot)
        run(place, "bundle", name, "-o", f"{name}.tar.xz", "--anonymous")
    run(place, "merge", *(f"{name}.tar.xz" for name in ids), "-o", "anonymous")
    assert [part["name"] for part in document(place, "anonymous")["parts"]] == list(ids)


def refused(place, *arguments, code=2):
    done = pgstrata(place, "merge", *arguments, "-o", "none")
    assert done.returncode == code
    assert not (place / "none").exists()
    assert not list(place.glob(".pgstrata-*"))
    return done.stderr


def test_what_cannot_be_one_study_is_refused(place):
    write(place, "other", 1000, 1.1, question=QUESTION.replace("scale = 1", "scale = 2"))
    assert "do not have the same cells" in refused(place, "a", "other")
    shutil.copytree(place / "a", place / "copy", dirs_exist_ok=True)
    assert "have the same runs" in refused(place, "a", "copy", "--factor", "day")
    assert "merging needs two studies or more" in refused(place, "a")
    assert "two studies are called a" in refused(place, "a", "a=bb")
    assert "there is no study here" in refused(place, "a", "missing", code=1)
    assert "cannot be the name of a part" in refused(place, "../x=a", "bb")
    (place / "loop").symlink_to("loop")
    assert "there is no study here" in refused(place, "loop", "bb", code=1)
    many = [f"part{number}=a" for number in range(101)]
    assert "101 studies are too many" in refused(place, *many)
    assert "this path exists already" in pgstrata(place, "merge", "a", "bb", "-o", "a").stderr


def test_one_boot_is_one_machine(place):
    write(place, "later", 1000, 1.1, boot="a")
    assert "in one boot of one machine" in refused(place, "a", "later")
    run(place, "merge", "a", "later", "-o", "days", "--factor", "day")
    text = " ".join(run(place, "show", "days").split())
    assert "on each of these 2 days" in text
    assert document(place, "days")["types"] == []


def test_a_damaged_merged_study_says_so(merged):
    for content in ("{", "{}", '{"format": 1, "factor": "host", "parts": ["../../a", "b"]}'):
        shutil.rmtree(merged / "broken", ignore_errors=True)
        (merged / "broken").mkdir()
        (merged / "broken" / "merged.json").write_text(content)
        done = pgstrata(merged, "show", "broken")
        assert (done.returncode, "is damaged" in done.stderr) == (1, True)

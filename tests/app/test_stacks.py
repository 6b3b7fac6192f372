"""Stacks and settings from the evidence of a study's runs, as a report takes them."""

import gzip
from types import SimpleNamespace

from pgstrata.app.report import load_changed_settings, load_stacks, write_report
from pgstrata.store.load import load_study
from pgstrata.store.repository import StudyFolder
from stored import write_study

QUESTION = """
question = "Which code?"
blocks = 4
{key}
[factors]
server = ["16", "18"]
[[cells]]
workload = "select-only"
scale = 1
clients = 1
run = "1s"
"""
EARLY = "sampling ended before the run did, as it does after 200 MB (20,000 samples): shorter runs have fewer"
TEXT = "# hertz 49\n# event cpu-clock:u\nsession;main;ExecAgg {count}\nsession;main 100\n# whole\n"


def make_study(place, key="profile_cpu = true"):
    """Four blocks of runs without any evidence of stacks yet."""
    values = {"tps": 1000.0, "sampled_cpu_per_tx": 0.0004}
    write_study(place, QUESTION.format(key=key), lambda _plan, _run: values)


def test_stacks_come_from_the_evidence_of_runs_and_what_lacks_them_says_why(tmp_path):
    make_study(tmp_path)
    folder = tmp_path / "study"
    runs = load_study(folder).runs
    for run in runs:
        file = folder / "evidence" / run.identity / "perf.samples.gz"
        if run.block == 1:
            file.write_bytes(gzip.compress(TEXT.format(count=300).encode()))
        elif run.block == 2:
            file.write_bytes(b"damaged")
        elif run.block == 4:
            file.write_bytes(
                gzip.compress(TEXT.replace("# whole", "# ended early\n# whole").format(count=300).encode())
            )
    found = load_stacks(StudyFolder(folder), load_study(folder))
    whole = [item for item in found if item.stacks]
    assert {item.block for item in whole} == {1}
    assert whole[0].seconds == 0.0004 / 400
    assert whole[0].user_only
    assert {item.block: item.lacking for item in found if item.lacking} == {
        2: "the evidence cannot be read",
        3: "perf left nothing that can be used; the reasons of the run may say why",
        4: EARLY,
    }
    report = write_report(StudyFolder(folder), folder / "report.html", pairs=False)
    assert "Runs without stacks: the evidence cannot be read" in report.read_text()


def test_stacks_of_running_servers_are_lacking_because_pgstrata_did_not_start_them(tmp_path):
    environments = """[[environments]]
name = "a"
server = "dsn:one"
[[environments]]
name = "b"
server = "dsn:two"
"""
    text = QUESTION.partition("[factors]")[0] + environments + QUESTION[QUESTION.index("[[cells]]") :]
    write_study(tmp_path, text.format(key="profile_cpu = true"), lambda _plan, _run: {"tps": 1000.0})
    found = load_stacks(StudyFolder(tmp_path / "study"), load_study(tmp_path / "study"))
    assert {item.lacking for item in found} == {
        "perf follows servers that pgstrata started, and no running ones (`dsn:`)"
    }


def test_an_experiment_without_the_key_has_no_stacks(tmp_path):
    make_study(tmp_path, key="")
    assert load_stacks(StudyFolder(tmp_path / "study"), load_study(tmp_path / "study")) == ()


class Evidence:
    """Of runs by number: those named have a table of settings; `asked` are all whose table was read."""

    def __init__(self, *having):
        self.having, self.asked = having, []

    def evidence(self, identity, name):
        assert name == "settings.tsv"
        self.asked.append(identity)
        head = "name\tsetting\tunit\tsource\tboot_val\n"
        return (
            f"{head}work_mem\t{identity}\tkB\tconfiguration file\t4096\n".encode() if identity in self.having else b""
        )


def study_of(*environments, blocks):
    runs = [(name, f"{name}{block}") for block in range(1, blocks + 1) for name in environments]
    return SimpleNamespace(runs=[SimpleNamespace(environment=name, identity=identity) for name, identity in runs])


def test_changed_settings_are_those_of_the_first_run_that_has_any():
    evidence = Evidence("a3", "a4", "b1")
    found = load_changed_settings(evidence, study_of("a", "b", blocks=5))
    assert [(name, setting.name, setting.value) for name, setting in found] == [
        ("a", "work_mem", "a3"),
        ("b", "work_mem", "b1"),
    ]
    assert sorted(evidence.asked) == ["a1", "a2", "a3", "b1"]


def test_changed_settings_are_looked_for_in_so_many_runs_of_an_environment():
    study = study_of("a", "b", blocks=40)
    evidence = Evidence("a30", "b31")
    assert [(name, setting.value) for name, setting in load_changed_settings(evidence, study)] == [("a", "a30")]
    assert len(evidence.asked) == 60

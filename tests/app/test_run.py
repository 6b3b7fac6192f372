"""What a study has spent, as the next call counts it against the experiment's budget."""

from pgstrata.app.run import seconds_spent
from pgstrata.conduct.cost import SPENT, UnmeasuredTime
from pgstrata.store.repository import StudyFolder
from pgstrata.store.study import StudyStore
from stored import write_study

QUESTION = """\
question = "?"
blocks = 2
[factors]
server = ["16", "18"]
[[cells]]
workload = "select-only"
scale = 1
clients = 1
run = "1s"
"""


def test_a_study_has_spent_its_runs_and_the_time_before_and_around_them(tmp_path):
    write_study(tmp_path, QUESTION, lambda plan, run: {"tps": 100.0} if run.block == 1 else None)
    assert seconds_spent(StudyFolder(tmp_path / "study")) == 2
    with StudyStore.open(tmp_path / "study") as store:
        store.keep_fingerprint(SPENT, UnmeasuredTime().plus(30.0, 4.5).keep())
    assert seconds_spent(StudyFolder(tmp_path / "study")) == 36.5
    with StudyStore.open(tmp_path / "study") as store:
        store.keep_fingerprint(SPENT, UnmeasuredTime.of(store.fingerprint(SPENT)).plus(10.0, -1.0).keep())
    # runs that were made beside each other are counted one by one, and took less together
    assert seconds_spent(StudyFolder(tmp_path / "study")) == 45.5

"""Where no study can be kept or read: the message says what is wrong with the place, and what to do about that."""

import os

import pytest

from pgstrata.errors import StudyError
from pgstrata.store.evidence import load_evidence
from pgstrata.store.load import load_study
from pgstrata.store.repository import StudyFolder
from pgstrata.store.study import StudyStore, reparse_study
from pgstrata.system.users import UserIds, acting_as

AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


def refusal(act, *arguments):
    with pytest.raises(StudyError) as caught:
        act(*arguments)
    return str(caught.value)


@pytest.mark.root
@pytest.mark.company
@AS_ROOT
@pytest.mark.parametrize("way", ["show", "reparse", "run"])
def test_root_says_why_it_does_not_use_a_folder_where_others_may_write(open_folder, bench, way):
    place = open_folder / "open"
    place.mkdir()
    plan = bench.plan()
    StudyStore.create(place / "s", plan, "0.1.0").close()
    place.chmod(0o777)
    if way == "show":
        said = refusal(load_study, place / "s")
    elif way == "reparse":
        said = refusal(reparse_study, place / "s", bench.derive)
    else:
        said = refusal(StudyStore.create, place / "new", plan, "0.1.0")
    assert f"root does not use it, because other users may write to {place}\n" in said
    assert "-> let one user alone write there (chmod go-w), or keep the study in another folder" in said
    assert "cannot be written" not in said


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("/proc/s", "No such file or directory"),
        pytest.param("one", "Too many levels of symbolic links", marks=AS_ROOT),
        ("one/s", "Too many levels of symbolic links"),
        ("a" * 300, "File name too long"),
    ],
)
def test_a_path_where_no_folder_can_be_is_not_blamed_on_the_disk(tmp_path, bench, name, why):
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to("one")
    folder = StudyFolder(tmp_path / name)
    said = refusal(folder.write, bench.plan(), "0.1.0", bench.derive)
    assert f"there is no folder at this path, and none can be made: {why}" in said
    assert "-> check each part of the path" in said
    assert "dmesg" not in said


def test_a_name_that_is_too_long_is_not_the_name_of_a_study(tmp_path):
    assert "File name too long" in refusal(load_study, tmp_path / ("a" * 300))


@pytest.mark.root
@pytest.mark.company
@AS_ROOT
def test_a_study_that_a_user_may_not_read_is_not_said_to_be_read_only(tmp_path, bench):
    StudyStore.create(tmp_path / "s", bench.plan(), "0.1.0").close()
    tmp_path.chmod(0o700)
    with acting_as(UserIds.of("nobody")):
        said = refusal(load_study, tmp_path / "s")
    assert "the study cannot be read" in said
    assert "check owner and permissions" in said


def test_evidence_that_is_too_large_names_the_limit_and_what_is_used_of_it(tmp_path, bench):
    run = bench.plan().runs[0]
    with StudyStore.create(tmp_path / "s", bench.plan(), "0.1.0") as store:
        bench.measure(store, run)
    folder = tmp_path / "s" / "evidence" / run.identity
    for name, megabytes in (("zz-one", 200), ("zz-two", 100)):
        (folder / name).touch()
        os.truncate(folder / name, megabytes << 20)
    said = refusal(load_evidence, tmp_path / "s", run.identity)
    assert (
        "the evidence of one run may have 256 MiB, and this has more: zz-two has 100.0 MiB, the files before it 200."
        in said
    )
    assert "-> remove from this folder what pgstrata has not put there" in said

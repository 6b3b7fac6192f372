"""`pgstrata floor` and `pgstrata plan` before anything is measured."""

import pytest

from program import SMALL, pgstrata


@pytest.fixture
def place(tmp_path):
    (tmp_path / "good.toml").write_text(SMALL.format(blocks=13))
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("floor --blocks 5", "--blocks: a noise floor cannot be made of 5 blocks\n  -> each gives one difference"),
        ("floor good.toml --scale 3", "good.toml: an experiment file says what is measured\n  -> leave out"),
        ("floor missing.toml", "missing.toml: there is no such file"),
        ("floor --events --json", "both --events and --json were given"),
        ("floor --budget soon", "--budget: 'soon' is not a duration"),
        ("floor --workload nonsense", "there is no workload 'nonsense'"),
        ("floor --server 99", "99"),
        ("floor --run fast", "run"),
    ],
)
def test_a_mistake_is_answered_with_its_place_and_a_remedy(place, arguments, said):
    done = pgstrata(place, *arguments.split())
    assert (done.returncode, "Traceback" in done.stderr) == (2, False), done.stderr
    assert said in done.stderr
    assert "  -> " in done.stderr
    assert not (place / "studies").exists()


def test_a_plan_names_the_command_that_measures_the_floor(place):
    done = pgstrata(place, "plan", "good.toml")
    assert done.returncode == 0, done.stderr
    text = " ".join(done.stdout.split())
    assert "no noise floor for these cells on this host: `pgstrata floor good.toml` measures it in about" in text
    assert not (place / "state").exists()


def test_a_state_folder_that_is_none_is_a_note(place):
    (place / "state").mkdir()
    (place / "state" / "floors").write_text("")
    done = pgstrata(place, "plan", "good.toml")
    assert done.returncode == 0, done.stderr
    assert "cannot be read" in " ".join(done.stdout.split())

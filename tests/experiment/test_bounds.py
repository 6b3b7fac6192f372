"""A file within 1 MiB can ask for more than can be: refused soon, with the number."""

from __future__ import annotations

import pytest

CELL = '[[cells]]\nworkload = "select-only"\nscale = 1\nclients = 2\n'
TWO = '[factors]\nserver = ["16", "18"]\n'
MANY = ", ".join(map(str, range(1, 100_001)))
TWICE = ", ".join(["1"] * 100_000)


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    ("text", "what", "remedy"),
    [
        ('[[environments]]\nname = "a"\n' * 5000 + CELL, "too many environments: 5,000 are listed", "at most 500"),
        (f'[factors]\n"settings.work_mem" = [{TWICE}]\n' + CELL, "a factor cannot have 100,000 levels", "at most 500"),
        (f"[factors]\nserver = [{TWICE}]\n" + CELL, "a factor cannot have 100,000 levels", "at most 500"),
        (TWO + CELL.replace("scale = 1", f"scale = [{MANY}]"), "too many cells: 100,000", "at most 500"),
        (TWO + CELL.replace("scale = 1", f"scale = [{TWICE}]"), "1 is listed twice", "take one"),
        (TWO + CELL.replace("clients = 2", "clients = 100000000"), "clients cannot be 100000000", "1 to 262143"),
        (TWO + CELL.replace("scale = 1", "scale = 10000000000"), "scale cannot be 10000000000", "1 to 2147483647"),
        (TWO + CELL + 'run = "100000000000000000000h"\n', "is too long", "at most 365d"),
        (TWO + CELL + 'warmup = "9000h"\n', "'9000h' is too long", "at most 365d"),
        (
            "[common.settings]\n" + "".join(f"a{n}.b = 1\n" for n in range(600)) + TWO + CELL,
            "too many keys: 600",
            "500",
        ),
        (
            "[factors.settings]\n" + "".join(f"a{n}.b = [1]\n" for n in range(600)) + CELL,
            "too many factors: 600",
            "500",
        ),
        (f'[common.settings]\nshared_buffers = "{"9" * 5000}"\n' + TWO + CELL, "5,000 characters", "at most 4,000"),
    ],
)
def test_more_than_can_be_is_refused_with_the_number(problems, text, what, remedy):
    found = problems(text)
    assert what in found[0].what
    assert remedy in found[0].remedy


@pytest.mark.timeout(60)
def test_after_a_hundred_problems_the_others_are_not_looked_for(parse):
    from pgstrata.errors import ExperimentError

    with pytest.raises(ExperimentError, match="100 problems in the experiment file, and there may be more") as caught:
        parse("".join(f"k{number} = 1\n" for number in range(50_000)) + TWO + CELL)
    assert len(caught.value.problems) == 100
    assert caught.value.problems[-1].line == 100

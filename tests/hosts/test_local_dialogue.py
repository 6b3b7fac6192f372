"""A program that is spoken to while it runs: what it says up to a mark, its end, its silence."""

import pytest

from pgstrata.hosts.local_dialogue import LocalDialogue
from pgstrata.model.secret import Secret
from pgstrata.ports.host import Command

ECHO = 'while read -r line; do eval "$line"; done'


@pytest.fixture
def shell():
    dialogue = LocalDialogue(Command(argv=("sh", "-c", ECHO)))
    yield dialogue
    dialogue.close()


def ask(dialogue, words, timeout=10.0):
    return dialogue.exchange(f"{words}\necho @1 >&2\n".encode(), b"@1", timeout=timeout)


def test_what_is_said_before_the_mark_is_the_answer(shell):
    for number in range(3):
        said = ask(shell, f"echo {number}; echo careful >&2")
        assert (said.output, said.complaints, said.ended) == (f"{number}\n".encode(), b"careful\n", False)


def test_long_answers_and_long_questions_pass_through_narrow_pipes(shell):
    said = ask(shell, f": {'x' * 300_000}; seq 200000")
    assert said.output.endswith(b"200000\n")
    assert not said.ended


def test_an_end_is_told_with_the_last_words(shell):
    said = ask(shell, "echo last; echo broken >&2; exit 3")
    assert (said.output, said.complaints, said.ended) == (b"last\n", b"broken\n", True)
    assert ask(shell, "echo anybody").ended


def test_a_program_that_does_not_answer_is_given_up(shell):
    assert ask(shell, "sleep 60", timeout=0.2).ended


def test_a_password_stands_in_a_file_without_a_name():
    dialogue = LocalDialogue(Command(argv=("sh", "-c", ECHO), password=Secret("canary-pw-7391")))
    said = ask(dialogue, 'cat "$PGPASSFILE"; tr "\\\\0" " " < /proc/self/environ | grep -c canary')
    dialogue.close()
    assert b"canary-pw-7391" in said.output
    assert said.output.endswith(b"\n0\n")

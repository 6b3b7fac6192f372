"""Sentences are counted as a reader meets them."""

import importlib
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[2] / "bench"


@pytest.fixture
def bench(monkeypatch):
    monkeypatch.syspath_prepend(BENCH)
    return importlib.import_module("readability")


PAGE = """# A heading is none

One sentence here. Another one, with 1.5 ms and `a b c`! A third
that goes on in the next line.

- an item of a list: it is one
- another item

| a table | is none |

```console
$ nor is code.
```
"""


def test_sentences_of_a_page(bench):
    assert list(bench.sentences(PAGE)) == [
        "One sentence here.",
        "Another one, with 1.5 ms and `a b c`!",
        "A third that goes on in the next line.",
        "an item of a list: it is one",
        "another item",
    ]


def test_messages_of_a_module(bench):
    source = '''"""A docstring is no message at all."""
text = "the server did not start"
short = "too short"
filled = f"the server {name} did not start. Look at {log} for the reason"
sql = "SELECT count(*) FROM a b c"
'''
    assert list(bench.messages(source)) == [
        "the server did not start",
        "the server X did not start.",
        "Look at X for the reason",
    ]

"""What the guards said when they were provoked: kept in a file, from which the reference of the guards is made.

With PGSTRATA_RECORD_GUARDS=1 a test writes down what it observed; otherwise it compares the shape: all but numbers.
"""

import json
import os
import re
from pathlib import Path

BOOK = Path(__file__).parents[1] / "guards_observed.json"


def shape(text):
    """A reason without its numbers, and without what follows from them."""
    text = re.sub(r"[-+]?\d+(?:[.,]\d+)*", "#", text)
    return re.sub(r"\s+", " ", text).strip()


def load_book():
    return json.loads(BOOK.read_text(encoding="utf-8")) if BOOK.exists() else {}


def observe(node, code, text, *, loose=False):
    """Compare what a guard said with what it said before, or write it down.

    `node` is the id of the test; `loose` is for sentences of other programs, which may be others the next time.
    """
    test = re.sub(r"\[.*\]$", "", node)
    book = load_book()
    if os.environ.get("PGSTRATA_RECORD_GUARDS"):
        book[code] = {"test": test, "text": text}
        ordered = dict(sorted(book.items()))
        BOOK.write_text(json.dumps(ordered, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
        return
    assert code in book, f"{code} was never recorded: run this test with PGSTRATA_RECORD_GUARDS=1"
    assert book[code]["test"] == test
    assert loose or shape(text) == shape(book[code]["text"])

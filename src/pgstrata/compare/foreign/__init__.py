"""Results that other tools measured: a table of them, its rows as samples, and the comparisons that these support.

What belongs here: what a table has to look like, which rows are used together, and what must be doubted of results
whose making nobody saw. What does not: formulas (`pgstrata.stats`), files (`app.decide`), words and layout (`report`).
"""

from pgstrata.compare.foreign.answer import Finding, ForeignAnswer, ForeignQuestion
from pgstrata.compare.foreign.decide import decide_table
from pgstrata.compare.foreign.doubts import fewest_blocks, fewest_values
from pgstrata.compare.foreign.table import UNNAMED, Row, Table, parse_table

__all__ = [
    "UNNAMED",
    "Finding",
    "ForeignAnswer",
    "ForeignQuestion",
    "Row",
    "Table",
    "decide_table",
    "fewest_blocks",
    "fewest_values",
    "parse_table",
]

"""The size of the house: lines and files of `src`, and how many functions ask for a whole plan.

.venv/bin/python bench/structure.py [ROOT]    another checkout, to compare
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from figures import Figure

HERE = Path(__file__).parent.parent
_PLAN = frozenset({"Plan", "Plan | None"})


def _functions(tree: ast.AST) -> Iterator[ast.FunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def _takes_plan(function: ast.FunctionDef) -> bool:
    given = (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
    return any(item.annotation is not None and ast.unparse(item.annotation) in _PLAN for item in given)


def measure_structure(root: Path = HERE) -> Sequence[Figure]:
    """Counts of Python below `root`/src. Goals: 48,000 lines; otherwise what version 0.1.0 had."""
    texts = {path: path.read_text() for path in (root / "src").rglob("*.py")}
    asking = {path: sum(map(_takes_plan, _functions(ast.parse(text)))) for path, text in texts.items()}
    return [
        Figure(name="structure: lines of src", value=sum(text.count("\n") for text in texts.values()), goal=48_000),
        Figure(name="structure: files of src", value=len(texts), goal=425),
        Figure(name="structure: functions that take a plan", value=sum(asking.values()), goal=131),
        Figure(name="structure: files with such functions", value=sum(map(bool, asking.values())), goal=34),
    ]


if __name__ == "__main__":
    for figure in measure_structure(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE):
        print(figure.line())

"""Everything that is wrong with a file, collected until all of it is known."""

from typing import Final

from pgstrata.errors import ExperimentError, Problem
from pgstrata.experiment.keys import Path, render_path
from pgstrata.experiment.positions import line_of, locate_lines
from pgstrata.experiment.servers import mask_conninfo

_MOST: Final = 100


class Findings:
    """Collects problems by path; lines are looked up at the end, if there is anything to report."""

    def __init__(self, text: str, source: str) -> None:
        self._text = text
        self._source = source
        # in the order of being found
        self._found: dict[tuple[Path, str, str], None] = {}

    def add(self, path: Path, what: str, remedy: str) -> None:
        """Note one problem; the same sentence about the same key is noted once, and never with a password in it.

        Raises ExperimentError after the first hundred: nobody reads more at once.
        """
        self._found[(path, mask_conninfo(what), mask_conninfo(remedy))] = None
        if len(self._found) >= _MOST:
            self.raise_if_any()

    def touches(self, path: Path) -> bool:
        """Whether something is already wrong at `path`, below it, or with what it is part of."""
        return any(_prefix(found, path) or _prefix(path, found) for found, _, _ in self._found)

    def raise_if_any(self) -> None:
        """Raise ExperimentError with all problems in the order of the file."""
        if not self._found:
            return
        lines = locate_lines(self._text)
        problems = [
            Problem(line=line_of(lines, path), key=render_path(path), what=what, remedy=remedy)
            for path, what, remedy in self._found
        ]
        ordered = tuple(sorted(problems, key=lambda problem: problem.line or 0))
        raise ExperimentError(self._source, ordered, more=len(ordered) >= _MOST)


def _prefix(short: Path, long: Path) -> bool:
    return long[: len(short)] == short

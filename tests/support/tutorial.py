"""The tutorial as it is read: its blocks, and each command with what it is shown to print."""

import re
from dataclasses import dataclass, replace
from pathlib import Path

TEXT = (Path(__file__).parents[2] / "docs" / "tutorial.md").read_text()

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# an answer that is shown in a block of its own, at once after the command
_SHOWN = re.compile(r"^```\n\n```text\n", re.MULTILINE)
_PIECE = re.compile(r"…|[-+±]?\d[\d,.]*|[-─]{3,}|\s+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A command without its prompt, and the lines that are shown below it, also in the next block."""

    command: str
    shown: tuple[str, ...]

    @property
    def words(self):
        """Those after `pgstrata`; none where another program is called."""
        return self.command.split()[1:] if self.command.startswith("pgstrata ") else []


def blocks(kind):
    """Texts of all blocks of a kind."""
    return [body for found, body in _BLOCK.findall(TEXT) if found == kind]


def _steps():
    steps = []
    for found, body in _BLOCK.findall(_SHOWN.sub("", TEXT)):
        if found == "console":
            more, *parts = re.split(r"^\$ ", body, flags=re.MULTILINE)
            if more:
                steps[-1] = replace(steps[-1], shown=(*steps[-1].shown, *more.splitlines()))
            for part in parts:
                command, *shown = part.splitlines()
                steps.append(Step(command=command, shown=tuple(shown)))
    return tuple(steps)


STEPS = _steps()
PGSTRATA = tuple(step for step in STEPS if step.words)


def steps_of(*words):
    """The steps that begin with these words of pgstrata."""
    return [step for step in PGSTRATA if step.words[: len(words)] == list(words)]


def shape_of(line):
    """A pattern of the same line with other figures, and with anything for an ellipsis."""
    pattern, end = "", 0
    for piece in _PIECE.finditer(line):
        pattern += re.escape(line[end : piece.start()]) + _any_of(piece[0])
        end = piece.end()
    return pattern + re.escape(line[end:])


def _any_of(piece):
    if piece == "…":
        return r".*?"
    if piece.isspace():
        return r"\s+"
    return r"[-─]+" if piece[0] in "-─" and not piece[-1].isdigit() else r"[-+±]?\d[\d,.]*"


def assert_printed(shown, printed):
    """Each line that is shown was printed, in this order; figures, widths and line breaks do not count."""
    text, place = " ".join(printed.split()), 0
    for line in shown:
        found = re.compile(shape_of(line.strip())).search(text, place)
        assert found, f"{line!r} is not printed after {text[:place][-60:]!r}:\n{printed}"
        place = found.end()

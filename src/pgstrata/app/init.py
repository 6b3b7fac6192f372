"""`pgstrata init`: a commented file for a question, to start from; never over somebody's own."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Final

from pgstrata.app import questions
from pgstrata.app.compose import write_kept
from pgstrata.errors import UsageError
from pgstrata.experiment.keys import suggest

_FILES: Final = (
    "versions.toml",
    "settings.toml",
    "checksums.toml",
    "pages.toml",
    "file-systems.toml",
    "builds.toml",
    "machines.toml",
    "price.toml",
    "live.sh",
)
_BY_NAME: Final = {name.partition(".")[0]: name for name in _FILES}
QUESTIONS: Final = tuple(_BY_NAME)
DEFAULT: Final = QUESTIONS[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """What is written for a question: a text, the name of its file by default, and what is asked, in a sentence.

    `experiment` is false for a live server, where there is nothing to plan.
    """

    question: str
    file: str
    asks: str
    text: str

    @property
    def experiment(self) -> bool:
        return self.file.endswith(".toml")


def load_template(question: str) -> Template:
    """The template of a question; UsageError where there is none."""
    file = _BY_NAME.get(question)
    if file is None:
        raise UsageError(
            f"there is no file for the question {question!r:.80}",
            where="pgstrata init",
            remedy=f"{suggest(question, QUESTIONS)} (pgstrata init --list)",
        )
    text = (files(questions) / file).read_text("utf-8")
    return Template(question=question, file=file, asks=text.partition("\n")[0].removeprefix("# "), text=text)


def write_template(question: str, file: Path | None) -> tuple[Template, Path]:
    """Write the file of a question; the template, and where it is.

    Raises:
        UsageError: there is no such question, or another file of that name.
    """
    template = load_template(question)
    target = file or Path(template.file)
    write_kept(target, template.text)
    return template, target

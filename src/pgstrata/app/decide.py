"""From a table of other tools' results, in a file or on standard input, to its comparisons."""

from __future__ import annotations

import errno
import sys
from dataclasses import replace
from pathlib import Path

from pgstrata.app.price_list import read_price_list
from pgstrata.compare.one_look import ImportAnswer, ImportTerms, decide_import
from pgstrata.compare.table_worth import find_table_worth
from pgstrata.errors import UsageError
from pgstrata.experiment.keys import suggest
from pgstrata.model import sizes
from pgstrata.model.metrics import SYNTHETIC
from pgstrata.sources.table import parse_table
from pgstrata.system.reading import read_bounded
from pgstrata.units import Direction

STANDARD_INPUT = Path("-")


def decide_file(file: Path, terms: ImportTerms, prices: Path | None = None) -> ImportAnswer:
    """The comparisons of a table, and values for the money if prices are given; UsageError if a file cannot be used."""
    text, source = read_table(file)
    answer = decide_import(parse_table(text, source, metric=terms.metric), terms)
    if answer.question.metric == SYNTHETIC.name:
        raise UsageError(
            "the values of this table are declared under [synthetic], not measured: no verdict is to follow from them",
            where=source,
            remedy="export a study that measures",
        )
    return answer if prices is None else _with_prices(answer, prices)


def _with_prices(answer: ImportAnswer, file: Path) -> ImportAnswer:
    """Add values for the money; names in the list of prices are those of environments in the table."""
    prices, question = read_price_list(file), answer.question
    names = (question.baseline, *question.environments)
    unknown = [name for name in prices if name not in names]
    if unknown:
        what = f"{unknown[0]!r:.80} is not an environment of {answer.source}"
        raise UsageError(what, where=str(file), remedy=suggest(unknown[0], names))
    if question.direction is not Direction.HIGHER:
        raise UsageError(
            f"prices need a metric that is better the higher it is, and {question.metric} is better the lower it is",
            where="--prices",
            remedy="name a metric of throughput, such as --metric tps, or leave the prices out",
        )
    return replace(answer, worth=find_table_worth(answer, prices), prices=prices)


def read_table(file: Path) -> tuple[str, str]:
    """The text of a table, and its name for messages; UsageError if it cannot be read."""
    source = "standard input" if file == STANDARD_INPUT else str(file)
    return _decode(_read_bytes(file, source), source), source


def _read_bytes(file: Path, source: str) -> bytes:
    try:
        if file == STANDARD_INPUT:
            return read_bounded(sys.stdin.buffer, source, most=sizes.TABLE)
        # a pipe too, such as a shell makes of `<(command)`
        with file.open("rb") as stream:
            return read_bounded(stream, source, most=sizes.TABLE)
    except FileNotFoundError:
        raise UsageError(
            "there is no such file", where=source, remedy="name a file of results, or - for standard input"
        ) from None
    except (OSError, ValueError, AttributeError) as error:
        # a standard input that was closed before the start is None, one that was closed since raises ValueError
        reason = error.strerror if isinstance(error, OSError) else "it is closed"
        if isinstance(error, OSError) and error.errno == errno.EFBIG:
            raise UsageError(f"the table is {reason}", where=source, remedy="split it, or leave columns out") from None
        remedy = "name the file in it" if file.is_dir() else "check its owner and permissions"
        raise UsageError(f"the file cannot be read: {reason}", where=source, remedy=remedy) from None


def _decode(data: bytes, source: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UsageError(
            f"the file is not UTF-8: {error.reason} at byte {error.start}",
            where=f"{source}:{line}",
            remedy="save it as CSV in UTF-8",
        ) from None

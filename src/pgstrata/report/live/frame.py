"""What every document about an archive has in common: its head, its doubts, and where it was recorded from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pgstrata.model.archive import ArchiveFacts
from pgstrata.report.blocks.model import Block, Document, Fact, Paragraph, Remark, end
from pgstrata.report.json.documents import SCHEMA
from pgstrata.report.live.words import say_dated
from pgstrata.report.sentences.causes import readable


def archive_document(
    archive: str, title: str, summary: str, *, answer: Iterable[str], doubts: Iterable[str], sections: Iterable[Block],
    version: str, kind: str = "Archive",
) -> Document:  # fmt: skip
    """A document about an archive, or about a source of another `kind`; `version` is pgstrata's.

    Sentences of answer and doubts have no full stops.
    """
    return Document(
        name=f"{kind} {archive}",
        title=title,
        summary=summary,
        answer=tuple(Paragraph(end(text)) for text in answer),
        doubts=tuple(map(Remark, doubts)),
        sections=tuple(sections),
        colophon=f"pgstrata {version}",
    )


def archive_json(archive: str, facts: ArchiveFacts, answer: Iterable[str], doubts: Iterable[str]) -> Mapping[str, Any]:
    """The same for programs; what the recorder cannot see is there as codes."""
    return {
        "schema": SCHEMA,
        "archive": archive,
        "answer": list(answer),
        "warnings": list(doubts),
        "limits": list(facts.limits),
    }


def recorded_from(archive: str, facts: ArchiveFacts) -> Iterator[Fact]:
    """The server, and what the archive has of it."""
    version = readable(facts.facts.get("server_version", "of unknown version"))
    yield Fact(name="server", value=f"PostgreSQL {version}")
    yield Fact(name="archive", value=f"{archive}, {say_dated(facts.span)}")

"""Plans, run headers and fingerprints as the JSON files of a study."""

import json

from pgstrata.errors import StudyError
from pgstrata.model.codec import decode, encode, parse_json
from pgstrata.model.server import Fingerprint
from pgstrata.ports.store import RunHeader
from pgstrata.ports.studies import StudyHead

FORMAT = 2


def render_plan_file(file: StudyHead) -> bytes:
    """plan.json as bytes."""
    return render_json({"format": FORMAT, **encode(file)})


def parse_plan_file(content: bytes, *, where: str) -> StudyHead:
    """The plan of a study; StudyError if it is damaged or of another format."""
    try:
        data = parse_json(content)
        number = data.pop("format")
        if number == FORMAT:
            return decode(StudyHead, data)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise damaged_plan(str(error), where) from error
    raise StudyError(
        f"the study has format {number}, this pgstrata knows {FORMAT}",
        where=where,
        remedy="use the pgstrata that made it, or a newer one",
    )


def damaged_plan(why: str, where: str) -> StudyError:
    """The error for a plan that is not the one that was written."""
    return StudyError(f"the plan of the study is damaged: {why}", where=where, remedy="restore it from a backup")


def render_header(header: RunHeader) -> bytes:
    """run.json as bytes."""
    return render_json(encode(header), indent=1)


def parse_header(content: bytes) -> RunHeader:
    """The header of a run from its run.json; StudyError if it is damaged."""
    try:
        return decode(RunHeader, parse_json(content))
    except (ValueError, TypeError, KeyError) as error:
        raise StudyError(f"the header of a run (run.json) is damaged: {error}") from error


def render_fingerprint(fingerprint: Fingerprint) -> bytes:
    """A fingerprint as a JSON file."""
    return render_json(dict(fingerprint.facts), indent=1)


def parse_fingerprint(content: bytes, *, where: str) -> Fingerprint:
    """A fingerprint from its JSON file; StudyError if it is damaged."""
    try:
        return Fingerprint(facts=decode(dict[str, str], parse_json(content)))
    except (ValueError, TypeError) as error:
        raise StudyError(f"a fingerprint is damaged: {error}", where=where) from error


def render_json(value: object, *, indent: int | None = None) -> bytes:
    """A value as a JSON file: UTF-8, with a line feed at its end."""
    return (json.dumps(value, ensure_ascii=False, indent=indent) + "\n").encode()

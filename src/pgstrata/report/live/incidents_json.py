"""Incidents for programs: base units, times in Unix seconds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pgstrata.model.explanation import Explained
from pgstrata.model.incidents import Found, Incident
from pgstrata.report.json.documents import SCHEMA, pick_fields, render_document
from pgstrata.report.live.frame import archive_json
from pgstrata.report.live.incidents import answer_sentences, doubt_sentences, say_begun, say_ended, say_first_cause
from pgstrata.report.live.json import cause_json

_INCIDENT: Final = (
    "kind begin begin_interval end ending found factor factor_interval peak throughput usual_throughput load usual_load"
)
_DEMAND: Final = "kind begin found throughput usual_throughput load usual_load factor statements"


def incidents_json(found: Found) -> str:
    """The document of `incidents --json`."""
    detected = found.detected
    return render_document(
        {
            **archive_json(found.archive, found.facts, answer_sentences(found), doubt_sentences(found)),
            "window": pick_fields(detected.span, "begin end"),
            "seconds": detected.seconds,
            "judged": detected.judged,
            "false_alarms_per_day": detected.rate * 86_400,
            "detectable_factor": detected.limit,
            "days": detected.days,
            "coarse_until": found.coarse_until,
            "gaps": [[gap.begin, gap.end] for gap in detected.gaps],
            "incidents": [
                _incident(incident, explained)
                for incident, explained in zip(detected.incidents, found.explained, strict=True)
            ],
            "demand": [pick_fields(change, _DEMAND) for change in detected.demand],
            "texts": dict(found.texts),
        }
    )


def _incident(incident: Incident, explained: Explained | None) -> Mapping[str, Any]:
    causes = () if explained is None else explained.explanation.causes
    return {
        **pick_fields(incident, _INCIDENT),
        "outcome": None if explained is None else explained.explanation.outcome.value,
        "cause": None if explained is None else say_first_cause(explained),
        "causes": [cause_json(cause, explained.texts if explained else {}) for cause in causes],
    }


def incident_json(incident: Incident, explained: Explained | None, archive: str) -> str:
    """What the command of --on-incident reads."""
    said = say_ended(incident) if incident.end is not None else say_begun(incident, explained)
    return render_document(
        {"schema": SCHEMA, "archive": archive, "answer": [said], "incident": _incident(incident, explained)}
    )

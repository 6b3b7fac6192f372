"""A noise floor that is known: where it comes from, and for JSON. Pure, without numpy for plans."""

from typing import Any

from pgstrata.model.floor import FLOOR_LIFETIME, Floor
from pgstrata.report.json.documents import pick_fields
from pgstrata.report.sentences.reasons import say_reason


def say_source(floor: Floor) -> str:
    """Study a, and with how many others it was pooled."""
    if not floor.pooled:
        return floor.source
    others = f"{floor.pooled} other{'s' if floor.pooled > 1 else ''}"
    return f"{floor.source} and {others} of the last {FLOOR_LIFETIME.days} days, pooled"


def floor_fields(floor: Floor) -> dict[str, Any]:
    """A floor in log units; `slices` and `runs` are keys of former versions."""
    return {
        **pick_fields(floor, "s0 measured cell metric design differences"),
        "source": say_source(floor),
        "doubt": say_reason(floor.doubt) if floor.doubt else "",
        "slices": None,
        "runs": None,
    }

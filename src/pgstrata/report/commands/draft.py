"""A draft of a workload in words: scripts, coverage, what was left out. Pure."""

from __future__ import annotations

from typing import Final

from pgstrata.model.draft import WorkloadDraft
from pgstrata.units import render_count

_MOST_NAMED: Final = 12


def render_draft(draft: WorkloadDraft, folder: str) -> str:
    """Lines for a person, who has to finish it."""
    looks = sum(script.looks for script in draft.scripts)
    scripts = render_count(len(draft.scripts), "script")
    counted = f"the time that pg_stat_statements counted in {draft.database}"
    lines = [f"{scripts} in {folder} cover {draft.covered * 100:.1f} % of {counted}:"]
    for script in draft.scripts:
        look = f", {render_count(script.looks, 'place')} to look at" if script.looks else ""
        lines.append(f"  {script.share * 100:5.1f} %  scripts/{script.name} (weight {script.weight}{look})")
    if draft.left_out:
        lines.append("left out:")
        lines += [f"  {one.share * 100:5.1f} %  {one.text}: {one.reason}" for one in draft.left_out[:_MOST_NAMED]]
        if rest := draft.left_out[_MOST_NAMED:]:
            lines.append(f"  {sum(one.share for one in rest) * 100:5.1f} %  {len(rest)} more")
    if draft.more:
        lines.append(f"further statements: {draft.more}, with {draft.more_share * 100:.1f} % of the time")
    lines += [f"note: {warning}" for warning in draft.warnings]
    lines.append("note: the ends of ranges in the scripts come from statistics of columns, and may be values of rows")
    lines.append("note: each statement is a transaction of its own: pg_stat_statements does not know transactions")
    todo = f"look at the {render_count(looks, 'line')} that begin with -- LOOK:, " if looks else ""
    lines.append(
        f"next: {todo}make the dump as {folder}/experiment.toml says, then `pgstrata plan {folder}/experiment.toml`"
    )
    return "\n".join(lines)

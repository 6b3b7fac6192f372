"""The experiment file of a draft: its scripts as one cell, on a dump that its author still has to make."""

from __future__ import annotations

import json
import re
import shlex
from typing import Final

from pgstrata.experiment.keys import CATALOGUE_MAJORS, slug
from pgstrata.model.draft import WorkloadDraft
from pgstrata.model.server import Address

SCRIPTS: Final = "scripts"
_MB: Final = 1 << 20
_LINE: Final = 116


def dump_name(database: str) -> str:
    """The dump that the draft expects beside itself."""
    return f"{slug(database)}.dump"


def dump_command(address: Address, database: str) -> str:
    """The command that makes it, without a password."""
    given = {"host": address.host, "port": str(address.port or ""), "username": address.user}
    options = [f"--{name}={value}" for name, value in given.items() if value]
    service = address.parameters.get("service")
    place = f"service={service} dbname={database}" if service else database
    fixed = ("pg_dump", "--format=custom", "--no-owner", "--no-privileges", f"--file={dump_name(database)}")
    return _one_line(shlex.join((*fixed, *options, f"--dbname={place}")))


def render_experiment(draft: WorkloadDraft, address: Address, *, major: str, size: int) -> str:
    """The text of experiment.toml.

    Args:
        draft: the scripts, which lie in the folder `SCRIPTS` beside the file.
        address: the server that was asked.
        major: its major version.
        size: bytes of its database.
    """
    others = [each for each in CATALOGUE_MAJORS if each != major]
    levels = [major if major in CATALOGUE_MAJORS else others[0], others[-1]]
    levels = sorted(levels, key=int)
    scripts = "".join(
        f'    {{ file = "{SCRIPTS}/{script.name}", weight = {script.weight} }},\n' for script in draft.scripts
    )
    head = (
        f"Draft of a workload from the database {draft.database} of PostgreSQL {draft.version}. Its scripts cover "
        f"{draft.covered * 100:.1f} % of the time that pg_stat_statements counted there. Each statement is a "
        "transaction of its own. The ends of ranges come from statistics of columns, and may be values of rows. "
        "`pgstrata plan` on this file says what is not finished."
    )
    question = f"Is {levels[-1]} faster than {levels[0]} for the statements of {draft.database}?"
    return f"""\
{_comment(head)}

question = {_quote(question)}
blocks   = 12
budget   = "1h"

[factors]
server = {json.dumps(levels)}

[[cells]]
workload = "custom"
clients  = 4
run      = "30s"
scripts  = [
{scripts}]

# Make the dump in the folder of this file. Every server that is compared must be able to restore it:
#   {dump_command(address, draft.database)}
[cells.data]
dump = {_quote(dump_name(draft.database))}
size = "{max(1, round(size / _MB))} MB"
"""


def _comment(text: str) -> str:
    lines, line = [], "#"
    for word in _one_line(text).split():
        if len(line) + 1 + len(word) > _LINE:
            lines.append(line)
            line = "#"
        line += f" {word}"
    return "\n".join((*lines, line))


def _one_line(text: str) -> str:
    """A text that cannot end a comment."""
    return re.sub(r"[\x00-\x1f\x7f\x85\u2028\u2029]", "?", text)


def _quote(text: str) -> str:
    return json.dumps(_one_line(text), ensure_ascii=False)

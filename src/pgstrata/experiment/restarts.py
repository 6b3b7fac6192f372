"""The table `[restart]`: how running servers (dsn:) are restarted, by level of the factor server."""

from collections.abc import Mapping
from dataclasses import replace

from pgstrata.experiment.findings import Findings
from pgstrata.experiment.keys import WrongValueError, suggest
from pgstrata.experiment.servers import mask_conninfo, parse_server
from pgstrata.model.experiment import Environment, Reset, ServerKind


def with_restarts(
    environments: tuple[Environment, ...], commands: Mapping[str, tuple[str, ...]], reset: Reset, findings: Findings
) -> tuple[Environment, ...]:
    """Environments whose running servers have the command for them; levels that fit none are noted."""
    if commands and reset is Reset.NONE:
        what = 'reset = "none" keeps a server from run to run, and [restart] restarts it before each'
        findings.add(("restart",), what, 'write reset = "restart", or take [restart] out')
    running = {each.server.text for each in environments if each.server.kind is ServerKind.DSN}
    known: dict[str, tuple[str, ...]] = {}
    for level, command in commands.items():
        text = _read_level(level)
        if text in running:
            known[text] = command
        elif running:
            remedy = suggest(text, sorted(running), noun="one of")
            findings.add(("restart",), f"{text!r} is no running server of this experiment", remedy)
        else:
            findings.add(("restart",), "no server of this experiment is running already (dsn:)", "take it out")
    return tuple(
        replace(each, server=replace(each.server, restart=known[each.server.text]))
        if each.server.text in known
        else each
        for each in environments
    )


def _read_level(level: str) -> str:
    """As environments show it: without passwords."""
    try:
        return parse_server(level).text
    except WrongValueError:
        return mask_conninfo(level)

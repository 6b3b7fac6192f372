"""Looks at the profile of pg_wait_sampling by a psql of its own, twice a second, and never resets it.

The server itself samples what its processes wait for, a hundred times a second as it comes; what was counted between
two looks is what sessions waited for meanwhile. It is used where the library is loaded: in servers of our own where the
experiment loads it in all of them, in running ones where somebody did. Not in slices: it goes on through the others'
turns, in which sessions wait for their clients.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pgstrata.collectors.extensions import Use, create_extension, find_schema, use_where_all_load
from pgstrata.collectors.repeated_statement import PLAIN_STRINGS, render_watch, start_watch
from pgstrata.collectors.statements import statements_for
from pgstrata.collectors.waits.parse import SAMPLES, parse_profile
from pgstrata.errors import ServerFailedError
from pgstrata.libpq import quote_literal
from pgstrata.model.experiment import Experiment
from pgstrata.ports.collector import CaptureSubject, Sampled, Sampling, Window

EXTENSION: Final = "pg_wait_sampling"
SECONDS: Final = 0.5
"""Between two looks: what lies outside the first and the last one within the window is not seen."""
_OLDEST: Final = 100000
"""Servers before 10 do not show their other processes, which tell how often the extension has looked."""
_BY_PROCESS: Final = f"{EXTENSION}.profile_pid"


class WaitsSampler:
    """Implements `ports.Sampler` with pg_wait_sampling.

    Args:
        use: in which servers.
    """

    name = SAMPLES.partition(".")[0]
    paused = True

    def __init__(self, use: Use | None = None) -> None:
        self._use = use or Use()

    def prepare(self, subject: CaptureSubject) -> None:
        if self._use.concerns(subject):
            create_extension(subject, EXTENSION, _BY_PROCESS)

    def start(self, subject: CaptureSubject, folder: str) -> Sampling | None:
        server = subject.server
        version = server.build.version.number
        if subject.turns or version < _OLDEST or not self._use.concerns(subject):
            return None
        schema = _check(subject)
        if not schema:
            return None
        statement = statements_for(__package__, "profile", version)[0][1]
        application = server.address.parameters.get("application_name", subject.driver)
        script = render_script(statement, schema, application)
        return start_watch(subject, script, folder=folder, name=SAMPLES)

    def parse(self, evidence: Mapping[str, bytes], window: Window) -> Sampled:
        return parse_profile(evidence[SAMPLES], window)


def use_of_waits(experiment: Experiment) -> Use:
    """Nowhere without diagnosis."""
    return use_where_all_load(experiment, EXTENSION) if experiment.diagnosis else Use()


def render_script(statement: str, schema: str, application: str) -> str:
    """The statement for the sessions of an application, with the extension's objects in a schema."""
    text = statement.replace("@schema@", schema).replace("@application@", quote_literal(application))
    return render_watch(text, SECONDS, begin=PLAIN_STRINGS)


def _check(subject: CaptureSubject) -> str:
    """The schema of its objects; empty where the library is not loaded.

    Raises:
        ServerFailedError: it is loaded and of no use.
    """
    asked = f"SELECT setting FROM pg_settings WHERE name = {quote_literal(_BY_PROCESS)}"
    by_process = subject.sql.query(subject.server.address, asked).rows
    if not by_process:
        return ""
    if by_process[0][0] != "on":
        what = f"{_BY_PROCESS} is off, so that nobody can tell whose waits were sampled"
        raise _useless(subject, what, f"settings.{_BY_PROCESS} = on")
    schema = find_schema(subject, EXTENSION)
    if not schema:
        what = f"{EXTENSION} is loaded, but its objects are not in the database"
        raise _useless(
            subject, what, f"install its SQL files beside the server's, or allow CREATE EXTENSION {EXTENSION}"
        )
    return schema


def _useless(subject: CaptureSubject, what: str, remedy: str) -> ServerFailedError:
    return ServerFailedError(what, where=subject.server.environment.title, remedy=remedy)

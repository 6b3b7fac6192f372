from types import SimpleNamespace

import pytest

from pgstrata.collectors.statements import Use
from pgstrata.collectors.waits.sampler import WaitsSampler, use_of_waits
from pgstrata.errors import ServerFailedError, SqlError
from pgstrata.model.experiment import Environment, ServerKind
from pgstrata.ports.server import QueryResult

BOTH = Use(own=True, running=True)


class FakeSql:
    """A server whose library is loaded or not, with or without the extension's objects."""

    host = "client"

    def __init__(self, by_process="on", schema="public"):
        self._answers = {"pg_settings": by_process, "pg_extension": schema}
        self.asked = []
        self.scripts = []

    def query(self, address, statement):
        self.asked.append(statement)
        answer = next(answer for word, answer in self._answers.items() if word in statement)
        return QueryResult(columns=("x",), rows=((answer,),) if answer else ())

    def execute(self, address, script):
        self.asked.append(script)
        raise SqlError("not allowed", sqlstate="42501")

    def watch(self, address, script, *, folder, name):
        self.scripts.append(script)
        return f"{folder}/{name}"


def subject(sql, *, kind=ServerKind.PREFIX, version=150018, turns=False, **parameters):
    environment = SimpleNamespace(server=SimpleNamespace(kind=kind), title="environment plain")
    build = SimpleNamespace(version=SimpleNamespace(number=version))
    address = SimpleNamespace(parameters=parameters)
    server = SimpleNamespace(environment=environment, build=build, address=address)
    return SimpleNamespace(sql=sql, server=server, turns=turns, driver="pgbench")


def experiment(*libraries, diagnosis=True):
    environments = tuple(
        Environment(
            name="a",
            levels=(),
            server=SimpleNamespace(kind=ServerKind.PREFIX),
            settings={"shared_preload_libraries": each},
        )
        for each in libraries
    )
    return SimpleNamespace(environments=environments, diagnosis=diagnosis, query_text=False)


def test_it_is_used_where_all_servers_of_our_own_load_it_and_never_in_one_arm_only():
    assert use_of_waits(experiment("pg_wait_sampling", "pg_stat_statements,pg_wait_sampling")).own
    assert not use_of_waits(experiment("pg_wait_sampling", "")).own
    assert use_of_waits(experiment("pg_wait_sampling", diagnosis=False)) == Use()


def test_it_looks_at_the_driver_s_sessions_in_the_extension_s_schema():
    sql = FakeSql(schema='"my schema"')
    sampling = WaitsSampler(BOTH).start(subject(sql, application_name="it's"), "/there")
    assert (sampling.output, sampling.process) == ("/there/waits.samples", "/there/waits.samples")
    (script,) = sql.scripts
    assert '"my schema".pg_wait_sampling_profile' in script
    assert "strpos(s.application_name, 'it''s') = 1" in script
    assert "@" not in script.partition("SELECT")[2]


@pytest.mark.parametrize(
    ("use", "where"),
    [
        (Use(), {}),
        (Use(running=True), {}),
        (BOTH, {"turns": True}),
        (BOTH, {"version": 90624}),
    ],
)
def test_elsewhere_nothing_is_asked(use, where):
    sql = FakeSql()
    assert WaitsSampler(use).start(subject(sql, **where), "/there") is None
    assert sql.asked == []


def test_a_server_that_does_not_load_it_is_left_alone():
    sql = FakeSql(by_process="")
    assert WaitsSampler(BOTH).start(subject(sql, kind=ServerKind.DSN), "/there") is None
    assert sql.scripts == []


@pytest.mark.parametrize(
    ("server", "why"), [({"by_process": "off"}, "is off"), ({"schema": ""}, "not in the database")]
)
def test_one_that_loads_it_in_vain_says_why(server, why):
    sampler, sql = WaitsSampler(BOTH), FakeSql(**server)
    sampler.prepare(subject(sql))
    with pytest.raises(ServerFailedError, match=why):
        sampler.start(subject(sql), "/there")

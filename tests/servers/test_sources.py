"""Installations become builds: facts, memory, copies, and errors that name the remedy."""

import os
import sys
from pathlib import Path

import pytest

from pgstrata import errors
from pgstrata.hosts.local import LocalHost
from pgstrata.model.experiment import ServerKind, ServerSpec
from pgstrata.servers.shelf import ServerSite
from pgstrata.servers.supply import Servers, installed_prefixes
from pgstrata.servers.version import has_assertions, parse_postgres_binary


def servers(cache, *, here=None, host=None, machine="x86_64"):
    here = here or LocalHost()
    return Servers.make(
        ServerSite(here=here, host=host or here, cache=str(cache), note=lambda line: None),
        machine=machine,
        python=sys.executable,
        drivers=("pgbench",),
    )


def prefix(folder):
    return ServerSpec(kind=ServerKind.PREFIX, value=str(folder))


def test_the_facts_of_a_prefix_come_from_its_binary_without_pg_config(tmp_path, installation):
    where = installation(tmp_path / "pg", configure="'--with-openssl' '--enable-cassert'")
    build = servers(tmp_path / "cache").resolve(prefix(where))
    assert (build.version.number, build.version.text, build.supplier) == (160003, "16.3", "prefix")
    assert build.compiler == "gcc (Debian 12.2.0-14) 12.2.0"
    assert build.cflags == "-Wall -O2"
    assert build.assertions
    assert len(build.digest) == 64
    assert build.program("postgres") == f"{where}/bin/postgres"


def test_a_trailing_slash_does_not_make_another_build(tmp_path, installation):
    where = installation(tmp_path / "pg")
    supply = servers(tmp_path / "cache")
    assert supply.resolve(prefix(f"{where}/")).prefix == supply.resolve(prefix(where)).prefix


def test_an_unchanged_build_is_remembered_and_a_changed_one_looked_at_again(tmp_path, installation, scripted):
    where = installation(tmp_path / "pg")
    host = scripted(lambda command: None)
    supply = servers(tmp_path / "cache", here=host)
    first = supply.resolve(prefix(where))
    host.asked.clear()
    assert supply.resolve(prefix(where)) == first
    assert {argv[0] for argv in host.asked} == {"test", "stat"}
    program = where / "bin" / "postgres"
    program.write_text(program.read_text().replace("PostgreSQL 16.3 on", "PostgreSQL 16.14 on"))
    assert supply.resolve(prefix(where)).version.number == 160014


@pytest.mark.parametrize("content", [b"{", b"[]", b'{"a": 1}', b"\xff", b"[" * 200_000])
def test_a_damaged_memory_is_only_slower(tmp_path, installation, content):
    where = installation(tmp_path / "pg")
    cache = tmp_path / "cache"
    cache.mkdir()
    (cache / "builds.json").write_bytes(content)
    assert servers(cache).resolve(prefix(where)).version.number == 160003


def test_a_memory_that_cannot_be_written_is_only_slower(tmp_path, installation):
    where = installation(tmp_path / "pg")
    (tmp_path / "cache").write_text("in the way")
    assert servers(tmp_path / "cache").resolve(prefix(where)).version.number == 160003


def test_a_fork_that_only_its_programs_name_is_named(tmp_path, installation):
    where = installation(tmp_path / "pg")
    program = where / "bin" / "postgres"
    program.write_text(program.read_text().replace("(PostgreSQL)", "(EnterpriseDB)"))
    assert servers(tmp_path / "cache").resolve(prefix(where)).version.fork == "EnterpriseDB"


def test_an_empty_folder_is_refused(tmp_path):
    with pytest.raises(errors.UsageError, match="no bin/postgres") as caught:
        servers(tmp_path / "cache").resolve(prefix(tmp_path))
    assert "/usr/lib/postgresql/16" in caught.value.remedy


def test_the_bin_folder_itself_is_answered_with_the_folder_above(tmp_path, installation):
    where = installation(tmp_path / "pg")
    with pytest.raises(errors.UsageError) as caught:
        servers(tmp_path / "cache").resolve(prefix(where / "bin"))
    assert caught.value.remedy.endswith(f"prefix:{where}")


def test_a_relative_folder_is_refused(tmp_path):
    with pytest.raises(errors.UsageError, match="absolute"):
        servers(tmp_path).resolve(prefix("pg16"))


def test_a_client_installation_is_no_server(tmp_path, installation):
    where = installation(tmp_path / "pg", programs=())
    with pytest.raises(errors.UsageError, match="no bin/initdb"):
        servers(tmp_path / "cache").resolve(prefix(where))


def test_a_program_that_does_not_start_is_reported(tmp_path, installation):
    where = installation(tmp_path / "pg", code=3)
    with pytest.raises(errors.HostNotFitError, match="does not start"):
        servers(tmp_path / "cache").resolve(prefix(where))


def test_a_wrapper_around_a_server_is_not_taken_for_one(tmp_path, installation):
    where = installation(tmp_path / "pg", banner="nothing")
    with pytest.raises(errors.ParseError, match="no PostgreSQL server"):
        servers(tmp_path / "cache").resolve(prefix(where))


def test_an_architecture_without_wheels_still_has_its_installed_servers(tmp_path, installation):
    where = installation(tmp_path / "pg")
    supply = servers(tmp_path / "cache", machine="riscv64")
    assert supply.resolve(prefix(where)).version.number == 160003
    assert all(row.level.startswith("prefix:") for row in supply.list())
    with pytest.raises(errors.HostNotFitError, match="riscv64"):
        supply.fetch(["embedded"])


@pytest.mark.parametrize(
    ("kind", "said"),
    [(ServerKind.BUILD, "build:/DIR"), (ServerKind.MAVEN, "prefix:DIR"), (ServerKind.DSN, "prefix:DIR")],
)
def test_what_cannot_be_resolved_is_refused_with_what_can(tmp_path, kind, said):
    with pytest.raises(errors.UsageError) as caught:
        servers(tmp_path).resolve(ServerSpec(kind=kind, value="x"))
    assert said in caught.value.remedy


def test_a_check_says_of_each_program_whether_it_starts(tmp_path, installation):
    where = installation(tmp_path / "pg", programs=("initdb", "psql"))
    supply = servers(tmp_path / "cache")
    checks = {check.program: check for check in supply.check(supply.resolve(prefix(where)))}
    assert checks["psql"].works
    assert checks["psql"].text == "psql (PostgreSQL) 16.3"
    assert not checks["pgbench"].works
    assert checks["pgbench"].text == "not there"


def test_the_list_shows_what_could_be_fetched_without_fetching_it(tmp_path):
    rows = servers(tmp_path / "cache").list()
    assert [row.level for row in rows[:6]] == ["embedded", "18", "17", "16", "15", "14"]
    assert not any(row.fetched for row in rows[:6])
    assert rows[0].version == "18.6"
    assert not (tmp_path / "cache" / "servers").exists()


def test_only_levels_of_the_catalogue_can_be_fetched_ahead(tmp_path):
    with pytest.raises(errors.UsageError, match="cannot be fetched"):
        servers(tmp_path).fetch(["9.6"])


def test_installed_prefixes_are_real_folders_named_once():
    found = installed_prefixes(LocalHost())
    assert len({os.path.realpath(f"{path}/bin/postgres") for path in found}) == len(found)
    assert all(Path(path, "bin", "postgres").exists() for path in found)


@pytest.mark.parametrize(
    ("configure", "expected"),
    [("'--enable-cassert'", True), ("-Dcassert=true", True), ("'--with-openssl'", False), ("", False)],
)
def test_assertions_are_seen_in_the_configuration(configure, expected):
    assert has_assertions(configure) is expected


def test_assertions_that_no_configuration_tells_are_seen_in_the_binary():
    """meson keeps no record of its options, and flags may turn them on as well."""
    banner = b"\0PostgreSQL 17.5 on x86_64-linux, compiled by gcc-12.2.0, 64-bit\0"
    assert parse_postgres_binary(banner + b"CritSectionCount > 0\0").assertions
    assert not parse_postgres_binary(banner).assertions


def test_a_program_that_is_no_server_has_no_facts():
    with pytest.raises(errors.ParseError):
        parse_postgres_binary(b"\x7fELF\0hello\0")


# ---------------------------------------------------------------------------------- as root

as_root = pytest.mark.skipif(os.getuid() != 0, reason="needs root")


@pytest.mark.root
@pytest.mark.company
@as_root
def test_an_installation_that_the_server_user_cannot_enter_is_copied_once(entered, installation):
    closed = entered / "closed"
    where = installation(closed / "pg")
    closed.chmod(0o700)
    supply = servers(entered / "cache", host=LocalHost(user="nobody"))
    build = supply.resolve(prefix(where))
    assert build.prefix.startswith(f"{entered}/cache/servers/prefix-")
    assert build.process_environment == {"LD_LIBRARY_PATH": f"{build.prefix}/lib"}
    assert build.spec.value == str(where)
    assert supply.resolve(prefix(where)).prefix == build.prefix
    assert all(check.works for check in supply.check(build) if check.text != "not there")


@pytest.mark.root
@pytest.mark.company
@as_root
def test_an_installation_that_cannot_be_moved_names_the_folder_that_is_closed(entered, installation):
    closed = entered / "closed"
    where = installation(closed / "pg")
    (where / "share" / "postgres.bki").unlink()
    closed.chmod(0o700)
    with pytest.raises(errors.HostNotFitError, match="nobody") as caught:
        servers(entered / "cache", host=LocalHost(user="nobody")).resolve(prefix(where))
    assert caught.value.where == str(closed)

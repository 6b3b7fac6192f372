"""Builds that could not be compared fairly are refused before anything is made."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from pgstrata.app.machine import libpq_variables
from pgstrata.app.wiring import _refuse_unfair
from pgstrata.errors import PlanRefusedError
from pgstrata.model.experiment import Allow, ServerKind, ServerSpec
from pgstrata.model.server import Build, ServerVersion

GCC = Build(
    spec=ServerSpec(kind=ServerKind.PREFIX, value="/opt/pg16"),
    prefix="/opt/pg16",
    version=ServerVersion(text="16.3", number=160003),
    supplier="prefix",
    compiler="gcc 12.2.0",
    configure="'--with-openssl'",
    cflags="-O2",
    digest="a",
)
CLANG = replace(GCC, prefix="/opt/other", compiler="clang 15.0.7", digest="b")
ASSERTING = replace(GCC, assertions=True, digest="c")
RUNNING = replace(CLANG, spec=ServerSpec(kind=ServerKind.DSN, value="service"))


def refuse_unfair(*builds, **allow):
    plan = SimpleNamespace(experiment=SimpleNamespace(allow=Allow(**allow)))
    _refuse_unfair(plan, {f"environment-{number}": build for number, build in enumerate(builds)})


def test_builds_of_one_compiler_are_compared():
    refuse_unfair(GCC, replace(GCC, digest="d"))


def test_builds_of_two_compilers_are_refused_with_each_environments_compiler():
    with pytest.raises(PlanRefusedError, match="different compilers") as caught:
        refuse_unfair(GCC, CLANG)
    assert caught.value.details == ("environment-0: gcc 12.2.0", "environment-1: clang 15.0.7")
    assert "mixed_compilers = true" in caught.value.remedy
    assert caught.value.exit_code == 2


def test_two_compilers_may_be_mixed_knowingly():
    refuse_unfair(GCC, CLANG, mixed_compilers=True)


def built(tree, compiler, level=""):
    spec = ServerSpec(kind=ServerKind.BUILD, value=tree, build=(("compiler", level),) if level else ())
    return replace(GCC, spec=spec, compiler=compiler)


def test_compilers_that_are_a_factor_on_the_same_sources_are_compared():
    refuse_unfair(built("/a", "gcc 12.2.0", "gcc"), built("/a", "clang 15.0.7", "clang"))
    refuse_unfair(*(built(tree, name, name) for tree in ("/a", "/b") for name in ("gcc", "clang")))


def test_compilers_that_change_together_with_the_source_are_refused():
    with pytest.raises(PlanRefusedError, match="different compilers"):
        refuse_unfair(built("/a", "gcc 12.2.0", "gcc"), built("/b", "clang 15.0.7", "clang"))
    with pytest.raises(PlanRefusedError, match="different compilers"):
        refuse_unfair(built("/a", "gcc 12.2.0"), built("/b", "gcc 13.1.0"))


def built_by(tree, system):
    return replace(GCC, spec=ServerSpec(kind=ServerKind.BUILD, value=tree, build=(("system", system),)))


def test_sources_that_no_one_system_builds_are_refused_unless_it_is_meant():
    with pytest.raises(PlanRefusedError, match="by meson and others by configure") as caught:
        refuse_unfair(built_by("/pg15", "configure"), built_by("/pg18", "meson"))
    assert caught.value.details == ("environment-0: configure", "environment-1: meson")
    refuse_unfair(built_by("/pg15", "configure"), built_by("/pg18", "meson"), mixed_compilers=True)


def test_a_system_that_is_a_factor_on_the_same_sources_is_compared():
    refuse_unfair(*(built_by(tree, system) for tree in ("/a", "/b") for system in ("meson", "configure")))


def test_a_compiler_that_is_unknown_is_no_other_one():
    refuse_unfair(GCC, replace(CLANG, compiler=""))


def test_the_compiler_of_a_running_server_is_not_ours_to_choose():
    refuse_unfair(GCC, RUNNING)


def test_a_build_with_assertions_is_refused_by_its_environment():
    with pytest.raises(PlanRefusedError, match="assertions") as caught:
        refuse_unfair(GCC, ASSERTING)
    assert caught.value.where == "environment-1"
    assert "assertions = true" in caught.value.remedy


def test_assertions_may_be_measured_knowingly():
    refuse_unfair(GCC, ASSERTING, assertions=True)


def test_the_variables_of_libpq_are_told_from_those_of_pgstrata():
    environ = {"PGPORT": "1", "PGSTRATA_DATA": "/d", "PATH": "/bin", "PGSERVICE": "x"}
    assert libpq_variables(environ) == {"PGPORT": "1", "PGSERVICE": "x"}

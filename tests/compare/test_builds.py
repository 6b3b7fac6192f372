"""How two servers were built travels with every comparison of them, where it is not what was compared."""

from dataclasses import replace

import pytest

from pgstrata.compare import compare_pairs, compare_study
from pgstrata.compare.environments.builds import doubt_builds
from pgstrata.model.doubts import BuildsDiffer, NamedDoubt
from pgstrata.model.experiment import ServerKind, ServerSpec
from pgstrata.model.server import Fingerprint
from pgstrata.model.study import Study
from studies import BASE, OTHER, make_environment, make_plan, simulate

OLD = {"server.compiler": "gcc 4.4.7", "server.cflags": "-Wall -fwrapv -O2", "server.supplier": "jars"}
NEW = {"server.compiler": "gcc 7.5.0", "server.cflags": "-Wextra -fwrapv -Os -g", "server.supplier": "jars"}


def doubts(base, other, *, specs=(None, None), compare=compare_study):
    """Doubts about how they were built, of all comparisons of two environments; they must be the same."""
    environments = [
        make_environment(name) if spec is None else replace(make_environment(name), server=spec)
        for name, spec in zip((BASE, OTHER), specs, strict=True)
    ]
    plan = make_plan(environments, clients=(1, 4))
    runs = simulate(plan)
    host = Fingerprint(facts={})
    study = Study(
        name="s",
        plan=plan,
        runs=tuple(runs),
        host=host,
        client=host,
        created="",
        version="0",
        environments={BASE: Fingerprint(facts=base), OTHER: Fingerprint(facts=other)},
    )
    plain = compare(plan, runs)
    doubted = doubt_builds(plain, study)
    assert [replace(one, warnings=()) for one in doubted] == [replace(one, warnings=()) for one in plain]
    (found,) = {one.warnings[len(before.warnings) :] for one, before in zip(doubted, plain, strict=True)}
    return found


def compiled(*, compilers=("gcc 4.4.7", "gcc 4.4.7"), systems=("", ""), flags=(("-O2",), ("-O2",))):
    names = (OTHER, BASE)
    return (BuildsDiffer(code="compilers_differ", environments=names, makers=compilers, systems=systems, flags=flags),)


@pytest.mark.parametrize("compare", [compare_study, compare_pairs])
def test_every_comparison_names_both_compilers_with_their_flags(compare):
    expected = compiled(compilers=("gcc 7.5.0", "gcc 4.4.7"), flags=(("-Os",), ("-O2",)))
    assert doubts(OLD, NEW, compare=compare) == expected


def test_one_compiler_with_other_flags_is_named_with_what_differs():
    found = doubts(OLD, {**OLD, "server.cflags": "-fwrapv -O2 -march=native -O3"})
    assert found == compiled(flags=(("-O3", "-march=native"), ("-O2",)))


@pytest.mark.parametrize("flags", ["-fwrapv -Wshadow -O2", "-O2 -fwrapv -ffile-prefix-map=/build/a=.", "", "-g -Wall"])
def test_flags_that_change_nothing_of_the_code_are_no_difference(flags):
    assert doubts(OLD, {**OLD, "server.cflags": flags}) == ()


def test_two_build_systems_are_named_with_their_compilers():
    found = doubts({**OLD, "server.system": "configure"}, {**OLD, "server.system": "meson"})
    assert found == compiled(systems=("meson", "configure"))


def test_what_is_not_known_is_no_difference():
    assert doubts(OLD, {}) == ()
    assert doubts(OLD, {**OLD, "server.compiler": ""}) == ()


def test_a_compiler_that_is_the_factor_is_no_doubt():
    one, other = (
        ServerSpec(kind=ServerKind.BUILD, value="/src", build=(("compiler", name),)) for name in ("gcc", "cc")
    )
    assert doubts(OLD, NEW, specs=(one, other)) == ()
    elsewhere = replace(other, value="/other")
    assert [each.code for each in doubts(OLD, NEW, specs=(one, elsewhere))] == ["compilers_differ"]


def test_servers_of_two_suppliers_are_named_with_them():
    prefix = ServerSpec(kind=ServerKind.PREFIX, value="/opt/pg")
    found = doubts({**OLD, "server.supplier": "prefix"}, OLD, specs=(prefix, None))
    assert found == (BuildsDiffer(code="suppliers_differ", environments=(OTHER, BASE), makers=("jars", "prefix")),)


def test_assertions_are_said_of_whichever_server_has_them():
    asserting = {**OLD, "server.assertions": "on"}
    assert doubts(OLD, asserting) == (NamedDoubt(code="built_with_assertions", names=(OTHER,)),)
    assert doubts(asserting, OLD) == (NamedDoubt(code="built_with_assertions", names=(BASE,)),)

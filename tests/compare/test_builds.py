"""How two servers were built travels with every comparison of them, where it is not what was compared."""

from dataclasses import replace

import pytest

from pgstrata.compare import compare_pairs, compare_study
from pgstrata.compare.environments.builds import doubt_builds
from pgstrata.model.answer import Study
from pgstrata.model.experiment import ServerKind, ServerSpec
from pgstrata.model.server import Fingerprint
from studies import BASE, OTHER, make_environment, make_plan, simulate

OLD = {"server.compiler": "gcc 4.4.7", "server.cflags": "-Wall -fwrapv -O2", "server.supplier": "jars"}
NEW = {"server.compiler": "gcc 7.5.0", "server.cflags": "-Wextra -fwrapv -Os -g", "server.supplier": "jars"}
COMPILERS = (
    "built in different ways, whose effect is in the difference too: pg18 by gcc 7.5.0 -Os, pg16 by gcc 4.4.7 -O2"
)


def doubts(base, other, *, specs=(None, None), compare=compare_study):
    """Codes and texts about how they were built, of all comparisons of two environments; they must be the same."""
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
    return {warning.code: warning.text for warning in found}


@pytest.mark.parametrize("compare", [compare_study, compare_pairs])
def test_every_comparison_names_both_compilers_with_their_flags(compare):
    assert doubts(OLD, NEW, compare=compare) == {"compilers_differ": COMPILERS}


def test_one_compiler_with_other_flags_is_named_with_what_differs():
    found = doubts(OLD, {**OLD, "server.cflags": "-fwrapv -O2 -march=native -O3"})
    assert found["compilers_differ"].endswith("pg18 by gcc 4.4.7 -O3 -march=native, pg16 by gcc 4.4.7 -O2")


@pytest.mark.parametrize("flags", ["-fwrapv -Wshadow -O2", "-O2 -fwrapv -ffile-prefix-map=/build/a=.", "", "-g -Wall"])
def test_flags_that_change_nothing_of_the_code_are_no_difference(flags):
    assert doubts(OLD, {**OLD, "server.cflags": flags}) == {}


def test_two_build_systems_are_named_with_their_compilers():
    found = doubts({**OLD, "server.system": "configure"}, {**OLD, "server.system": "meson"})
    assert found["compilers_differ"].endswith("pg18 by gcc 4.4.7 with meson -O2, pg16 by gcc 4.4.7 with configure -O2")


def test_what_is_not_known_is_no_difference():
    assert doubts(OLD, {}) == {}
    assert doubts(OLD, {**OLD, "server.compiler": ""}) == {}


def test_a_compiler_that_is_the_factor_is_no_doubt():
    one, other = (
        ServerSpec(kind=ServerKind.BUILD, value="/src", build=(("compiler", name),)) for name in ("gcc", "cc")
    )
    assert doubts(OLD, NEW, specs=(one, other)) == {}
    elsewhere = replace(other, value="/other")
    assert doubts(OLD, NEW, specs=(one, elsewhere)).keys() == {"compilers_differ"}


def test_servers_of_two_suppliers_are_named_with_them():
    prefix = ServerSpec(kind=ServerKind.PREFIX, value="/opt/pg")
    found = doubts({**OLD, "server.supplier": "prefix"}, OLD, specs=(prefix, None))
    assert found == {
        "suppliers_differ": "pg18 by jars, pg16 by prefix: how they were packaged is in the difference too"
    }


def test_assertions_are_said_of_whichever_server_has_them():
    asserting = {**OLD, "server.assertions": "on"}
    text = "is built with assertions, which cost more than most differences"
    assert doubts(OLD, asserting) == {"built_with_assertions": f"pg18 {text}"}
    assert doubts(asserting, OLD) == {"built_with_assertions": f"pg16 {text}"}

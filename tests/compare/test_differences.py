"""Observed differences between environments, declared and not."""

from dataclasses import replace

import pytest

import records
from pgstrata.compare import exclusive_settings, undeclared_differences
from pgstrata.compare.environments.spellings import unify_spelling
from pgstrata.model.doubts import DefaultsDiffer, UndeclaredDifference
from pgstrata.model.experiment import (
    Cell,
    ConnectionKind,
    ControlKind,
    Environment,
    Level,
    ServerKind,
    ServerSpec,
)
from pgstrata.model.server import Fingerprint


def make_environment(name, server="16", **rest):
    return Environment(
        name=name,
        levels=(Level(factor="server", value=server),),
        server=ServerSpec(kind=ServerKind.CATALOGUE, value=server),
        **rest,
    )


def make_experiment(environments):
    return records.make_experiment(
        tuple(environments),
        question="Is it faster?",
        seed=42,
        cells=(Cell(workload="simple-update", scale=10, clients=4, threads=1),),
    )


def differences(environments, *facts):
    observed = {
        environment.name: Fingerprint(facts=found) for environment, found in zip(environments, facts, strict=True)
    }
    return undeclared_differences(observed, make_experiment(environments))


SAME = (make_environment("a"), make_environment("b"))
MAJORS = (make_environment("a", "16"), make_environment("b", "18"))


def test_equal_fingerprints_give_no_warning():
    facts = {"server.digest": "1", "settings.jit": "on", "host.cpu": "x", "connection.kind": "socket"}
    assert differences(SAME, facts, facts) == ()


@pytest.mark.parametrize(
    "fact", ["server.digest", "host.cpu", "settings.work_mem", "initdb.locale", "run.pgbench", "connection.kind"]
)
def test_a_fact_that_differs_without_a_reason_is_named_with_its_values(fact):
    (warning,) = differences(SAME, {fact: "x"}, {fact: "y"})
    assert warning == UndeclaredDifference(fact=fact, holders={"x": ("a",), "y": ("b",)})


def test_everything_about_the_server_is_declared_where_the_server_is_the_factor():
    assert differences(MAJORS, {"server.version": "16", "server.compiler": "gcc"}, {"server.version": "18"}) == ()
    assert differences(MAJORS, {"server.supplier": "x"}, {"server.supplier": "y"}) == ()


def test_kernels_and_command_lines_are_declared_where_they_are_factors():
    kernels = (make_environment("a", layers={"kernel": "6.1"}), make_environment("b", layers={"kernel": "6.12"}))
    found = {"kernel": "6.1.0-47-amd64", "boot.options": "quiet"}
    assert differences(kernels, found, {"kernel": "6.12.117-amd64", "boot.options": "mitigations=off"}) == ()
    (warning,) = differences(SAME, found, {**found, "kernel": "6.12.117-amd64"})
    assert warning.code == "undeclared_difference"


def test_two_environments_of_one_server_are_held_to_one_build_even_if_a_third_has_another():
    environments = (*MAJORS, make_environment("control", "16", control=ControlKind.SAME))
    (warning,) = differences(environments, {"server.digest": "1"}, {"server.digest": "2"}, {"server.digest": "3"})
    assert warning.code == "undeclared_difference"


def test_a_setting_is_declared_where_the_environments_ask_for_different_values():
    environments = (make_environment("a", settings={"work_mem": "4MB"}), make_environment("b"))
    facts = {"settings.work_mem": "4MB", "settings.jit": "on"}, {"settings.work_mem": "8MB", "settings.jit": "off"}
    (warning,) = differences(environments, *facts)
    assert warning.fact == "settings.jit"


def test_what_the_server_computes_from_a_declared_setting_is_declared_too():
    environments = (make_environment("a", settings={"shared_buffers": "1GB"}), make_environment("b"))
    assert differences(environments, {"settings.wal_buffers": "16MB"}, {"settings.wal_buffers": "4MB"}) == ()


def test_a_setting_that_was_set_alike_and_differs_all_the_same_is_not_a_default():
    environments = tuple(replace(environment, settings={"jit": "on"}) for environment in MAJORS)
    (warning,) = differences(environments, {"settings.jit": "on"}, {"settings.jit": "off"})
    assert warning.code == "undeclared_difference"


def test_defaults_that_differ_between_majors_come_in_one_warning():
    facts = (
        {"settings.effective_io_concurrency": "1", "settings.old_snapshot_threshold": "-1", "settings.jit": "on"},
        {"settings.effective_io_concurrency": "16", "settings.io_method": "worker", "settings.jit": "on"},
    )
    (warning,) = differences(MAJORS, *facts)
    assert warning == DefaultsDiffer(
        settings={"effective_io_concurrency": {"1": ("16",), "16": ("18",)}}, exclusive={("18",): 1, ("16",): 1}
    )


def test_settings_that_only_some_servers_have_are_counted_in_the_warning_and_named_apart():
    facts = (
        {"settings.jit": "on", "settings.old": "1", "settings.port": "1"},
        {"settings.jit": "on", "settings.b": "", "settings.a": "", "settings.cluster_name": "x"},
    )
    (warning,) = differences(MAJORS, *facts)
    assert warning == DefaultsDiffer(settings={}, exclusive={("18",): 2, ("16",): 1})
    observed = {"a": Fingerprint(facts=facts[0]), "b": Fingerprint(facts=facts[1])}
    assert exclusive_settings(observed, make_experiment(MAJORS)) == ((("18",), ("a", "b")), (("16",), ("old",)))


def test_spellings_of_different_majors_that_mean_the_same_are_no_difference():
    old = {"settings.log_connections": "off", "settings.max_wal_size": "64", "server.version_num": "90624"}
    new = {"settings.log_connections": "", "settings.max_wal_size": "1024", "server.version_num": "180000"}
    assert differences(MAJORS, old, new) == ()


def test_a_default_that_really_changed_between_majors_is_told():
    (warning,) = differences(
        MAJORS, {"settings.vacuum_buffer_usage_limit": "256"}, {"settings.vacuum_buffer_usage_limit": "2048"}
    )
    assert warning.settings == {"vacuum_buffer_usage_limit": {"256": ("16",), "2048": ("18",)}}


@pytest.mark.parametrize(
    ("setting", "value", "version", "meant"),
    [
        ("log_connections", "off", "160004", ""),
        ("log_connections", "all", "180000", "all"),
        ("wal_compression", "on", "140000", "pglz"),
        ("wal_segment_size", "2048", "100023", "16777216"),
        ("wal_segment_size", "16777216", "110000", "16777216"),
        ("max_wal_size", "64", "", "64"),
        ("work_mem", "off", "160004", "off"),
    ],
)
def test_a_spelling_is_turned_into_that_of_the_newest_major(setting, value, version, meant):
    assert unify_spelling(setting, value, version) == meant


def test_a_default_that_differs_within_one_server_is_undeclared():
    environments = (*MAJORS, make_environment("c", "18"))
    found = differences(environments, *({"settings.jit": value} for value in ("on", "off", "on")))
    assert {doubt.code for doubt in found} == {"undeclared_difference"}


def test_a_setting_that_exists_in_one_major_and_was_asked_for_is_no_default():
    environments = (MAJORS[0], replace(MAJORS[1], settings={"io_method": "sync"}))
    facts = {"settings.jit": "on"}
    assert differences(environments, facts, {**facts, "settings.io_method": "sync"}) == ()


def test_a_default_may_differ_between_servers_even_if_another_environment_sets_it():
    environments = (*MAJORS, make_environment("c", "18", settings={"jit": "off"}))
    (warning,) = differences(environments, *({"settings.jit": value} for value in ("off", "on", "off")))
    assert warning == DefaultsDiffer(settings={"jit": {"off": ("16",), "on": ("18",)}}, exclusive={})


@pytest.mark.parametrize(
    "setting", ["port", "data_directory", "unix_socket_directories", "server_version", "log_filename"]
)
def test_places_and_names_are_no_differences(setting):
    assert differences(SAME, {f"settings.{setting}": "1"}, {f"settings.{setting}": "2"}) == ()


def test_checksums_and_connection_explain_what_follows_from_them():
    environments = (make_environment("a", checksums=False), make_environment("b", connection=ConnectionKind.TLS))
    first = {
        "settings.data_checksums": "off",
        "initdb.data_checksums": "off",
        "settings.ssl": "off",
        "settings.tcp_keepalives_idle": "0",
        "connection.kind": "socket",
    }
    second = {
        "settings.data_checksums": "on",
        "initdb.data_checksums": "on",
        "settings.ssl": "on",
        "settings.tcp_keepalives_idle": "7200",
        "connection.kind": "tcp",
    }
    assert differences(environments, first, second) == ()


def test_an_environment_that_was_not_observed_yet_is_left_out():
    observed = {"a": Fingerprint(facts={"host.cpu": "x"})}
    assert undeclared_differences(observed, make_experiment(SAME)) == ()


def test_a_setting_that_is_a_factor_is_explained_also_where_it_was_read_back():
    pair = (make_environment("a", settings={"work_mem": "1MB"}), make_environment("b", settings={"work_mem": "4MB"}))
    facts = [{"settings.work_mem": value, "asked.work_mem": value} for value in ("1024", "4096")]
    assert not differences(pair, *facts)


def test_what_a_layer_of_the_host_shows_is_explained_where_it_was_asked_for():
    small = make_environment("small", layers={"pages": "4kB"})
    huge = make_environment("huge", layers={"pages": "2MB"})
    facts = [
        {
            "memory.pages": pages,
            "memory.huge_pages_used": used,
            "settings.huge_pages": on,
            "settings.huge_page_size": size,
        }
        for pages, used, on, size in (("4kB", "0", "off", "0"), ("2MB", "146800640", "on", "2048"))
    ]
    assert differences([small, huge], *facts) == ()
    again = make_environment("again", layers={"pages": "4kB"})
    told = differences([small, again], *facts)
    facts_told = {doubt.fact for doubt in told}
    assert "memory.pages" in facts_told
    assert "memory.huge_pages_used" not in facts_told


def test_what_a_group_has_used_up_is_no_difference():
    quota = {"cpu.quota": "0.5"}
    one, two = (make_environment(name, layers=quota) for name in ("one", "two"))
    used = ({**quota, "cpu.throttled": count, "limits.memory_used": f"{count}000"} for count in ("3", "8"))
    assert differences([one, two], *used) == ()

from __future__ import annotations

import pytest

from pgstrata.model.experiment import ConnectionKind, ControlKind, Interleave, Order, Protocol, Reset, ServerKind

CELL = '[[cells]]\nworkload = "select-only"\nscale = 1\nclients = 2\n'
TWO = '[factors]\nserver = ["16", "18"]\n'


def names(experiment):
    return [environment.name for environment in experiment.environments]


def test_a_short_file_has_the_documented_defaults(parse):
    experiment = parse(TWO + CELL)
    assert (experiment.metric, experiment.threshold, experiment.blocks) == ("tps", 0.03, 60)
    assert (experiment.reset, experiment.interleave, experiment.budget) == (Reset.CLONE, Interleave.AUTO, None)
    assert experiment.question == "What does server change?"
    assert experiment.factors == ("server",)
    assert experiment.baseline == "pg16"
    assert experiment.cells[0].protocol is Protocol.PREPARED
    assert experiment.cells[0].run == 60.0
    assert all(environment.checksums for environment in experiment.environments)


@pytest.mark.parametrize(
    ("lines", "threshold", "noted"),
    [
        ("", 0.03, False),
        ('metric = "latency_p50"\n', 0.03, False),
        ('metric = "latency_p99"\n', 0.15, True),
        ('metric = "latency_p95"\n', 0.05, True),
        ('metric = "latency_p99"\nthreshold = "3 %"\n', 0.03, False),
    ],
)
def test_without_a_threshold_the_metric_has_its_own_and_the_plan_says_so(parse, lines, threshold, noted):
    experiment = parse(lines + TWO + CELL)
    assert experiment.threshold == threshold
    assert any("the file gives none" in note for note in experiment.notes) is noted


def test_seed_and_budget_from_outside_win(parse):
    experiment = parse('seed = 3\nbudget = "1h"\n' + TWO + CELL, seed=7, budget=60.0)
    assert (experiment.seed, experiment.budget) == (7, 60.0)


def test_factors_are_fully_crossed_in_the_order_of_the_file(parse):
    experiment = parse(
        '[factors]\nserver = ["16", "18"]\n"settings.synchronous_commit" = [true, false]\nconnection = ["socket", "tcp"]\n'
        + CELL
    )
    assert names(experiment)[:3] == [
        "pg16-synchronous_commit-on-socket",
        "pg16-synchronous_commit-on-tcp",
        "pg16-synchronous_commit-off-socket",
    ]
    assert len(set(names(experiment))) == 8
    assert experiment.environments[-1].settings == {"synchronous_commit": "off"}
    assert experiment.environments[-1].connection is ConnectionKind.TCP


@pytest.mark.parametrize(
    "line",
    ['"settings.work_mem" = ["1MB", "8MB"]', 'settings.work_mem = ["1MB", "8MB"]', "settings.pg_x.size = [1, 2]"],
)
def test_single_settings_are_factors_quoted_or_not(parse, line):
    experiment = parse(f"[factors]\n{line}\n{CELL}")
    assert len(experiment.environments) == 2
    assert experiment.factors[0] in {"settings.work_mem", "settings.pg_x.size"}
    assert experiment.environments[0].server.kind is ServerKind.EMBEDDED


def test_named_sets_of_settings_are_levels(parse):
    experiment = parse(
        '[factors]\nserver = ["18"]\n[factors.settings.defaults]\n[factors.settings.tuned]\nshared_buffers = "4GB"\njit = false\n'
        "[common.settings]\nfsync = true\nmax_connections = 50\n" + CELL
    )
    assert names(experiment) == ["pg18-defaults", "pg18-tuned"]
    assert experiment.environments[1].settings == {
        "fsync": "on",
        "jit": "off",
        "max_connections": "50",
        "shared_buffers": "4GB",
    }
    assert experiment.environments[0].title == "18, settings = defaults"


def test_levels_may_be_named_by_a_table(parse):
    experiment = parse(f'[factors]\nserver = {{ old = "14", new = "18" }}\n{CELL}')
    assert names(experiment) == ["old", "new"]
    assert experiment.environments[0].levels[0].value == "old"


def test_numbers_are_accepted_as_majors(parse):
    assert names(parse(f"[factors]\nserver = [16, 18]\n{CELL}")) == ["pg16", "pg18"]


def test_listed_environments_are_taken_one_by_one(parse):
    experiment = parse(
        'baseline = { name = "18 async" }\n[common.settings]\njit = "off"\n'
        '[[environments]]\nname = "18"\nserver = "18"\n'
        '[[environments]]\nname = "18 async"\nserver = "18"\nsettings.synchronous_commit = "off"\n' + CELL
    )
    assert names(experiment) == ["18", "18-async"]
    assert experiment.baseline == "18-async"
    assert experiment.environments[1].settings == {"jit": "off", "synchronous_commit": "off"}
    assert experiment.factors == ("settings.synchronous_commit",)


def test_a_partial_baseline_is_completed_with_first_levels(parse):
    experiment = parse(
        'baseline = { server = "18" }\n[factors]\nserver = ["16", "18"]\n"settings.jit" = ["on", "off"]\n' + CELL
    )
    assert experiment.baseline == "pg18-jit-on"


def test_a_baseline_may_name_a_setting(parse):
    experiment = parse(
        'baseline = { "settings.work_mem" = "8MB" }\n[factors]\n"settings.work_mem" = ["1MB", "8MB"]\n' + CELL
    )
    assert experiment.baseline == "work_mem-8MB"


def test_a_control_is_a_copy_of_the_baseline(parse):
    experiment = parse('controls = ["same"]\n' + TWO + CELL)
    control = experiment.environments[-1]
    assert (control.name, control.control) == ("pg16-control", ControlKind.SAME)
    assert control.server == experiment.environment("pg16").server


def test_one_environment_with_a_control_is_an_experiment(parse):
    assert names(parse('controls = ["same"]\n[common]\nserver = "17"\n' + CELL)) == ["pg17", "pg17-control"]


@pytest.mark.parametrize(
    ("level", "kind", "value"),
    [
        ("embedded", ServerKind.EMBEDDED, ""),
        ("17", ServerKind.CATALOGUE, "17"),
        ("maven:9.6", ServerKind.MAVEN, "9.6"),
        ("prefix:/opt/pg/", ServerKind.PREFIX, "/opt/pg"),
        ("./a/install", ServerKind.PREFIX, "./a/install"),
        ("/usr/lib/postgresql/15", ServerKind.PREFIX, "/usr/lib/postgresql/15"),
        ("dsn:orders", ServerKind.DSN, "orders"),
    ],
)
def test_servers_come_from_several_places(parse, level, kind, value):
    experiment = parse(f'controls = ["same"]\n[common]\nserver = "{level}"\n{CELL}')
    assert experiment.environments[0].server.kind is kind
    assert experiment.environments[0].server.value == value


def test_installations_are_named_by_the_part_of_their_paths_that_differs(parse):
    assert names(parse(f'[factors]\nserver = ["./a/install", "./b/install"]\n{CELL}')) == ["a", "b"]
    paths = '["/usr/lib/postgresql/15", "/usr/lib/postgresql/16"]'
    assert names(parse(f"[factors]\nserver = {paths}\n{CELL}")) == ["pg15", "pg16"]


def test_names_of_environments_are_unique_whatever_the_levels(parse):
    experiment = parse('[factors]\n"settings.search_path" = ["a b", "a/b", "a-b"]\n' + CELL)
    assert names(experiment) == ["search_path-a-b", "search_path-a-b-2", "search_path-a-b-3"]


def test_suppliers_may_be_mixed_on_purpose(parse):
    experiment = parse(f'[factors]\nserver = ["18", "/opt/pg"]\n{CELL}[allow]\nmixed_suppliers = true\n')
    assert experiment.allow.mixed_suppliers


def test_cells_expand_to_the_product_of_their_lists(parse):
    experiment = parse(
        TWO + '[[cells]]\nworkload = "simple-update"\nscale = [10, 100]\nclients = { from = 1, to = 64, steps = 7 }\n'
    )
    assert [cell.clients for cell in experiment.cells[:7]] == [1, 2, 4, 8, 16, 32, 64]
    assert [cell.threads for cell in experiment.cells[:7]] == [1, 2, 4, 8, 16, 32, 32]
    assert experiment.cells[-1].identity == "simple-update-s100-c64"


def test_a_linear_sweep_is_even(parse):
    clients = '{ from = 2, to = 10, steps = 5, shape = "linear" }'
    experiment = parse(f'{TWO}[[cells]]\nworkload = "select-only"\nscale = 1\nclients = {clients}\n')
    assert [cell.clients for cell in experiment.cells] == [2, 4, 6, 8, 10]


def test_cells_that_differ_in_little_still_have_their_own_identities(parse):
    experiment = parse(TWO + CELL + CELL + 'protocol = "simple"\n' + CELL + 'run = "10s"\n')
    assert [cell.identity for cell in experiment.cells] == [
        "select-only-s1-c2-prepared-60s",
        "select-only-s1-c2-simple-60s",
        "select-only-s1-c2-prepared-10s",
    ]


def test_scripts_are_read_and_weighed(parse):
    experiment = parse(
        TWO + '[[cells]]\nscale = 1\nclients = 1\nscripts = [{ file = "mine.sql", weight = 3 }]\n'
        "[cells.options]\nwidth = 10\n"
    )
    (cell,) = experiment.cells
    assert (cell.workload, cell.scripts[0].text, cell.scripts[0].weight) == ("custom", "SELECT 1;\n", 3)
    assert cell.options == {"width": "10"}


def test_a_setup_script_is_carried_as_text(parse):
    experiment = parse('[factors]\n"options.setup_sql" = ["setup.sql", "mine.sql"]\n' + CELL)
    assert experiment.environments[0].options == {"setup_sql": "CREATE INDEX ON t (a);\n"}
    assert experiment.environments[0].name == "setup_sql-setup.sql"


def test_a_listed_environment_names_the_file_of_its_setup_and_not_what_is_in_it(parse):
    experiment = parse(
        '[[environments]]\nname = "a"\n[[environments]]\nname = "b"\noptions.setup_sql = "setup.sql"\n' + CELL
    )
    assert experiment.environments[1].options == {"setup_sql": "CREATE INDEX ON t (a);\n"}
    assert experiment.environments[1].title == "options.setup_sql = setup.sql"


def test_rates_and_limits_are_base_units(parse):
    experiment = parse(TWO + CELL + 'rate = 500\nlatency_limit = "20ms"\nwarmup = "5s"\n')
    (cell,) = experiment.cells
    assert (cell.rate, cell.latency_limit, cell.warmup) == (500.0, 0.02, 5.0)
    assert cell.identity == "select-only-s1-c2-r500"


def test_options_of_initdb_are_normalised(parse):
    experiment = parse('[factors]\n"initdb.wal_segsize" = [16, 64]\n' + CELL)
    assert experiment.environments[1].initdb == {"wal-segsize": "64"}
    assert names(experiment) == ["wal_segsize-16", "wal_segsize-64"]


def test_checksums_may_be_a_factor(parse):
    experiment = parse("[factors]\nchecksums = [true, false]\n" + CELL)
    assert names(experiment) == ["checksums-on", "checksums-off"]
    assert [environment.checksums for environment in experiment.environments] == [True, False]


def test_compiler_and_flags_belong_to_the_server_that_is_built(parse):
    experiment = parse(
        '[common]\nserver = "build:/src/pg"\nbuild.compiler = "gcc-12"\n'
        f'[factors]\n"build.flags" = ["-O2", "-O3 -march=native"]\n{CELL}'
    )
    first, second = experiment.environments
    assert first.server.build == (("compiler", "gcc-12"), ("flags", "-O2"))
    assert second.server.text == "build:/src/pg (gcc-12, -O3 -march=native)"
    assert [level.value for level in second.levels] == ["-O3 -march=native"]
    assert first.layers == second.layers == {}
    assert names(experiment) == ["flags-O2", "flags-O3-march-native"]


def test_sources_are_called_by_their_last_part(parse):
    experiment = parse(f'[factors]\nserver = ["build:/src/master", "build:/src/postgresql-16.3.tar.bz2"]\n{CELL}')
    assert names(experiment) == ["master", "postgresql-16.3"]
    experiment = parse(f'[factors]\nserver = ["build:~/pg@REL_17_STABLE", "build:~/pg@origin/master"]\n{CELL}')
    assert names(experiment) == ["REL_17_STABLE", "origin-master"]


def test_a_rising_order_is_read_and_random_is_usual(parse):
    assert parse(TWO + CELL).order is Order.RANDOM
    assert parse('order = "rising"\n' + TWO + CELL).order is Order.RISING

from __future__ import annotations

from dataclasses import replace

import pytest

from pgstrata.experiment.defaults import complete_experiment, hosts_to_ask
from pgstrata.model.experiment import HostKind, HostSpec
from pgstrata.model.plan import HostCapacity

GB = 1024**3
CELL = '[[cells]]\nworkload = "simple-update"\nscale = 1\nclients = 2\n'


@pytest.fixture
def complete(parse, workloads, capacity):
    return lambda text, machine=capacity: complete_experiment(parse(text + CELL), machine, workloads)


def test_all_environments_get_the_same(complete):
    experiment = complete('[factors]\nserver = ["14", "18"]\n')
    first, second = (environment.settings for environment in experiment.environments)
    assert first == second
    assert first["shared_buffers"] == "8192MB"
    assert first["jit"] == "off"
    assert first["max_connections"] == "100"


def test_every_choice_has_a_note(complete):
    experiment = complete('[factors]\nserver = ["14", "18"]\n')
    for setting, value in experiment.environments[0].settings.items():
        assert any(note.startswith(f"{setting} = {value}: ") for note in experiment.notes)


@pytest.mark.parametrize(("memory", "buffers"), [(GB // 4, "128MB"), (2 * GB, "512MB"), (256 * GB, "8192MB")])
def test_shared_buffers_follow_from_memory(complete, memory, buffers):
    experiment = complete('[factors]\nserver = ["16", "18"]\n', HostCapacity(memory=memory, cpus=2, free_disk=GB))
    assert experiment.environments[0].settings["shared_buffers"] == buffers


@pytest.mark.parametrize(
    ("limits", "buffers", "cache"),
    [('"1GB", "4GB"', "256MB", "768MB"), ('"256MB"', "128MB", "256MB"), ('"64MB", "900GB"', "32MB", "64MB")],
)
def test_the_least_limit_of_memory_counts_for_all(complete, limits, buffers, cache):
    text = f'common."limits.memory" = {limits}\n' if "," not in limits else ""
    factors = f'"limits.memory" = [{limits}]\n' if "," in limits else ""
    experiment = complete(
        f'{text}[factors]\nserver = ["16", "18"]\n{factors}', HostCapacity(memory=64 * GB, cpus=2, free_disk=GB)
    )
    found = {(one.settings["shared_buffers"], one.settings["effective_cache_size"]) for one in experiment.environments}
    assert found == {(buffers, cache)}
    assert any("(the least limits.memory)" in note for note in experiment.notes)


def test_free_disk_changes_nothing(complete, capacity):
    text = '[factors]\nserver = ["16", "18"]\n'
    assert complete(text) == complete(text, replace(capacity, free_disk=1))


def test_settings_that_an_old_server_does_not_know_are_left_in_all(complete):
    experiment = complete('[factors]\nserver = ["maven:9.6", "maven:18"]\n')
    assert all("jit" not in one.settings for one in experiment.environments)
    assert any("version 9 does not know them: jit, hash_mem_multiplier" in note for note in experiment.notes)
    newer = complete('[factors]\nserver = ["maven:11", "maven:18"]\n')
    assert newer.environments[0].settings["jit"] == "off"
    assert "hash_mem_multiplier" not in newer.environments[0].settings
    assert not any("not known yet" in note for note in newer.notes)


def test_what_the_author_set_stays(complete):
    experiment = complete('[factors]\nserver = ["16", "18"]\n[common.settings]\njit = true\nshared_buffers = "1GB"\n')
    assert all(one.settings["jit"] == "on" for one in experiment.environments)
    assert all(one.settings["shared_buffers"] == "1GB" for one in experiment.environments)
    assert not any(note.startswith("jit") for note in experiment.notes)


def test_what_the_author_set_in_some_environments_is_the_servers_own_in_the_others(complete):
    experiment = complete("[factors.settings.defaults]\n[factors.settings.tuned]\nshared_buffers = '4GB'\n")
    assert "shared_buffers" not in experiment.environments[0].settings
    assert experiment.environments[1].settings["shared_buffers"] == "4GB"
    assert any(note.startswith("shared_buffers: given in some") and "defaults" in note for note in experiment.notes)


def test_max_connections_make_room_for_the_clients(complete):
    experiment = complete('[factors]\nserver = ["16", "18"]\n' + CELL.replace("clients = 2", "clients = 500"))
    assert experiment.environments[0].settings["max_connections"] == "510"


def test_installations_of_unknown_age_get_only_what_every_version_knows(complete):
    experiment = complete('[factors]\nserver = ["/a", "/b"]\n')
    assert "hash_mem_multiplier" not in experiment.environments[0].settings
    assert "shared_buffers" in experiment.environments[0].settings


def test_running_servers_get_nothing(complete):
    experiment = complete('[factors]\nserver = ["dsn:a", "dsn:b"]\n')
    assert all(not environment.settings for environment in experiment.environments)
    assert "keep their settings" in experiment.notes[0]


def test_checkpoints_are_tuned_only_where_something_writes(parse, workloads, capacity):
    text = '[factors]\nserver = ["16", "18"]\n' + CELL.replace("simple-update", "select-only")
    experiment = complete_experiment(parse(text), capacity, workloads)
    assert "max_wal_size" not in experiment.environments[0].settings


def test_huge_pages_are_left_to_the_layer_that_has_them_as_a_level(complete):
    experiment = complete('[factors]\npages = ["4kB", "2MB"]\n')
    assert all("huge_pages" not in environment.settings for environment in experiment.environments)
    assert not any(note.startswith("huge_pages") for note in experiment.notes)


class TestServersElsewhere:
    TEXT = '[factors]\nhost = {}\n[common]\nserver = "18"\n'
    FAR = HostSpec(kind=HostKind.SSH, destination="db1")
    OTHER = HostSpec(kind=HostKind.SSH, destination="db2")
    CLIENT = HostCapacity(memory=2 * GB, cpus=2, free_disk=GB)

    @pytest.fixture
    def completed(self, parse, workloads):
        def run(hosts, **memories):
            there = {getattr(self, name): size for name, size in memories.items()}
            text = self.TEXT.format(hosts) + CELL
            return complete_experiment(parse(text), replace(self.CLIENT, elsewhere=there), workloads)

        return run

    @pytest.mark.parametrize(
        ("hosts", "memories", "buffers", "whose"),
        [
            (
                '["ssh:db1", "ssh:db2"]',
                {"FAR": 16 * GB, "OTHER": 8 * GB},
                "2048MB",
                "(that of ssh:db2, the least of those",
            ),
            ('["local", "ssh:db1"]', {"FAR": 16 * GB}, "512MB", "(this machine's, the least of those with servers)"),
            ('["local", "ssh:db1"]', {"FAR": GB}, "256MB", "(that of ssh:db1, the least of those with servers)"),
            ('["ssh:db1", "ssh:db2"]', {"OTHER": 16 * GB}, "4096MB", "(that of ssh:db2"),
            ('["ssh:db1", "ssh:db2"]', {}, "512MB", "(this machine's: no machine with servers was asked)"),
        ],
    )
    def test_have_what_the_smallest_machine_with_servers_bears_and_the_reason_says_whose(
        self, completed, hosts, memories, buffers, whose
    ):
        experiment = completed(hosts, **memories)
        assert {each.settings["shared_buffers"] for each in experiment.environments} == {buffers}
        (note,) = (note for note in experiment.notes if note.startswith("shared_buffers"))
        assert whose in note

    def test_are_asked_only_where_memory_decides(self, parse):
        text = self.TEXT.format('["local", "ssh:db1"]')
        assert hosts_to_ask(parse(text + CELL)) == (self.FAR,)
        given = '[common.settings]\nshared_buffers = "1GB"\n'
        assert hosts_to_ask(parse(text + given + CELL)) == (self.FAR,)
        assert not hosts_to_ask(parse(text + given + 'effective_cache_size = "2GB"\n' + CELL))
        assert not hosts_to_ask(parse('[factors]\nserver = ["17", "18"]\n' + CELL))


def test_what_a_workload_asks_for_is_given_unless_the_author_gives_it(parse, workloads, capacity):
    heavy = replace(workloads["select-only"], settings={"max_parallel_workers_per_gather": "0"})
    known = {**workloads, "select-only": heavy}
    text = '[factors]\nserver = ["16", "18"]\n{}[[cells]]\nworkload = "select-only"\nscale = 10\nclients = 4\n'
    left = complete_experiment(parse(text.format("")), capacity, known)
    assert {each.settings["max_parallel_workers_per_gather"] for each in left.environments} == {"0"}
    assert any(note.startswith("max_parallel_workers_per_gather = 0: select-only asks for it") for note in left.notes)
    given = parse(text.format("[common]\nsettings.max_parallel_workers_per_gather = 2\n"))
    kept = complete_experiment(given, capacity, known)
    assert {each.settings["max_parallel_workers_per_gather"] for each in kept.environments} == {"2"}

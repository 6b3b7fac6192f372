"""Levels of host layers, from the file to the environment."""

import pytest

from pgstrata.experiment.keys import WrongValueError
from pgstrata.experiment.layers import layer_keys, read_level

CELL = '[[cells]]\nworkload = "select-only"\nscale = 1\nclients = 2\n'


@pytest.mark.parametrize(
    ("key", "written", "level"),
    [
        ("pages", "2MB", "2MB"),
        ("pages", "2048 kB", "2MB"),
        ("pages", "1gb".upper(), "1GB"),
        ("thp", "Always", "always"),
        ("cpu.server", "0-3, 8", "0-3,8"),
        ("cpu.client", 5, "5"),
        ("cpu.quota", "50 %", "0.5"),
        ("cpu.quota", 2, "2"),
        ("cpu.quota", 0.5, "0.5"),
        ("cpu.policy", "FIFO:10", "fifo:10"),
        ("cpu.turbo", False, "off"),
        ("limits.memory", "4GB", "4294967296"),
        ("limits.read_bytes", "100MB/s", "104857600"),
        ("limits.write_operations", 500, "500"),
        ("filesystem", "XFS", "xfs"),
        ("storage.read_ahead", "128kB", "131072"),
        ("storage.device", "/dev/disk/by-id/nvme-X_1-part2", "/dev/disk/by-id/nvme-X_1-part2"),
        ("storage.wal", "Same", "same"),
        ("storage.wal", "/dev/nvme1n1", "/dev/nvme1n1"),
        ("storage.installation", "memory", "memory"),
        ("sysctl.vm.swappiness", 10, "10"),
        ("sysctl.net.ipv4.tcp_rmem", "4096  87380\t6291456", "4096 87380 6291456"),
        ("sysctl.net.ipv4.conf.eth0/1.forwarding", True, "1"),
    ],
)
def test_a_level_is_normalised(key, written, level):
    assert read_level(key, written) == level


def test_levels_of_listed_environments_are_called_as_they_were_written(parse):
    experiment = parse(
        'baseline = { "limits.memory" = "4GB" }\n'
        '[[environments]]\nname = "large"\nlimits.memory = "8GB"\ncpu.quota = "50 %"\n'
        '[[environments]]\nname = "small"\nlimits.memory = "4GB"\ncpu.quota = 0.5\n' + CELL
    )
    assert [environment.title for environment in experiment.environments] == [
        "cpu.quota = 50 %, limits.memory = 8GB",
        "cpu.quota = 0.5, limits.memory = 4GB",
    ]
    assert [environment.layers["limits.memory"] for environment in experiment.environments] == [
        "8589934592",
        "4294967296",
    ]
    assert experiment.baseline == "small"


@pytest.mark.parametrize(
    ("key", "written"),
    [
        ("pages", "3MB"), ("pages", True), ("thp", "sometimes"), ("cpu.server", "a"), ("cpu.server", 1.5),
        ("cpu.server", ""), ("cpu.quota", "0 %"), ("cpu.quota", "much"), ("cpu.quota", True), ("cpu.policy", "fifo"),
        ("cpu.policy", "rr:100"), ("cpu.turbo", "maybe"), ("cpu.nothing", "1"), ("limits.memory", "1kB"),
        ("limits.memory", True), ("limits.read_operations", 0), ("limits.read_operations", "1"), ("filesystem", "ntfs"),
        ("storage.mount", ""), ("storage.device", "sda"), ("storage.device", "/dev/../x"),
        ("storage.wal", "disk"), ("storage.wal", "/srv/wal"), ("storage.wal", True), ("storage.installation", "device"),
        ("storage.scheduler", "a b"), ("sysctl.x", 1), ("sysctl.vm..x", 1),
        ("sysctl.vm/../x", 1), ("sysctl./vm.x", 1),
    ],
)  # fmt: skip
def test_what_cannot_be_is_told_with_a_remedy(key, written):
    with pytest.raises(WrongValueError) as caught:
        read_level(key, written)
    assert caught.value.what
    assert caught.value.remedy


def test_layers_are_factors_and_common_parts_like_any_other(parse):
    experiment = parse(
        'baseline = { pages = "4kB", thp = "never" }\n[factors]\npages = ["4kB", "2MB"]\nthp = ["always", "never"]\n'
        '[common]\nfilesystem = "xfs"\ncpu.server = "0"\n[common.sysctl]\nvm.swappiness = 1\n' + CELL
    )
    common = {"cpu.server": "0", "filesystem": "xfs", "sysctl.vm.swappiness": "1"}
    assert [dict(environment.layers) for environment in experiment.environments] == [
        {**common, "pages": pages, "thp": thp} for pages in ("4kB", "2MB") for thp in ("always", "never")
    ]
    assert experiment.baseline == "pages-4kB-thp-never"
    assert experiment.environments[2].title == "pages = 2MB, thp = always"


def test_listed_environments_say_their_layers_for_themselves(parse):
    experiment = parse('[[environments]]\nname = "half"\ncpu.quota = "50 %"\n[[environments]]\nname = "whole"\n' + CELL)
    assert [dict(environment.layers) for environment in experiment.environments] == [{"cpu.quota": "0.5"}, {}]
    assert experiment.factors == ("cpu.quota",)


def test_levels_that_come_to_the_same_stand_twice(problems):
    (found,) = problems('[factors]\n"cpu.quota" = ["50 %", 0.5, 1]\n' + CELL)
    assert "are the same" in found.what


def test_a_common_level_beneath_a_factor_is_useless(problems):
    (found,) = problems('[factors]\n"limits.memory" = ["1GB", "2GB"]\n[common.limits]\nmemory = "4GB"\n' + CELL)
    assert found.key == "common.limits.memory"


def test_every_key_has_its_reader_and_refuses_a_table_of_nonsense():
    for key in layer_keys():
        with pytest.raises(WrongValueError):
            read_level(key, " ")


@pytest.mark.parametrize("option", ["waldir", "wald", "xlogdir"])
def test_the_place_of_the_wal_is_no_option_of_initdb(option, problems):
    found = problems(f'controls = ["same"]\n[common.initdb]\n{option} = "/srv/wal"\n' + CELL)
    assert "storage.wal" in found[0].remedy


class TestStorageWithNothingToWorkOn:
    def test_is_refused_where_it_stands_and_says_which_environment_lacks_it(self, problems):
        text = '[common]\nstorage.mount = "noatime"\n[factors]\nstorage.wal = ["same", "loop"]\n'
        (found,) = problems(text + CELL)
        assert (found.key, found.line) == ("common.storage.mount", 2)
        assert "needs a file system, and wal = same has none" in found.what.replace("storage.", "")
        assert "or list the [[environments]]" in found.remedy

    def test_is_refused_in_the_table_of_its_environment(self, problems):
        text = '[[environments]]\nname = "a"\n[[environments]]\nname = "b"\nstorage.size = "1GB"\n'
        (found,) = problems(text + CELL)
        assert found.key == "environments[2].storage.size"
        assert found.line == 5

    def test_is_refused_among_factors_and_once_for_all_environments(self, problems):
        (found,) = problems('[factors]\n"storage.mkfs" = ["-m 1", "-m 2"]\n' + CELL)
        assert (found.key, found.what) == ("factors.storage.mkfs", "storage.mkfs needs a file system")
        (found,) = problems('[common.storage]\nmkfs = "-m 1"\n[factors]\nserver = ["17", "18"]\n' + CELL)
        assert "list the [[environments]]" not in found.remedy

    @pytest.mark.parametrize(
        "common",
        [
            'filesystem = "ext4"\nstorage.size = "1GB"\nstorage.device = "/dev/x"\n',
            'filesystem = "ext4"\nstorage.device = "/dev/x"\nstorage.wal = "/dev/x"\n',
        ],
    )
    def test_is_refused_where_two_levels_exclude_each_other(self, common, problems):
        assert problems(f'controls = ["same"]\n[common]\n{common}' + CELL)

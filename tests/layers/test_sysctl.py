"""Parameters of the kernel: written, read back, seen from beside the server, and as they were afterwards."""

import os
from dataclasses import replace
from pathlib import Path
from string import ascii_lowercase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fake_ledger import FakeLedger
from pgstrata.errors import HostNotFitError, LevelNotTakenError, UsageError
from pgstrata.hosts.local import LocalHost
from pgstrata.layers.sysctl import SysctlLayer, sysctl_path
from pgstrata.model.experiment import Environment, ServerKind, ServerSpec
from pgstrata.model.launch import Launch, Needs
from pgstrata.model.server import Address, Build, ServerVersion
from pgstrata.ports.host import Command
from pgstrata.ports.server import Clone, Dataset, RunningServer
from pgstrata.testing import failure_of

SPEC = ServerSpec(kind=ServerKind.EMBEDDED)
PRESSURE = "/proc/sys/vm/vfs_cache_pressure"

as_root = [
    pytest.mark.root,
    pytest.mark.skipif(os.getuid() != 0 or not os.access(PRESSURE, os.W_OK), reason="needs root, and no container"),
]


def environment(**layers):
    return Environment(name="it", levels=(), server=SPEC, layers={f"sysctl.{name}": v for name, v in layers.items()})


def asking(name, value):
    return environment(**{name: value})


def running(wanted):
    """A server that nobody has to ask: the kernel's parameters are read beside it."""
    build = Build(
        spec=SPEC,
        prefix="/",
        version=ServerVersion(text="18.0", number=180000),
        supplier="",
        compiler="",
        configure="",
        cflags="",
        digest="",
    )
    dataset = Dataset(identity="d", location="/d", bytes=0, seconds_building=0.0)
    clone = Clone(dataset=dataset, location="/c", database="b", folder="/f")
    address = Address(host="/s", port=1, user="u", database="b")
    return RunningServer(environment=wanted, build=build, clone=clone, address=address, postmaster_pid=1)


@pytest.fixture
def layer():
    return SysctlLayer(LocalHost())


def prepare(layer, wanted, ledger):
    return layer.prepare(wanted, Needs(), ledger)


# ------------------------------------------------------------------------------------------------ names


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("vm.swappiness", "vm/swappiness"),
        ("net.ipv4.conf.eth0/1.forwarding", "net/ipv4/conf/eth0.1/forwarding"),
        ("net/ipv4/conf/eth0.1/forwarding", "net/ipv4/conf/eth0.1/forwarding"),
    ],
)
def test_names_are_understood_as_sysctl_does(name, path):
    assert sysctl_path(name) == path


@pytest.mark.parametrize(
    "name", ["", "vm", "vm.", ".vm", "/vm/swappiness", "vm..x", "net/../kernel/x", "net.//.x", "net/./x"]
)
def test_a_name_that_leads_elsewhere_is_refused(name):
    assert "sysctl -a" in failure_of(UsageError, lambda: sysctl_path(name)).remedy


@given(st.lists(st.text(alphabet=ascii_lowercase + "_0.", min_size=1).filter(lambda t: t.strip(".")), min_size=2))
def test_every_path_has_a_name_with_dots_and_one_with_slashes(parts):
    path = "/".join(parts)
    if parts[0].isidentifier():
        assert sysctl_path(path) == path
        assert sysctl_path(path.translate(str.maketrans("./", "/."))) == path


# --------------------------------------------------------------------------------- without a change of the host


def test_only_environments_that_ask_for_a_parameter_are_concerned(layer):
    assert layer.concerns(asking("vm.swappiness", "10"))
    other = Environment(name="it", levels=(), server=SPEC, layers={"pages": "2MB"})
    assert not layer.concerns(other)
    assert layer.observe(running(other), None) == {}


def test_what_is_so_already_is_not_written(layer):
    ledger = FakeLedger()
    rmem = Path("/proc/sys/net/ipv4/tcp_rmem").read_text()
    asked = environment(
        **{
            "vm.vfs_cache_pressure": Path(PRESSURE).read_text().strip(),
            "net.ipv4.tcp_rmem": "  ".join(rmem.split()),
        }
    )
    assert prepare(layer, asked, ledger) == Launch()
    assert ledger.changes == []
    assert layer.observe(running(asked), None)["sysctl.net.ipv4.tcp_rmem"] == " ".join(rmem.split())


def test_a_value_that_the_kernel_makes_another_of_is_not_taken(layer):
    ledger = FakeLedger(lambda change: "100")
    error = failure_of(LevelNotTakenError, lambda: prepare(layer, asking("vm.vfs_cache_pressure", "123456"), ledger))
    assert "the kernel made 100 of it" in error.what
    assert len(ledger.open) == 1  # whoever prepared it undoes it


@pytest.mark.parametrize(
    ("name", "value", "now", "refused"),
    [
        ("kernel.modules_disabled", "1", "0", True),
        ("kernel/kexec_load_disabled", "1", "0", True),
        ("kernel.yama.ptrace_scope", "3", "1", True),
        ("kernel.yama.ptrace_scope", "2", "1", False),
        ("kernel.yama.ptrace_scope", "3", "3", False),  # nothing is to be changed
        ("kernel.unprivileged_bpf_disabled", "01", "2", True),
        ("kernel.unprivileged_bpf_disabled", "0", "2", False),
        ("kernel.kexec_load_limit_panic", "5", "-1", True),
    ],
)
def test_what_the_kernel_never_takes_back_is_refused_by_name(name, value, now, refused):
    class Transport:
        name = "it"

        def read_files(self, paths):
            return dict.fromkeys(paths, f"{now}\n".encode())

    ledger = FakeLedger()
    layer = SysctlLayer(Transport())
    if not refused:
        prepare(layer, asking(name, value), ledger)
        return
    error = failure_of(UsageError, lambda: prepare(layer, asking(name, value), ledger))
    assert f"{name} = {value} cannot be undone: the kernel keeps it until the next boot" in error.what
    assert ledger.changes == []


def test_a_parameter_that_has_gone_with_its_device_reads_as_nothing(layer):
    ledger = FakeLedger()
    prepare(layer, asking("vm.vfs_cache_pressure", "123456"), ledger)
    (change,) = ledger.changes
    for script in (replace(change.read, arguments=("/none",)), replace(change.undo, arguments=("/none", "100"))):
        done = LocalHost().run(Command(argv=script.argv))
        assert (done.stdout, done.stderr) == (b"", b"")


def test_a_value_that_the_kernel_refuses_is_not_taken_and_the_present_one_is_said(layer):
    ledger = FakeLedger(refused=["sysctl vm.vfs_cache_pressure"])
    error = failure_of(LevelNotTakenError, lambda: prepare(layer, asking("vm.vfs_cache_pressure", "x"), ledger))
    assert f"it has {Path(PRESSURE).read_text().strip()}" in error.what


def test_a_value_that_somebody_changed_since_is_noticed(layer):
    error = failure_of(LevelNotTakenError, lambda: layer.observe(running(asking("kernel.ostype", "Minix")), None))
    assert "now it has Linux" in error.what


@pytest.mark.parametrize(
    ("name", "what", "remedy"),
    [
        ("vm.swapiness", "no parameter vm.swapiness", "did you mean vm.swappiness?"),
        ("vmm.swappiness", "no parameter", "did you mean vm.swappiness?"),
        ("net.ipv4", "a group of parameters", "sysctl net.ipv4"),
        ("quite.another", "no parameter", "sysctl -a"),
    ],
)
def test_a_parameter_that_there_is_not_is_refused_with_the_nearest_that_there_is(layer, name, what, remedy):
    ledger = FakeLedger()
    error = failure_of(HostNotFitError, lambda: prepare(layer, asking(name, "1"), ledger))
    assert what in error.what
    assert remedy in error.remedy
    assert ledger.changes == []


def test_a_parameter_that_can_only_be_written_is_refused(layer):
    error = failure_of(HostNotFitError, lambda: prepare(layer, asking("vm.compact_memory", "1"), FakeLedger()))
    assert "cannot read" in error.what


def test_one_of_two_parameters_that_exclude_each_other_names_both(layer):
    ledger = FakeLedger(lambda change: "268435456 0")
    prepare(layer, asking("vm.dirty_bytes", "268435456"), ledger)
    assert ledger.changes[0].what == "sysctl vm.dirty_bytes and vm.dirty_ratio"


# ---------------------------------------------------------------------------------------- on this machine


class TestOnThisMachine:
    pytestmark = as_root

    def test_a_parameter_is_set_seen_and_undone(self, layer, direct_ledger):
        before = Path(PRESSURE).read_text()
        asked = asking("vm.vfs_cache_pressure", "97")
        prepare(layer, asked, direct_ledger)
        assert Path(PRESSURE).read_text() == "97\n"
        assert layer.observe(running(asked), None) == {"sysctl.vm.vfs_cache_pressure": "97"}
        direct_ledger.undo_to(0)
        assert Path(PRESSURE).read_text() == before

    def test_several_numbers_and_an_empty_value_come_back(self, layer, direct_ledger):
        files = [Path(f"/proc/sys/net/ipv4/{name}") for name in ("tcp_rmem", "ip_local_reserved_ports")]
        before = [file.read_text() for file in files]
        asked = environment(
            **{"net.ipv4.tcp_rmem": "4096 87380 6291456", "net/ipv4/ip_local_reserved_ports": "15000-15001"}
        )
        prepare(layer, asked, direct_ledger)
        assert layer.observe(running(asked), None)["sysctl.net.ipv4.tcp_rmem"] == "4096 87380 6291456"
        direct_ledger.undo_to(0)
        assert [file.read_text() for file in files] == before

    @pytest.mark.parametrize(
        ("name", "value"),
        [("vm.dirty_background_bytes", "67108864"), ("vm.dirty_background_ratio", "7"), ("vm.overcommit_kbytes", "9")],
    )
    def test_an_amount_and_a_share_that_exclude_each_other_both_come_back(self, layer, direct_ledger, name, value):
        files = [
            Path(f"/proc/sys/vm/{each}")
            for each in ("dirty_background_bytes", "dirty_background_ratio", "overcommit_kbytes", "overcommit_ratio")
        ]
        before = [file.read_text() for file in files]
        prepare(layer, asking(name, value), direct_ledger)
        assert layer.observe(running(asking(name, value)), None) == {f"sysctl.{name}": value}
        direct_ledger.undo_to(0)
        assert [file.read_text() for file in files] == before

    def test_the_kernel_refuses_and_clamps(self, layer, direct_ledger):
        refused = failure_of(
            LevelNotTakenError, lambda: prepare(layer, asking("vm.overcommit_memory", "7"), direct_ledger)
        )
        assert f"it has {Path('/proc/sys/vm/overcommit_memory').read_text().strip()}" in refused.what
        # anything below 1 ms is made the default
        clamped = failure_of(
            LevelNotTakenError, lambda: prepare(layer, asking("kernel.sched_rr_timeslice_ms", "-1"), direct_ledger)
        )
        assert "the kernel made 100 of it" in clamped.what

    def test_what_can_only_be_read_is_not_taken(self, layer, direct_ledger):
        error = failure_of(LevelNotTakenError, lambda: prepare(layer, asking("kernel.ostype", "Minix"), direct_ledger))
        assert "it has Linux" in error.what

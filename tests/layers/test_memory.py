"""Pages of memory as a layer: reserved for a real server, seen from inside, given back; and what is refused."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from fake_ledger import FakeLedger
from pgstrata.app.machine import SystemClock
from pgstrata.errors import HostNotFitError, LevelNotTakenError, UsageError
from pgstrata.hosts.local import LocalHost
from pgstrata.layers.memory import MemoryLayer
from pgstrata.layers.server import ClusterControl
from pgstrata.layers.settings import SettingsLayer
from pgstrata.model.experiment import Environment, ServerKind, ServerSpec
from pgstrata.model.launch import Launch, Needs
from pgstrata.model.server import Address, Build, ServerVersion
from pgstrata.ports.host import Completed
from pgstrata.ports.server import Clone, Dataset, RunningServer
from pgstrata.servers.psql import PsqlSql
from pgstrata.testing import failure_of

MB = 1024**2
GB = 1024**3
SPEC = ServerSpec(kind=ServerKind.EMBEDDED)
POOL = "/sys/kernel/mm/hugepages/hugepages-2048kB"
GIANTS = "/sys/kernel/mm/hugepages/hugepages-1048576kB"
THP = "/sys/kernel/mm/transparent_hugepage"

SMALL = b"""\
7f0000000000-7f0005000000 rw-s 00000000 00:01 22606                      /dev/zero (deleted)
Size:              81920 kB
KernelPageSize:        4 kB
THPeligible:           0
"""
HUGE = SMALL.replace(b"     4 kB", b"  2048 kB")


def environment(settings=None, **layers):
    return Environment(name="it", levels=(), server=SPEC, layers=layers, settings=settings or {})


class FakeKernel(LocalHost):
    """Files of a kernel that is not this one's; nothing is run."""

    def __init__(self, files):
        super().__init__()
        self.files = files
        self.listed = ""

    def read_files(self, paths):
        return {path: self.files[path] for path in paths if path in self.files}

    def list_folder(self, path):
        return tuple(sorted({name.removeprefix(f"{path}/").split("/")[0] for name in self.files if path in name}))

    def run(self, command, *, timeout=600.0, check=True):
        return Completed(code=0, stdout=self.listed.encode(), stderr=b"")


class FakeSql:
    def __init__(self, status="on"):
        self.status = status

    def query(self, address, statement):
        from pgstrata.ports.server import QueryResult

        return QueryResult(columns=("status",), rows=((self.status,),))


def kernel(total=0, free=0, promised=0, available=20 * GB, **more):
    files = {
        f"{POOL}/nr_hugepages": total,
        f"{POOL}/free_hugepages": free,
        f"{POOL}/resv_hugepages": promised,
        "/proc/meminfo": f"MemAvailable: {available // 1024} kB\nHugepagesize:       2048 kB\n",
        f"{THP}/enabled": "always [madvise] never\n",
        f"{THP}/shmem_enabled": "always within_size advise [never] deny force\n",
        f"{THP}/hpage_pmd_size": 2 * MB,
    }
    return FakeKernel({path: str(content).encode() for path, content in (files | more).items()})


def running(wanted, number=180000, pid=7):
    version = ServerVersion(text="x", number=number)
    build = Build(spec=SPEC, prefix="/", version=version, supplier="", compiler="", configure="", cflags="", digest="")
    dataset = Dataset(identity="d", location="/d", bytes=0, seconds_building=0.0)
    clone = Clone(dataset=dataset, location="/c", database="b", folder="/f")
    address = Address(host="/s", port=1, user="u", database="b")
    return RunningServer(environment=wanted, build=build, clone=clone, address=address, postmaster_pid=pid)


def prepare(host, wanted, needs=None, ledger=None):
    needs = needs or Needs(shared_memory=143 * MB, version=180000)
    return MemoryLayer(host).prepare(wanted, needs, ledger or FakeLedger())


# --------------------------------------------------------------------------------------- what is asked for


def test_only_pages_and_thp_concern_it():
    layer = MemoryLayer(kernel())
    assert layer.concerns(environment(pages="4kB"))
    assert layer.concerns(environment(thp="never"))
    other = environment(**{"sysctl.vm.swappiness": "1"})
    assert not layer.concerns(other)
    assert layer.observe(running(other), FakeSql()) == {}


def test_huge_pages_are_added_to_those_of_others():
    ledger = FakeLedger()
    launch = prepare(kernel(total=100, free=50, promised=20), environment(pages="2MB"), ledger=ledger)
    # 50 are used, 20 promised, 72 more are wanted
    assert [(change.what, change.value) for change in ledger.changes] == [("huge pages of 2048 kB", "142")]
    assert launch == Launch(settings={"huge_pages": "on", "huge_page_size": "2MB"})


def test_pages_that_are_there_and_free_are_enough():
    ledger = FakeLedger()
    prepare(kernel(total=100, free=100), environment(pages="2MB"), ledger=ledger)
    assert ledger.changes == []


def test_small_pages_need_nothing_reserved():
    ledger = FakeLedger()
    assert prepare(kernel(), environment(pages="4kB"), ledger=ledger).settings == {"huge_pages": "off"}
    assert ledger.changes == []
    old = Needs(version=90300)
    assert prepare(kernel(), environment(pages="4kB"), old).settings == {}


@pytest.mark.parametrize(
    ("given", "had"), [("60", "60 are available"), ("0", "0 are available"), ("71", "71 are available")]
)
def test_fewer_pages_than_the_server_needs_are_refused_in_numbers(given, had):
    ledger = FakeLedger(lambda change: given)
    error = failure_of(HostNotFitError, lambda: prepare(kernel(), environment(pages="2MB"), ledger=ledger))
    assert "needs 72 huge pages of 2 MB" in error.what
    assert had in error.what
    assert "hugepagesz=2M hugepages=72" in error.remedy
    assert "reboot" in error.remedy


def test_more_than_the_memory_that_is_left_is_not_even_asked_for():
    ledger = FakeLedger()
    host = kernel(available=100 * MB)
    error = failure_of(HostNotFitError, lambda: prepare(host, environment(pages="2MB"), ledger=ledger))
    assert "100 MB of memory are available" in error.what
    assert ledger.changes == []


def test_pages_that_the_kernel_does_not_have_are_refused():
    error = failure_of(HostNotFitError, lambda: prepare(kernel(), environment(pages="1GB")))
    assert "no huge pages of 1 GB" in error.what
    assert "2048kB" in error.remedy


def test_servers_before_14_take_the_default_size_only():
    old = Needs(shared_memory=143 * MB, version=130023)
    assert prepare(kernel(), environment(pages="2MB"), old).settings == {"huge_pages": "on"}
    giants = {f"{GIANTS}/{name}": 0 for name in ("nr_hugepages", "free_hugepages", "resv_hugepages")}
    error = failure_of(HostNotFitError, lambda: prepare(kernel(**giants), environment(pages="1GB"), old))
    assert "before 14" in error.what
    assert "default_hugepagesz=1G" in error.remedy


@pytest.mark.parametrize("needs", [Needs(shared_memory=9 * MB, version=90300), Needs()])
def test_a_server_that_cannot_have_huge_pages_is_refused(needs):
    failure_of(HostNotFitError, lambda: prepare(kernel(), environment(pages="2MB"), needs))


def test_a_setting_that_contradicts_the_pages_is_refused():
    wanted = environment({"huge_pages": "try"}, pages="2MB")
    assert "settings.huge_pages" in failure_of(UsageError, lambda: prepare(kernel(), wanted)).remedy


def test_transparent_huge_pages_are_set_for_all_memory_at_once():
    ledger = FakeLedger(lambda change: f"{change.value} 67584")
    assert prepare(kernel(), environment(thp="always"), ledger=ledger) == Launch()
    prepare(kernel(), environment(thp="madvise"), ledger=ledger)
    assert [change.value for change in ledger.changes] == ["always always", "madvise advise"]


def test_transparent_huge_pages_that_are_so_already_are_left_alone():
    ledger = FakeLedger()
    same = kernel(**{f"{THP}/shmem_enabled": "always within_size [advise] never deny force"})
    prepare(same, environment(thp="madvise"), ledger=ledger)
    assert ledger.changes == []


def test_a_kernel_without_transparent_huge_pages_is_refused():
    host = kernel()
    del host.files[f"{THP}/shmem_enabled"]
    assert "shmem_enabled" in failure_of(HostNotFitError, lambda: prepare(host, environment(thp="never"))).remedy


def test_a_word_that_does_not_take_is_told():
    ledger = FakeLedger(lambda change: "madvise never 67584")
    error = failure_of(LevelNotTakenError, lambda: prepare(kernel(), environment(thp="always"), ledger=ledger))
    assert "the kernel has madvise and, for shared memory, never" in error.what


def test_sizes_that_are_set_apart_are_refused():
    host = kernel()
    host.listed = f"{THP}/hugepages-64kB/enabled: [always] inherit madvise never\n"
    error = failure_of(HostNotFitError, lambda: prepare(host, environment(thp="never")))
    assert (error.where, error.remedy) == (f"{THP}/hugepages-64kB/enabled", "write never to it")


# ----------------------------------------------------------------------------------------- what is seen


def observe(host, wanted, status="on", number=180000):
    return MemoryLayer(host).observe(running(wanted, number), FakeSql(status))


def test_a_server_that_fell_back_is_told():
    error = failure_of(
        LevelNotTakenError,
        lambda: observe(kernel(**{"/proc/7/smaps": SMALL.decode()}), environment(pages="2MB"), "off"),
    )
    assert "huge_pages_status = off" in error.what


def test_before_17_the_kernel_is_believed():
    host = kernel(**{"/proc/7/smaps": SMALL.decode()})
    error = failure_of(LevelNotTakenError, lambda: observe(host, environment(pages="2MB"), number=160000))
    assert "on pages of 4kB" in error.what
    host = kernel(**{"/proc/7/smaps": HUGE.decode()})
    facts = observe(host, environment(pages="2MB"), number=160000)
    assert (facts["memory.pages"], facts["memory.huge_pages_used"]) == ("2MB", str(80 * MB))


def test_huge_pages_where_small_ones_were_asked_for_are_told():
    host = kernel(**{"/proc/7/smaps": HUGE.decode()})
    assert (
        "on pages of 2MB"
        in failure_of(LevelNotTakenError, lambda: observe(host, environment(pages="4kB"), number=160000)).what
    )


def test_what_nobody_can_see_is_not_taken_for_granted():
    error = failure_of(LevelNotTakenError, lambda: observe(kernel(), environment(pages="2MB"), number=160000))
    assert "cannot be seen" in error.what
    assert "memory.pages" not in observe(kernel(), environment(pages="2MB"), number=170000)


def test_memory_that_the_kernel_treats_otherwise_than_its_word_says_is_told():
    words = {f"{THP}/enabled": "[always] madvise never", f"{THP}/shmem_enabled": "[always] within_size advise never"}
    host = kernel(**words, **{"/proc/7/smaps": SMALL.decode()})
    assert "not eligible" in failure_of(LevelNotTakenError, lambda: observe(host, environment(thp="always"))).what
    assert (
        "the kernel has always" in failure_of(LevelNotTakenError, lambda: observe(host, environment(thp="never"))).what
    )
    eligible = SMALL.replace(b"THPeligible:           0", b"THPeligible:           1")
    host.files["/proc/7/smaps"] = eligible
    assert "not one huge page" in failure_of(LevelNotTakenError, lambda: observe(host, environment(thp="always"))).what
    host.files["/proc/7/smaps"] = eligible.replace(b"THPeligible", b"ShmemPmdMapped:     4096 kB\nTHPeligible")
    facts = observe(host, environment(thp="always"))
    assert (facts["memory.thp_shared"], facts["memory.huge_pages_used"]) == ("always", str(4 * MB))


# ---------------------------------------------------------------------------------------- on this machine


def figure(path):
    return int(Path(path).read_text())


@pytest.mark.server
@pytest.mark.root
@pytest.mark.skipif(
    os.getuid() != 0 or not os.access(f"{POOL}/nr_hugepages", os.W_OK), reason="needs root and huge pages of 2 MB"
)
class TestOnThisMachine:
    @pytest.fixture
    def layer(self, server_host):
        return MemoryLayer(server_host)

    @pytest.fixture
    def sql(self, server_host, servers):
        return PsqlSql(server_host, servers.client_tools())

    @pytest.fixture
    def start(self, server_host, server_folder, cluster):
        """Prepare a layer for a server and start that; all are stopped before the host is as it was."""
        control = ClusterControl(server_host, SystemClock(), f"{server_folder}/run")
        up = []

        def start(level, layer, ledger, wanted):
            build, clone = cluster(level)
            needs = control.needs(wanted, build, clone.dataset)
            launch = layer.prepare(wanted, needs, ledger)
            up.append(control.start(wanted, build, clone, launch))
            return up[-1], needs

        start.stop = lambda: [control.stop(up.pop()) for _ in list(up)]
        yield start
        start.stop()

    @pytest.mark.parametrize("level", ["14", "16", "embedded"])
    def test_a_server_is_on_huge_pages_of_its_own_which_are_given_back(self, layer, sql, direct_ledger, start, level):
        before = figure(f"{POOL}/nr_hugepages")
        wanted = environment({"shared_buffers": "24MB", "max_connections": "20"}, pages="2MB")
        server, needs = start(level, layer, direct_ledger, wanted)
        facts = layer.observe(server, sql)
        assert facts["memory.pages"] == "2MB"
        assert needs.shared_memory <= int(facts["memory.huge_pages_used"]) < needs.shared_memory + 4 * MB
        assert "asked.huge_pages" in SettingsLayer().observe(server, sql)
        pages = -(-needs.shared_memory // (2 * MB))
        assert figure(f"{POOL}/nr_hugepages") - before == pages
        free, promised = figure(f"{POOL}/free_hugepages"), figure(f"{POOL}/resv_hugepages")
        assert before + pages - free + promised >= pages - 1
        start.stop()
        direct_ledger.undo_to(0)
        assert figure(f"{POOL}/nr_hugepages") == before

    def test_pages_of_somebody_else_stay_theirs(self, layer, sql, direct_ledger, start):
        first = environment({"shared_buffers": "16MB"}, pages="2MB")
        start("16", layer, direct_ledger, first)
        taken = figure(f"{POOL}/nr_hugepages")
        server, needs = start("embedded", layer, direct_ledger, replace(first, name="other"))
        assert figure(f"{POOL}/nr_hugepages") >= taken + needs.shared_memory // (2 * MB)
        assert layer.observe(server, sql)["memory.pages"] == "2MB"

    def test_small_pages_are_asserted_as_well(self, layer, sql, direct_ledger, start):
        server, _ = start("embedded", layer, direct_ledger, environment({"shared_buffers": "16MB"}, pages="4kB"))
        facts = layer.observe(server, sql)
        assert (facts["memory.pages"], facts["memory.huge_pages_used"]) == ("4kB", "0")

    def test_a_page_of_1_gb(self, layer, sql, direct_ledger, start):
        if not Path(GIANTS).exists():
            pytest.skip("this kernel has no pages of 1 GB")
        before = figure(f"{GIANTS}/nr_hugepages")
        try:
            server, _ = start("embedded", layer, direct_ledger, environment({"shared_buffers": "16MB"}, pages="1GB"))
        except HostNotFitError as error:
            pytest.skip(f"this machine has no page of 1 GB to give: {error.what}")
        facts = layer.observe(server, sql)
        assert (facts["memory.pages"], facts["memory.huge_pages_used"]) == ("1GB", str(GB))
        start.stop()
        direct_ledger.undo_to(0)
        assert figure(f"{GIANTS}/nr_hugepages") == before

    @pytest.mark.parametrize("level", ["always", "madvise", "never"])
    def test_transparent_huge_pages_are_set_seen_and_undone(self, layer, sql, direct_ledger, start, level):
        files = [Path(THP, "enabled"), Path(THP, "shmem_enabled"), Path("/proc/sys/vm/min_free_kbytes")]
        before = [file.read_text() for file in files]
        wanted = environment({"shared_buffers": "16MB"}, thp=level, pages="4kB")
        server, _ = start("embedded", layer, direct_ledger, wanted)
        facts = layer.observe(server, sql)
        shared = "advise" if level == "madvise" else level
        assert (facts["memory.thp"], facts["memory.thp_shared"]) == (level, shared)
        start.stop()
        direct_ledger.undo_to(0)
        assert [file.read_text() for file in files] == before

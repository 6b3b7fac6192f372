"""Hand-written fakes of every port that the loop talks to; what happened is in `World.log`."""

from dataclasses import dataclass, field, replace

import records
from fake_ledger import FakeLedger
from pgstrata.conduct.rig import Rig
from pgstrata.errors import HostLostError, ServerFailedError
from pgstrata.model.driver import Capabilities
from pgstrata.model.experiment import HERE, Environment, HostSpec, Level, ServerKind, ServerSpec
from pgstrata.model.launch import Launch, Needs
from pgstrata.model.server import Address, Build, Fingerprint, ServerVersion
from pgstrata.model.workload import DataKind, Workload
from pgstrata.ports.host import ClockReading, CpuTime, ProcessExit
from pgstrata.ports.server import Clone, Dataset, QueryResult, RunningServer
from pgstrata.ports.target import ClientHost, Generator, ServerHost, Supply
from pgstrata.report.sentences.reasons import say_reason

DATA = DataKind(name="pgbench", title="", unit="", bytes_per_scale=1)
WORKLOAD = Workload(name="select-only", title="", data=DATA, writes=False, builtin="select-only")
CONNECT = replace(WORKLOAD, name="connect", reconnects=True)
CUSTOM = Workload(name="custom", title="", data=DATA, writes=True)


def environment(name, **more):
    return Environment(
        name=name,
        levels=(Level(factor="server", value=name),),
        server=ServerSpec(kind=ServerKind.CATALOGUE, value="18"),
        **more,
    )


def build():
    return Build(
        spec=ServerSpec(kind=ServerKind.CATALOGUE, value="18"),
        prefix="/pg",
        version=ServerVersion(text="18.6", number=180006),
        supplier="s",
        compiler="c",
        configure="",
        cflags="",
        digest="d",
    )


@dataclass
class World:
    """Shared state of the fakes: a clock, a log of what was done, and what is to go wrong."""

    now: float = 1000.0
    wall_jump: float = 0.0
    log: list = field(default_factory=list)
    up: set = field(default_factory=set)
    clones: set = field(default_factory=set)
    fail_start: set = field(default_factory=set)
    outputs: dict = field(default_factory=dict)
    server_logs: dict = field(default_factory=dict)
    raise_in_measure: list = field(default_factory=list)
    start_seconds: float = 0.1
    kernel: str = "6.1"
    oom_kills: int = 0
    rates: dict = field(default_factory=dict)
    ceiling: float = 3.0
    fail_discard: bool = False
    loads: list = field(default_factory=list)


class FakeClock:
    def __init__(self, world):
        self.world = world

    def monotonic(self):
        return self.world.now

    def wall(self):
        return 1.7e9 + self.world.now

    def sleep(self, seconds):
        self.world.now += seconds


class FakeHost:
    name, user, transport_pids = "fake", "me", (1,)

    def __init__(self, world):
        self.world = world
        self.readings = 0

    def clock(self):
        self.readings += 1
        jump = self.world.wall_jump if self.readings % 2 == 0 else 0.0
        return ClockReading(wall=self.world.now + jump, monotonic=self.world.now)

    def run(self, command, *, timeout=600.0, check=True):
        self.world.log.append(("run", *command.argv))

    def running(self, command, *, timeout=600.0, check=True):
        yield
        return self.run(command, timeout=timeout, check=check)

    def read_files(self, paths):
        return {path: f"oom_kill {self.world.oom_kills}\n".encode() for path in paths}

    def make_folder(self, path, *, mode=0o700):
        pass

    def remove_tree(self, path):
        pass


class FakeDatasets:
    def __init__(self, world):
        self.world = world

    def ensure(self, environment, build, cell):
        return Dataset(identity=f"data-s{cell.scale}", location="/data", bytes=1, seconds_building=1)

    def clone(self, dataset, name, folder="", wal=""):
        self.world.log.append(("clone", name))
        self.world.clones.add(name)
        return Clone(
            dataset=dataset,
            location=f"{folder or '/clones'}/{name}",
            database="bench",
            folder=name,
            wal=f"{wal}/{name}" if wal else "",
        )

    def cloning(self, *arguments):
        yield
        return self.clone(*arguments)

    def discarding(self, clone):
        yield
        self.discard(clone)

    def discard(self, clone):
        if self.world.fail_discard and "preflight" not in clone.folder:
            raise ServerFailedError("database is being accessed by other users")
        self.world.log.append(("discard", clone.folder))
        self.world.clones.discard(clone.folder)


class FakeControl:
    def __init__(self, world):
        self.world = world

    def start(self, environment, build, clone, launch=None):
        if (environment.name, "preflight" in clone.folder) in self.world.fail_start:
            raise ServerFailedError("the server did not start", details=("FATAL: no",))
        self.world.now += self.world.start_seconds
        self.world.log.append(("start", environment.name))
        self.world.up.add(environment.name)
        address = Address(host="/s", port=1, user="u", database="bench")
        return RunningServer(
            environment=environment,
            build=build,
            clone=clone,
            address=address,
            postmaster_pid=7,
            launch=launch or Launch(),
        )

    def starting(self, *arguments):
        yield
        return self.start(*arguments)

    def stopping(self, server):
        yield
        self.stop(server)

    def needs(self, environment, build, dataset):
        self.world.log.append(("needs", environment.name))
        return Needs(shared_memory=1000)

    def alive(self, server):
        return server.environment.name in self.world.up

    def stop(self, server):
        self.world.log.append(("stop", server.environment.name))
        self.world.up.discard(server.environment.name)

    def log(self, server):
        return self.world.server_logs.get(server.environment.name, b"LOG: fine")


class FakeProcess:
    pid = 99

    @property
    def pids(self):
        return (self.pid,)

    def __init__(self, world, ends, code):
        self.world, self.ends, self.code = world, ends, code

    def poll(self):
        return ProcessExit(code=self.code, cpu=CpuTime(user=1, system=0)) if self.world.now >= self.ends else None

    def wait(self, timeout):
        return ProcessExit(code=self.code, cpu=CpuTime(user=1, system=0))

    def signal(self, signal, *, group=False):
        self.world.log.append(("signal", str(signal)))
        self.ends = self.world.now


class FakeDriver:
    name = "fake"
    capabilities = Capabilities(
        pausable=True, transaction_log=True, fixed_rate=True, skips_late=True, scripts=True, loads_data=True
    )

    def __init__(self, world):
        self.world = world
        self.environment = ""
        self.clients = 0

    def facts(self):
        return {"version": "18"}

    def least_load(self, load):
        return replace(load, cell=replace(load.cell, options={"least": "1"}))

    def start(self, load, folder, *, on_parent_death=None):
        self.measured = folder.endswith("/run")
        self.ceiling = folder.endswith("/ceiling")
        self.world.loads.append((folder, load))
        environment = folder.split("/")[-2].split("--")[1] if "--" in folder else ""
        self.environment, self.clients = environment, load.cell.clients
        if self.measured:
            if self.world.raise_in_measure:
                raise self.world.raise_in_measure.pop()
            self.world.log.append(("measure", environment, tuple(sorted(self.world.up))))
        return FakeProcess(self.world, self.world.now + load.seconds, 0)

    def end(self, process):
        self.world.log.append(("end", process.pid))
        process.ends = self.world.now

    def counting(self, folder, marks, arm):
        yield
        self.world.log.append(("count", arm))
        return {"slices.txt": f"arm {arm}".encode()}

    def progress(self, folder, offset):
        return (), offset

    def collect(self, folder):
        rates = self.world.rates
        rate = rates.get((self.environment, self.clients), rates.get(self.environment, 100))
        if callable(rate):
            rate = rate(folder)
        if self.ceiling:
            rate *= self.world.ceiling
        output = self.world.outputs.get(self.environment) if self.measured else None
        return {"pgbench.out": f"tps = {rate}".encode() if output is None else output}

    def ran(self, evidence):
        return bool(evidence.get("pgbench.out"))

    def messages(self, evidence):
        return tuple(evidence.get("pgbench.err", b"").decode().splitlines())

    def parse(self, evidence):
        text = evidence.get("pgbench.out", b"")
        errors = tuple(line for line in text.decode().splitlines() if "error" in line or "FATAL" in line)
        complete = b"tps" in text
        tps = float(text.split()[2]) if b"tps = " in text else 100.0
        return records.make_result(
            complete=complete, tps=tps if complete else None, failed=text.count(b"failed"), errors=errors, version="18"
        )


class FakeSql:
    def query(self, address, statement):
        return QueryResult(
            columns=("name", "setting", "unit", "source", "boot_val"), rows=(("jit", "off", "", "x", "on"),)
        )

    def execute(self, address, script):
        pass

    def executing(self, address, script):
        yield
        self.execute(address, script)


class FakeEvidence:
    def __init__(self, identity):
        self.identity = identity
        self.files = {}

    def keep(self, name, content):
        self.files[name] = content

    keep_shared = keep


class FakeStore:
    def __init__(self, done=()):
        self.done = set(done)
        self.kept = {}
        self.headers = {}
        self.fingerprints = {}

    def committed(self):
        return frozenset(self.done)

    def begin(self, identity):
        return FakeEvidence(identity)

    def commit(self, *finished):
        for run in finished:
            assert run.record.identity not in self.done
            self.done.add(run.record.identity)
            self.kept[run.record.identity] = run.record
            self.headers[run.record.identity] = run.header

    def records(self):
        return tuple(self.kept.values())

    def keep_fingerprint(self, name, fingerprint):
        self.fingerprints[name] = fingerprint

    def fingerprint(self, name):
        return self.fingerprints.get(name)


class Recorder:
    def __init__(self):
        self.events = []

    def emit(self, event):
        self.events.append(event)


class FakeTarget:
    """A machine that is up, and what is done with it is in the log."""

    def __init__(self, world, home):
        self.world, self.home = world, home

    def provision(self):
        return {name: supply.build for name, supply in self.home.supplies.items()}

    def boot(self, environments, *, fresh):
        self.world.log.append(("boot", *(each.name for each in environments)))

    def ready(self):
        self.world.log.append(("ready",))

    def observe(self):
        return self.home

    def release(self):
        self.world.log.append(("release",))

    def at_hand(self, environment):
        return True

    def give_back(self):
        self.world.log.append(("give back",))

    def kernel(self):
        return ""

    def silent(self):
        try:
            self.home.host.clock()
        except HostLostError:
            return True
        return False

    def reopen(self):
        raise NotImplementedError


def home_of(rig):
    """The only machine of a rig."""
    (target,) = rig.targets.values()
    return target.observe()


def with_hosts(rig, homes, **more):
    """The rig with other machines; client, sql and drivers are those of this one."""
    targets = {spec: FakeTarget(rig.clock.world, home) for spec, home in homes.items()}
    return with_client(replace(rig, targets=targets), **more)


def with_client(rig, *, client=None, sql=None, drivers=None, **more):
    """The rig with another client's machine, ways to its server or load generators on this machine."""
    here = rig.here
    if client is not None:
        here = replace(here, generators=(Generator(host=client, scratch="/scratch", facts=here.facts),))
    here = replace(here, sql=sql or here.sql, drivers=drivers or here.drivers)
    return replace(rig, here=here, clients={HERE: FakeSide(here)}, **more)


class FakeSide:
    """Where load comes from, always the same."""

    def __init__(self, found):
        self.found = found

    def observe(self):
        return self.found


def enter(rig):
    """Have all machines of a rig entered, for what is called within a visit."""
    rig.server_hosts.update({spec: target.observe() for spec, target in rig.targets.items()})
    return rig


def make_rig(world, plan, *, store=None, layers=(), host_layers=(), drivers=None):
    supply = Supply(build=build(), datasets=FakeDatasets(world), control=FakeControl(world))
    host = FakeHost(world)
    names = {environment.name: supply for environment in plan.experiment.environments}
    home = ServerHost(
        host=host,
        layers=host_layers,
        ledger=FakeLedger(),
        supplies=names,
        facts={"host.txt": b"x"},
        fingerprint=Fingerprint(facts={"host.kernel": world.kernel}),
    )
    here = ClientHost(
        generators=(Generator(host=host, scratch="/scratch", facts=home.facts),),
        sql=FakeSql(),
        drivers={"pgbench": FakeDriver(world), **(drivers or {})},
        fingerprint=home.fingerprint,
    )
    return Rig(
        targets={HostSpec(): FakeTarget(world, home)},
        baseline=HostSpec(),
        here=here,
        clients={HERE: FakeSide(here)},
        clock=FakeClock(world),
        store=store or FakeStore(),
        collectors=(),
        layers=layers,
        workloads={"select-only": WORKLOAD, "custom": CUSTOM, "connect": CONNECT},
        events=Recorder(),
        warm_sql=lambda workload: "SELECT 1;",
        say_reason=say_reason,
        version="0",
    )

"""The host of a watched server: its counters, its log wherever that goes, and a connection that breaks."""

import json
import os
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest

from pgstrata.app.watching import host_feed, log_tail
from pgstrata.app.watching.host_feed import OpenedHostFeed, RemoteHostFeed, require_host
from pgstrata.collectors.live.host import FILES, STATUSES, find_contained
from pgstrata.collectors.live.log import MOST, LogPlace, read_log_place
from pgstrata.errors import CommandFailedError, HostFileError, HostLostError, HostNotFitError, ParseError
from pgstrata.hosts.local import LocalHost
from pgstrata.model.archive import EventKind
from pgstrata.ports.host import Command

ERROR = "2026-11-28 01:02:03 CET [7] ERROR:  division by zero\n"


class Watched(LocalHost):
    """This machine as the server's host, as an ordinary user."""

    user = "clerk"


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "postgresql.log"
    path.write_text(ERROR * 5)
    return path


def make_feed():
    clock = iter(range(10_000))
    return OpenedHostFeed(Watched(), lambda: float(next(clock)))


def aim(feed, path):
    feed.aim(LogPlace(path=str(path), backend=os.getpid()))


def errors(feed, moment):
    return sum(event.times for event in feed.read(moment).events if event.kind is EventKind.ERRORS)


def add(path, text):
    with path.open("a") as stream:
        stream.write(text)


def test_plans_that_come_to_the_log_are_handed_on_once(log):
    feed = make_feed()
    aim(feed, log)
    feed.read(1)
    plan = "Query Text: select 'x'\n\tSeq Scan on stock  (cost=0.00..8.31 rows=1 width=36)\n"
    add(log, f"[7] LOG:  duration: 3.651 ms  plan:\n\t{plan}{ERROR}")
    (found,) = feed.read(2).plans
    assert (found.text, found.plan.outline) == ("select ?", ("Seq Scan on stock",))
    assert not feed.read(3).plans


def test_a_plan_of_which_a_part_is_left_out_is_none(log):
    feed = make_feed()
    aim(feed, log)
    add(log, "[7] LOG:  duration: 3.651 ms  plan:\n\tQuery Text: select 'x'\n\t")
    feed.read(1)
    add(log, "y" * MOST + f"\n\tSeq Scan on stock  (cost=0.00..8.31 rows=1 width=36)\n{ERROR}")
    assert not feed.read(2).plans


def test_only_what_comes_to_the_log_counts(log):
    feed = make_feed()
    aim(feed, log)
    assert not feed.log_limit
    assert errors(feed, 1) == 0
    add(log, ERROR * 2)
    assert errors(feed, 2) == 2
    assert errors(feed, 3) == 0


def test_counters_of_the_host_are_rates_since_the_last_second():
    feed = make_feed()
    feed.read(1)
    assert feed.read(2).rates["host_user_cpu"] >= 0
    assert FILES[0] == "/proc/stat"


@pytest.mark.parametrize("replace", [True, False])
def test_a_log_that_is_truncated_or_replaced_is_read_from_its_beginning(log, replace):
    feed = make_feed()
    aim(feed, log)
    feed.read(1)
    if replace:
        log.rename(log.with_suffix(".1"))
    log.write_text(ERROR)
    assert sum(errors(feed, moment) for moment in range(2, 14)) == 1


def test_a_log_that_is_gone_is_looked_for_again(log):
    feed = make_feed()
    aim(feed, log)
    feed.read(1)
    log.unlink()
    feed.read(2)
    assert feed.log_limit == "no_log"
    log.write_text("")
    aim(feed, log)
    assert not feed.log_limit


def test_a_server_that_names_another_log_is_followed(log, tmp_path):
    feed = make_feed()
    aim(feed, log)
    other = tmp_path / "second.log"
    other.write_text("")
    aim(feed, other)
    add(other, ERROR)
    assert errors(feed, 1) == 1


@pytest.mark.parametrize("moment", [2, 20])
def test_of_a_great_deal_the_end_is_read(log, moment):
    feed = make_feed()
    aim(feed, log)
    feed.read(1)
    add(log, ERROR * (3 * MOST // len(ERROR)))
    assert errors(feed, moment) < 1.1 * MOST / len(ERROR)


@pytest.mark.parametrize("kind", ["folder", "nothing", "pipe", "device"])
def test_what_is_no_ordinary_file_is_no_log(tmp_path, kind):
    path = {"folder": tmp_path, "nothing": tmp_path / "x", "pipe": tmp_path / "pipe", "device": Path("/dev/zero")}[kind]
    if kind == "pipe":
        os.mkfifo(path)
    feed = make_feed()
    aim(feed, path)
    assert feed.log_limit == "no_log"
    assert errors(feed, 1) == 0


class Rooted(LocalHost):
    """This machine as root sees it, where the named process is one of root's."""

    user = "root"

    def run(self, command, **more):
        if command.argv[-1].startswith("/proc/"):
            command = Command(argv=("echo", *command.argv[2].replace("%u", "0").replace("%U", "root").split()))
        return super().run(command, **more)


def test_root_reads_no_log_for_a_server_that_names_a_process_of_roots_as_its_own(log):
    feed = OpenedHostFeed(Rooted(), lambda: 0.0)
    aim(feed, log)
    assert feed.log_limit == "no_log"


def test_without_a_named_log_the_servers_standard_error_is_looked_at():
    feed = make_feed()
    feed.aim(LogPlace(path="", backend=os.getpid()))  # that of this test's parent: a file, a pipe or a terminal
    feed.read(1)


@pytest.mark.parametrize(
    ("said", "path"),
    [
        (b"log/x.log\t/data\t7\n", "/data/log/x.log"),
        (b"/var/log/x.log\t/data\t7\n", "/var/log/x.log"),
        (b"log/x.log\t\t7\n", ""),
        (b"\t/data\t7\n", ""),
    ],
)
def test_where_the_log_is_may_be_said_below_the_data_directory(said, path):
    assert read_log_place(said) == LogPlace(path=path, backend=7)


def test_an_unknown_answer_about_the_log_is_refused():
    with pytest.raises(ParseError, match="place of the log"):
        read_log_place(b"x\ty\n")


class Line:
    """A connection to another machine that can break; waits of the thread pass at once."""

    def __init__(self, monkeypatch):
        self.broken, self.opened, self.told = None, 0, []
        monkeypatch.setattr(host_feed, "open_site", self._open)

    @contextmanager
    def _open(self, destination):
        if self.broken:
            raise HostLostError(self.broken)
        self.opened += 1
        yield SimpleNamespace(transport=self)

    name, user = "ssh:db1", "clerk"

    def read_files(self, paths):
        if self.broken:
            raise HostLostError(self.broken)
        return {path: b"postgres: clerk shop" for path in paths if path.endswith("/cmdline")}

    def feed(self):
        return RemoteHostFeed("db1", lambda: 0.0, self.told.append)


def test_another_machine_is_asked_whether_the_server_runs_there(monkeypatch):
    feed = Line(monkeypatch).feed()
    assert feed.runs(4711)
    feed.close()


def test_a_machine_that_cannot_be_reached_at_the_start_is_an_error(monkeypatch):
    line = Line(monkeypatch)
    line.broken = "no route"
    with pytest.raises(HostLostError, match="no route"):
        line.feed()


def test_a_connection_that_breaks_is_told_and_made_again(monkeypatch):
    line = Line(monkeypatch)
    feed = line.feed()
    line.broken = "reset by peer"
    feed._ended = Waits(feed, [lambda: None, lambda: None, lambda: setattr(line, "broken", None), lambda: None])
    # the thread may be at its end before the first of both returns
    events = list(feed.read(5).events)
    feed._thread.join(timeout=60)
    assert line.told == [
        "the connection to ssh:db1 was lost: reset by peer; its counters are missing until it is back",
        "connected to ssh:db1 again",
    ]
    (event,) = (*events, *feed.read(5).events)
    assert (event.kind, event.moment, event.detail) == (EventKind.MISSED, 5, "host: reset by peer")
    assert line.opened == 2


def test_a_log_that_was_not_looked_for_yet_is_not_missing(tmp_path):
    """A connection that is made again knows of no log until its first look, and limits are kept for a minute."""
    feed = make_feed()
    assert not feed.log_limit
    aim(feed, tmp_path / "none")
    assert feed.log_limit == "no_log"


def test_another_machine_is_not_asked_each_second_for_a_log_that_cannot_be_read(monkeypatch):
    line = Line(monkeypatch)
    asked = []

    def run(command, **_):
        asked.append(command.argv[0])
        raise HostFileError("permission denied")

    monkeypatch.setattr(line, "run", run, raising=False)
    feed = line.feed()
    feed.aim(LogPlace(path="/log/postgresql.log", backend=7))
    again = [lambda: feed.aim(LogPlace(path="/log/postgresql.log", backend=7))]
    feed._ended = Waits(feed, [*[lambda: None] * 20, *again, *[lambda: None] * 20])
    feed.read(5)
    feed._thread.join(timeout=60)
    assert asked == ["stat", "stat"], "once for each time that the server said where it is"
    assert feed.log_limit == "no_log"
    assert line.told == []


def test_what_ssh_said_last_is_why_a_connection_was_lost(monkeypatch):
    line = Line(monkeypatch)
    feed = line.feed()
    words = ("Welcome", "Connection to db1 closed\x1b[2J by remote host.")

    def fail(paths):
        raise HostLostError("the shell has ended", details=words)

    monkeypatch.setattr(line, "read_files", fail, raising=False)
    feed._ended = Waits(feed, [lambda: None])
    events = list(feed.read(5).events)
    feed._thread.join(timeout=60)
    (event,) = (*events, *feed.read(5).events)
    assert event.detail == "host: Connection to db1 closed\ufffd[2J by remote host"
    assert line.told[0].startswith("the connection to ssh:db1 was lost: Connection to db1 closed\ufffd[2J by remote")


def test_an_unforeseen_error_of_the_thread_is_told_as_a_lost_connection(monkeypatch):
    line = Line(monkeypatch)
    feed = line.feed()

    def fail(paths):
        raise ValueError("not a number")

    monkeypatch.setattr(line, "read_files", fail, raising=False)
    feed._ended = Waits(feed, [lambda: None])
    feed.read(5)
    feed._thread.join(timeout=60)
    assert line.told == ["the connection to ssh:db1 was lost: not a number; its counters are missing until it is back"]


class Waits:
    """Stands for the event that ends the thread: each wait does the next step, the last one ends it."""

    def __init__(self, feed, steps):
        self.steps = iter(steps)

    def wait(self, _):
        step = next(self.steps, None)
        if step is None:
            return True
        step()
        return False


CONTAINER = {
    "/proc/4711/cgroup": b"0::/\n",
    "/proc/4711/cmdline": b"postgres: watcher shop 10.0.0.1(4) idle",
    "/proc/self/mountinfo": b"1203 1195 0:29 / /sys/fs/cgroup ro,nosuid - cgroup2 cgroup rw,nsdelegate\n",
    "/proc/stat": b"cpu  1 1 1 1 1 1 1 1\nctxt 5\nprocs_running 1\n",
    "/sys/fs/cgroup/cpu.max": b"400000 100000\n",
    "/sys/fs/cgroup/cpu.stat": b"usage_usec 9\nnr_periods 10\nnr_throttled 2\nthrottled_usec 1000000\n",
}
LIMITED = {
    "/sys/fs/cgroup/cpu.max": b"100000 100000\n",
    "/sys/fs/cgroup/cpu.stat": b"usage_usec 9\nnr_periods 20\nnr_throttled 12\nthrottled_usec 3000000\n",
}


class Machine:
    """A host with these files, which knows no programs."""

    name, user = "ssh:db1", "clerk"

    def __init__(self, files):
        self.files, self.asked, self.ran = dict(files), (), []

    def read_files(self, paths):
        self.asked = tuple(paths)
        return {path: self.files[path] for path in paths if path in self.files}

    def read_matching(self, pattern):
        assert pattern == STATUSES
        return b"".join(content for path, content in self.files.items() if path.endswith("/status"))

    def run(self, command, **_):
        self.ran.append(command.argv)
        raise HostFileError(f"there is no {command.argv[0]}")


def test_the_limit_of_a_servers_control_group_is_read_each_second_and_a_change_of_it_is_an_event():
    machine, clock = Machine(CONTAINER), count()
    feed = OpenedHostFeed(machine, lambda: float(next(clock)))
    feed.aim(LogPlace(path="", backend=4711))
    assert feed.read(100).rates == {}
    assert "/sys/fs/cgroup/io.stat" not in machine.asked, "what is not there is not asked for each second"
    machine.files |= LIMITED
    found = feed.read(101)
    assert (found.rates["cpu_limit"], found.rates["cpu_limit_reached"], found.rates["cpu_throttled"]) == (1.0, 1.0, 2.0)
    ((moment, kind, detail),) = ((each.moment, each.kind, each.detail) for each in found.events)
    assert (moment, kind, detail) == (101, EventKind.LIMIT, "4 CPU to 1 CPU")
    machine.files["/sys/fs/cgroup/io.stat"] = b""
    feed.aim(LogPlace(path="", backend=4711))
    feed.read(102)
    assert "/sys/fs/cgroup/io.stat" in machine.asked, "a controller may be added at any time"


def test_the_control_group_is_read_behind_ssh_in_the_same_way(monkeypatch):
    machine, clock = Machine(CONTAINER), count()

    @contextmanager
    def open_site(_):
        yield SimpleNamespace(transport=machine)

    monkeypatch.setattr(host_feed, "open_site", open_site)
    feed = RemoteHostFeed("db1", lambda: float(next(clock)) / 100, [].append)
    feed.aim(LogPlace(path="", backend=4711))
    feed._ended = Waits(feed, [lambda: None, lambda: machine.files.update(LIMITED)])
    # the thread may be at its end before the first of both returns
    found = [feed.read(100)]
    feed._thread.join(timeout=60)
    found.append(feed.read(101))
    rates = {name: value for each in found for name, value in each.rates.items()}
    assert (rates["cpu_limit"], rates["cpu_limit_reached"]) == (1.0, 1.0)
    assert [event.kind for each in found for event in each.events] == [EventKind.LIMIT]


def status(name, *ids):
    """/proc/PID/status of a process with these ids, that of its host first."""
    numbers = "\t".join(map(str, ids))
    return (
        f"Name:\t{name}\nUmask:\t0077\nState:\tS (sleeping)\nPid:\t{ids[0]}\nNSpid:\t{numbers}\nThreads:\t1\n".encode()
    )


DOCKER = {
    "/proc/75/cmdline": b"[kworker/0:1]",
    "/proc/20817/status": status("postgres", 20817, 75),
    "/proc/20816/status": status("postgres", 20816, 74),
    "/proc/900/status": status("sh", 900, 75),
    "/proc/75/status": status("postgres", 75),
    "/proc/20817/cgroup": b"0::/system.slice/docker-7f3c.scope\n",
    "/proc/self/mountinfo": b"26 22 0:23 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n",
    "/sys/fs/cgroup/system.slice/docker-7f3c.scope/cpu.max": b"150000 100000\n",
}


def test_a_server_in_a_container_of_the_named_host_is_found_by_its_id_there():
    machine = Machine({**CONTAINER, **DOCKER})
    feed = OpenedHostFeed(machine, lambda: 0.0, contained=True)
    assert feed.runs(75)
    feed.aim(LogPlace(path="/var/lib/postgresql/data/log/postgresql.log", backend=75))
    feed.read(1)
    assert "/sys/fs/cgroup/system.slice/docker-7f3c.scope/cpu.max" in machine.asked
    assert feed.log_limit == "no_container_log"
    assert machine.ran == [], "the host's file of the same name is another one"
    assert not OpenedHostFeed(machine, lambda: 0.0).runs(75), "nobody has named this host"


def test_servers_of_two_containers_are_not_taken_for_each_other():
    machine = Machine({**DOCKER, "/proc/31000/status": status("postgres", 31000, 75)})
    assert not OpenedHostFeed(machine, lambda: 0.0, contained=True).runs(75)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"Name:\tpostgres\n",
        b"NSpid:\t1\t75\n",
        b"Name:\tpostgres\nNSpid:\n",
        status("postgres", 5),
        status("postgresx", 5, 75),
    ],
)
def test_processes_that_are_none_of_a_contained_servers_are_left_out(text):
    assert find_contained(text, 75) is None


CONTAINER_ID = "7f3c" * 16
DOCKER_LOG = f"/var/lib/docker/containers/{CONTAINER_ID}/{CONTAINER_ID}-json.log"
WRAPPED = json.dumps({"log": ERROR, "stream": "stderr", "time": "2026-11-28T01:02:03Z"}) + "\n"


class ContainerHost(Machine):
    """A host of containers with docker's log of one, which belongs to root; `modes` are those of folders."""

    def __init__(self, user, **modes):
        super().__init__({
            **CONTAINER,
            **DOCKER,
            "/proc/20817/cgroup": f"0::/system.slice/docker-{CONTAINER_ID}.scope\n".encode(),
            "/proc/20817/status": DOCKER["/proc/20817/status"] + b"PPid:\t20001\n",
            DOCKER_LOG: WRAPPED.encode(),
        })  # fmt: skip
        self.user, self.modes, self.stderr = user, modes, "pipe:[4711]"

    def run(self, command, *, check=True, **_):
        self.ran.append(command.argv)
        program, path = command.argv[0], command.argv[-1]
        if program == "readlink" and path == "/proc/20001/fd/2":
            return SimpleNamespace(code=0, text=f"{self.stderr}\n")
        if program != "stat" or path not in self.files:
            raise CommandFailedError(f"{path}: no such file")
        if "%i %s" in command.argv:
            return SimpleNamespace(code=0, text=f"77 {len(self.files[path])}\n")
        steps = command.argv[command.argv.index("--") + 1 :]
        kinds = ("regular file" if each == path else "directory" for each in steps)
        return SimpleNamespace(
            code=0,
            text="".join(
                f"root {self.modes.get(each, '755')} {kind}\n" for each, kind in zip(steps, kinds, strict=True)
            ),
        )

    def read(self, path, *, offset=0):
        return self.files[path][offset:]


def aim_at_container(machine, path=""):
    feed = OpenedHostFeed(machine, lambda: 0.0, contained=True)
    feed.aim(LogPlace(path=path, backend=75))
    return feed


@pytest.mark.parametrize("user", ["root", "clerk"])
def test_the_log_that_docker_keeps_of_a_servers_container_is_read_from_its_host(user):
    machine = ContainerHost(user)
    feed = aim_at_container(machine)
    assert not feed.log_limit
    assert errors(feed, 1) == 0, "what was there before is not counted"
    machine.files[DOCKER_LOG] += 2 * WRAPPED.encode() + b'{"log": "half'
    assert errors(feed, 2) == 2


def test_root_reads_no_container_log_that_another_user_could_replace():
    machine = ContainerHost("root", **{"/var/lib/docker": "775"})
    assert aim_at_container(machine).log_limit == "no_container_log"


@pytest.mark.parametrize("stderr", ["/var/log/postgresql.log", "pipe:[4711]"])
def test_without_a_log_that_can_be_read_that_of_the_container_is_named_as_missing(stderr):
    machine = ContainerHost("root")
    machine.stderr = stderr
    del machine.files[DOCKER_LOG]
    feed = aim_at_container(machine)
    assert feed.log_limit == "no_container_log"
    assert errors(feed, 1) == 0


def test_a_server_that_writes_files_in_its_container_has_no_messages_in_the_containers_log():
    feed = aim_at_container(ContainerHost("root"), "/var/lib/postgresql/data/log/postgresql.log")
    assert feed.log_limit == "no_container_log"


class Contained(Watched):
    """This machine, on which this process stands for a server in a container that has the id 75 there."""

    def read_matching(self, pattern):
        return status("postgres", os.getpid(), 75)

    def read_files(self, paths):
        return {path: content for path, content in super().read_files(paths).items() if path != "/proc/75/cmdline"}

    def run(self, command, **more):
        if command.argv[-1] == f"/proc/{os.getpid()}":
            command = Command(argv=("echo", self.owner, "postgres"))
        return super().run(command, **more)


@pytest.mark.parametrize(
    ("owner", "linked", "limit"),
    [(str(os.getuid()), False, ""), (str(os.getuid()), True, "no_container_log"), ("4711", False, "no_container_log")],
)
def test_on_this_machine_a_log_in_the_container_is_read_where_it_is_the_servers_own(log, owner, linked, limit):
    if linked:
        (log.parent / "link.log").symlink_to(log)
    host = Contained()
    host.owner = "1" if owner == "0" else owner
    feed = OpenedHostFeed(host, lambda: 0.0, contained=True, here=True)
    if owner == "0":
        os.chown(log, 1, 1)
    feed.aim(LogPlace(path=str(log.parent / "link.log" if linked else log), backend=75))
    assert feed.log_limit == limit
    add(log, ERROR)
    assert errors(feed, 1) == (0 if limit else 1)


def test_a_log_in_a_container_that_is_removed_is_looked_for_again(log):
    file = log_tail.ContainedFile(os.getpid(), str(log), log.stat().st_uid)
    tail = log_tail.LogTail(file)
    tail.read(0)
    log.unlink()
    with pytest.raises(FileNotFoundError):
        tail.read(1)


def test_a_server_that_does_not_run_on_this_machine_is_refused_with_a_remedy():
    feed = OpenedHostFeed(Machine({}), lambda: 0.0, contained=True, here=True)
    feed.host.name = "local"
    with pytest.raises(HostNotFitError, match="does not run on this machine"):
        require_host(feed, 75)

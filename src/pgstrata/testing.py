"""Conformance tests for people who add a host: what holds for every one of them, by whatever means it works.

Subclass a conformance class in a test module and give it the fixtures that its tests name. Nothing here needs a test
framework; pytest finds the methods of the subclass. What only pgstrata's own tests need belongs in these.
"""

# ruff: noqa: PLR2004  expected figures are written where they are expected

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final, TypeVar

from pgstrata.errors import CommandFailedError, DiskFullError, HostFileError, HostNotFitError, PgstrataError
from pgstrata.model.secret import Secret
from pgstrata.ports.host import Command, Host, Process, StopSignal
from pgstrata.ports.steps import finish

_Failure = TypeVar("_Failure", bound=BaseException)

_PATIENCE: Final = 20.0
_AWKWARD_WORDS: Final = (
    "", " two  spaces ", "-n", "--", "*", "$HOME `id` $(id)", "it's \"quoted\" \\ \\n", "two\nlines\n", "tab\t",
    "ünï→cødé", "āĂăĄąĆćĈ", "a=b", "!", "#", "~", "{a,b}", "\x01\x7f", "\r",
)  # fmt: skip
_ALL_BYTES: Final = bytes(range(256)) * 3 + b"\n\0no newline at the end"


def failure_of(kind: type[_Failure], action: Callable[[], object]) -> _Failure:
    """The error with which an action fails; AssertionError if it does not."""
    try:
        action()
    except kind as error:
        return error
    raise AssertionError(f"{kind.__name__} was not raised")


def _command(*argv: str, stdin: bytes = b"", folder: str | None = None, password: Secret | None = None) -> Command:
    return Command(argv=argv, stdin=stdin, folder=folder, password=password)


def _script(text: str, *arguments: str, stdin: bytes = b"") -> Command:
    return _command("sh", "-c", text, "sh", *arguments, stdin=stdin)


def _eventually(condition: Callable[[], bool], seconds: float = _PATIENCE) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


class HostConformance:
    """What every host does.

    Fixtures: `host` is a new host, closed afterwards; `scratch` the path of an empty folder on it that belongs to its
    user and whose name has a space; `small_folder` such a folder on a file system of its own with room for no more
    than 2 MiB (skip where there is none).
    """

    construction: str
    """Python source that binds a new host of this kind to `host`, for a coordinator that will be killed."""

    def test_run_gives_output_errors_and_code_apart(self, host: Host) -> None:
        done = host.run(_script("printf out; printf err >&2; exit 7"), check=False)
        assert (done.stdout, done.stderr, done.code, done.text) == (b"out", b"err", 7, "out")

    def test_run_keeps_every_byte(self, host: Host) -> None:
        assert host.run(_command("cat", stdin=_ALL_BYTES)).stdout == _ALL_BYTES

    def test_run_carries_large_output_and_large_errors_at_once(self, host: Host) -> None:
        done = host.run(_script("tee /dev/fd/2", stdin=b"0123456\n" * 655_360))
        assert len(done.stdout) == len(done.stderr) == 5 << 20

    def test_run_does_not_mind_a_program_that_leaves_its_input_unread(self, host: Host) -> None:
        assert host.run(_command("true", stdin=b"x" * (1 << 20))).code == 0

    def test_run_hands_every_word_over_as_it_is(self, host: Host) -> None:
        done = host.run(_script('printf "%s\\0" "$@"', *_AWKWARD_WORDS))
        assert done.text.split("\0")[:-1] == list(_AWKWARD_WORDS)

    def test_run_limits_memory(self, host: Host) -> None:
        for memory, said in ((1 << 30, "1048576\n"), (None, "unlimited\n")):
            assert host.run(Command(argv=("sh", "-c", "ulimit -v"), memory=memory)).text == said

    def test_run_adds_environment(self, host: Host) -> None:
        argv = ("sh", "-c", 'printf "%s|%s" "$PLAIN" "${HOME:+home}"')
        assert host.run(Command(argv=argv, environment={"PLAIN": "it's\nplain"})).text == "it's\nplain|home"

    def test_a_password_stands_in_a_file_of_one_process_without_a_name(self, host: Host, scratch: str) -> None:
        shown = 'stat -L -c "%U %a %F %h" "$PGPASSFILE"; cat "$PGPASSFILE" "$PGPASSFILE"'
        told = f"{host.user} 600 regular file 0\n" + 2 * "*:*:*:*:a\\:b\\\\'c d $HOME\n"
        command = _command("sh", "-c", shown, password=Secret("a:b\\'c d $HOME"))
        host.spawn(command, stdout=f"{scratch}/o", stderr=f"{scratch}/e").wait(_PATIENCE)
        assert host.read(f"{scratch}/o").decode() == host.run(command).text == told
        assert host.run(_command("ls", "/proc/self/fd")).text.split() == ["0", "1", "2", "3"]

    def test_a_password_is_in_no_process_list_no_environment_and_no_error(self, host: Host, scratch: str) -> None:
        password, everywhere = Secret("7d1f0c3e"), "sleep 0.1; cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>&1; :"
        host.spawn(_command("sleep", "5", password=password), stdout=f"{scratch}/o", stderr=f"{scratch}/e")
        assert b"7d1f0c3e" not in host.run(_command("sh", "-c", everywhere, password=password)).stdout
        telling = _command("sh", "-c", 'cat "$PGPASSFILE" >&2; exit 1', password=password)
        assert "7d1f0c3e" not in str(failure_of(CommandFailedError, lambda: host.run(telling)))

    def test_run_works_in_the_folder_that_is_asked_for(self, host: Host, scratch: str) -> None:
        assert host.run(_command("pwd", folder=scratch)).text == f"{scratch}\n"
        assert host.run(_command("pwd")).text == "/\n"
        error = failure_of(HostFileError, lambda: host.run(_command("pwd", folder=f"{scratch}/none")))
        assert error.where == f"{scratch}/none"

    def test_run_works_as_the_user(self, host: Host, scratch: str) -> None:
        assert host.name
        assert host.run(_command("id", "-un")).text.strip() == host.user
        host.run(_script('umask; touch "$1"', f"{scratch}/made"))
        host.write(f"{scratch}/written", b"")
        owners = host.run(_command("stat", "-c", "%U %a", f"{scratch}/made", f"{scratch}/written")).text
        assert owners == f"{host.user} 600\n" * 2

    def test_a_failed_command_says_its_last_words(self, host: Host) -> None:
        error = failure_of(CommandFailedError, lambda: host.run(_script("echo 'FATAL: no' >&2; exit 3")))
        assert "exit code 3" in error.what
        assert error.details == ("FATAL: no",)

    def test_death_by_a_signal_is_minus_its_number(self, host: Host) -> None:
        assert host.run(_script("kill -KILL $$"), check=False).code == -9

    def test_a_missing_program_is_named_with_its_package(self, host: Host) -> None:
        command = Command(argv=("setpriv", "--version"), environment={"PATH": "/nowhere"})
        assert "util-linux" in failure_of(HostNotFitError, lambda: host.run(command)).remedy
        assert "gone/program" in failure_of(HostNotFitError, lambda: host.run(_command("/gone/program"))).what

    def test_what_is_no_program_is_said_to_be_none(self, host: Host) -> None:
        assert "cannot be started" in failure_of(HostNotFitError, lambda: host.run(_command("/etc/passwd"))).what

    def test_run_kills_the_whole_group_after_its_timeout(self, host: Host, scratch: str) -> None:
        command = _script('sleep 100 & echo $! >"$1"; echo waiting >&2; wait', f"{scratch}/pid")
        started = time.monotonic()
        error = failure_of(CommandFailedError, lambda: host.run(command, timeout=0.5))
        assert time.monotonic() - started < _PATIENCE
        assert "0.5 s" in error.what
        assert error.details == ("waiting",)
        pid = int(host.read(f"{scratch}/pid"))
        assert _eventually(lambda: not host.pid_alive(pid))

    def test_run_does_not_wait_for_what_a_program_leaves_behind(self, host: Host) -> None:
        pid = int(host.run(_script("sleep 30 & echo $!"), timeout=_PATIENCE).text)
        host.signal_pid(pid, StopSignal.KILL)

    def test_commands_that_are_begun_together_run_side_by_side(self, host: Host, scratch: str) -> None:
        """Each waits for a file that the other one makes."""
        text = 'echo "$1"; echo oh >&2; echo >"$2"; until [ -e "$3" ]; do sleep 0.01; done; cat; exit 4'
        places = [(f"{scratch}/one", f"{scratch}/two"), (f"{scratch}/two", f"{scratch}/one")]
        commands = [_script(text, "ünï", *each, stdin=_ALL_BYTES) for each in places]
        works = [host.running(command, timeout=_PATIENCE, check=False) for command in commands]
        for work in works:
            next(work)
        for work in works:
            done = finish(work)
            assert (done.stdout, done.stderr, done.code) == ("ünï\n".encode() + _ALL_BYTES, b"oh\n", 4)

    def test_a_command_that_was_begun_fails_as_one_that_was_run(self, host: Host) -> None:
        error = failure_of(CommandFailedError, lambda: finish(host.running(_script("echo 'FATAL: no' >&2; exit 3"))))
        assert "exit code 3" in error.what
        assert error.details == ("FATAL: no",)
        failure_of(HostNotFitError, lambda: finish(host.running(_command("/gone/program"))))
        failure_of(HostNotFitError, lambda: finish(host.running(_command("/etc/passwd"))))
        slow = _script("echo waiting >&2; exec sleep 100")
        error = failure_of(CommandFailedError, lambda: finish(host.running(slow, timeout=0.5)))
        assert "0.5 s" in error.what
        assert error.details == ("waiting",)

    def test_a_command_that_nobody_awaits_any_more_is_killed(self, host: Host, scratch: str) -> None:
        work = host.running(_script('echo $$ >"$1.part"; mv "$1.part" "$1"; exec sleep 100', f"{scratch}/pid"))
        next(work)
        assert _eventually(lambda: host.exists(f"{scratch}/pid"))
        work.close()
        pid = int(host.read(f"{scratch}/pid"))
        assert _eventually(lambda: not host.pid_alive(pid))

    def test_spawn_appends_to_its_files_and_tells_how_it_ended(self, host: Host, scratch: str) -> None:
        out, err = f"{scratch}/the output", f"{scratch}/the errors"
        for _ in range(2):
            process = host.spawn(_script("cat; echo oh >&2; exit 5", stdin=_ALL_BYTES), stdout=out, stderr=err)
            assert process.wait(_PATIENCE).code == 5
        assert (host.read(out), host.read(err)) == (_ALL_BYTES * 2, b"oh\n" * 2)

    def test_spawn_refuses_what_cannot_be_started(self, host: Host, scratch: str) -> None:
        def attempt(command: Command, out: str = f"{scratch}/o") -> Callable[[], Process]:
            return lambda: host.spawn(command, stdout=out, stderr=f"{scratch}/e")

        failure_of(HostNotFitError, attempt(_command("no-such-program")))
        failure_of(HostFileError, attempt(_command("true", folder="/nowhere")))
        failure_of(HostFileError, attempt(_command("true"), f"{scratch}/none/o"))

    def test_spawned_processes_run_side_by_side(self, host: Host, scratch: str) -> None:
        together = [self._sleep(host, scratch) for _ in range(5)]
        assert len({process.pid for process in together}) == 5
        assert all(process.poll() is None for process in together)
        for process in together:
            process.signal(StopSignal.TERM)
        assert [process.wait(_PATIENCE).code for process in together] == [-15] * 5

    def test_wait_gives_up_after_its_timeout(self, host: Host, scratch: str) -> None:
        process = self._sleep(host, scratch)
        failure_of(TimeoutError, lambda: process.wait(0.1))
        assert process.poll() is None

    def test_every_signal_arrives(self, host: Host, scratch: str) -> None:
        for stop, code in ((StopSignal.TERM, -15), (StopSignal.INT, -2), (StopSignal.QUIT, -3), (StopSignal.KILL, -9)):
            process = self._sleep(host, scratch)
            process.signal(stop)
            assert process.wait(_PATIENCE).code == code
            process.signal(stop)  # nothing happens

    def test_a_group_is_stopped_and_continued_as_one(self, host: Host, scratch: str) -> None:
        process = host.spawn(_script("sleep 100 & echo $!; wait"), stdout=f"{scratch}/o", stderr=f"{scratch}/e")
        assert _eventually(lambda: host.exists(f"{scratch}/o") and host.read(f"{scratch}/o").endswith(b"\n"))
        pids = (process.pid, int(host.read(f"{scratch}/o")))
        process.signal(StopSignal.STOP, group=True)
        assert _eventually(lambda: self._states(host, pids) == b"TT")
        process.signal(StopSignal.CONT, group=True)
        assert _eventually(lambda: self._states(host, pids) == b"SS")
        process.signal(StopSignal.KILL, group=True)
        assert process.wait(_PATIENCE).code == -9
        assert _eventually(lambda: not host.pid_alive(pids[1]))

    def test_cpu_time_includes_children_that_were_waited_for(self, host: Host, scratch: str) -> None:
        busy = "while [ $((i += 1)) -lt 200000 ]; do :; done"
        process = host.spawn(_script(f"sh -c '{busy}'; true"), stdout=f"{scratch}/o", stderr=f"{scratch}/e")
        cpu = process.wait(_PATIENCE).cpu
        assert 0.02 < cpu.total < _PATIENCE
        assert cpu.user > 0
        assert self._sleep(host, scratch, "0.1").wait(_PATIENCE).cpu.total < 0.1

    def test_spawned_processes_end_with_the_host(self, host: Host, scratch: str) -> None:
        plain = self._sleep(host, scratch)
        stopped = self._sleep(host, scratch)
        stopped.signal(StopSignal.STOP)
        assert host.pid_alive(plain.pid)
        for _ in range(2):
            host.close()
        assert not any(_alive_here(process.pid) for process in (plain, stopped))

    def test_spawned_processes_and_commands_die_with_a_killed_coordinator(self, scratch: str) -> None:
        coordinator = self._start_coordinator(scratch)
        try:
            assert coordinator.stdout is not None
            pid = int(coordinator.stdout.readline())
            running = f"{scratch}/running"
            assert _eventually(lambda: _content_here(running).endswith("\n"))
            assert _eventually(lambda: _content_here(f"{scratch}/o") == "ready\n")
            assert _alive_here(pid)
        finally:
            coordinator.kill()
            coordinator.communicate()
        assert _eventually(lambda: _content_here(f"{scratch}/o") == "ready\nasked to quit\n")
        assert _eventually(lambda: not _alive_here(pid))
        assert _eventually(lambda: not _alive_here(int(_content_here(running))))

    def test_write_replaces_a_file_and_sets_its_mode(self, host: Host, scratch: str) -> None:
        path = f"{scratch}/it's a \n file"
        for content, mode in ((_ALL_BYTES, 0o600), (b"", 0o644), (b"x" * (5 << 20), 0o755)):
            host.write(path, content, mode=mode)
            assert host.read(path) == content
            assert host.run(_command("stat", "-c", "%a", path)).text == f"{mode:o}\n"
        assert host.list_folder(scratch) == ("it's a \n file",)

    def test_a_write_that_fails_leaves_nothing_and_the_transport_open(self, host: Host, scratch: str) -> None:
        host.make_folder(f"{scratch}/folder")
        for path in (f"{scratch}/none/file", f"{scratch}/folder"):
            error = failure_of(HostFileError, lambda path=path: host.write(path, b"x" * 300_000))  # type: ignore[misc]
            assert error.where == path
        assert host.list_folder(scratch) == ("folder",)
        assert host.exists(scratch)

    def test_read_starts_at_an_offset(self, host: Host, scratch: str) -> None:
        host.write(f"{scratch}/f", b"0123456789")
        assert [host.read(f"{scratch}/f", offset=at) for at in (0, 7, 10, 99)] == [b"0123456789", b"789", b"", b""]

    def test_a_missing_file_is_named(self, host: Host, scratch: str) -> None:
        for path in (f"{scratch}/none", scratch):
            assert failure_of(HostFileError, lambda path=path: host.read(path)).where == path  # type: ignore[misc]

    def test_read_files_leaves_out_what_cannot_be_read(self, host: Host, scratch: str) -> None:
        files = {f"{scratch}/a": b"one", f"{scratch}/b c": _ALL_BYTES, f"{scratch}/empty": b""}
        for path, content in files.items():
            host.write(path, content)
        assert host.read_files([*files, f"{scratch}/none", scratch, f"{scratch}/a"]) == files
        assert host.read_files([]) == {}

    def test_read_matching_joins_what_matches(self, host: Host, scratch: str) -> None:
        for name in ("1 b", "2 b", "x b", "1 c"):
            host.write(f"{scratch}/{name}", name.encode() + b"\0")
        assert host.read_matching(f"{scratch}/[0-9]* b") == b"1 b\x002 b\0"
        assert host.read_matching(f"{scratch}/none*") == b""
        assert host.read_matching("/proc/[0-9]*/stat").count(b"\n") > 1

    def test_list_folder_is_sorted_and_knows_hidden_names(self, host: Host, scratch: str) -> None:
        names = ("a b", ".hidden", "..odd", "-x", "B", "two\nlines", "ü")
        for name in names:
            host.write(f"{scratch}/{name}", b"")
        assert host.list_folder(scratch) == tuple(sorted(names))
        assert host.list_folder(f"{scratch}/none") == host.list_folder(f"{scratch}/a b") == ()

    def test_folders_are_made_and_removed_with_all_in_them(self, host: Host, scratch: str) -> None:
        path = f"{scratch}/one/two three/-four"
        for mode in (0o700, 0o755):
            host.make_folder(path, mode=0o700)
            host.make_folder(f"{scratch}/mode {mode}", mode=mode)
            assert host.run(_command("stat", "-c", "%a", f"{scratch}/mode {mode}")).text == f"{mode:o}\n"
        host.write(f"{path}/file", b"")
        failure_of(HostFileError, lambda: host.make_folder(f"{path}/file"))
        for _ in range(2):
            host.remove_tree(f"{scratch}/one")
            assert not host.exists(f"{scratch}/one")
        host.run(_command("ln", "-s", "/etc", f"{scratch}/link"))
        host.remove_tree(f"{scratch}/link")
        assert host.exists("/etc/passwd")

    def test_rename_replaces_a_file_and_no_folder(self, host: Host, scratch: str) -> None:
        for name in ("new", "old"):
            host.write(f"{scratch}/{name}", name.encode())
        host.rename(f"{scratch}/new", f"{scratch}/old")
        assert (host.list_folder(scratch), host.read(f"{scratch}/old")) == (("old",), b"new")
        host.make_folder(f"{scratch}/folder")
        failure_of(HostFileError, lambda: host.rename(f"{scratch}/old", f"{scratch}/folder"))
        failure_of(HostFileError, lambda: host.rename(f"{scratch}/none", f"{scratch}/x"))

    def test_free_bytes_looks_at_the_nearest_folder(self, host: Host, scratch: str) -> None:
        assert host.free_bytes(f"{scratch}/not/yet") > 0
        assert host.free_bytes("/proc/not/yet") == 0

    def test_a_full_file_system_is_named(self, host: Host, small_folder: str) -> None:
        assert host.free_bytes(small_folder) <= 2 << 20
        path = f"{small_folder}/file"
        assert failure_of(DiskFullError, lambda: host.write(path, b"x" * (3 << 20))).where == path
        assert host.list_folder(small_folder) == ()
        copying = _command("dd", "if=/dev/zero", f"of={path}", "bs=65536", "count=64")
        assert failure_of(DiskFullError, lambda: host.run(copying)).where == path

    def test_processes_are_found_and_signalled_by_id(self, host: Host, scratch: str) -> None:
        process = self._sleep(host, scratch)
        host.signal_pid(process.pid, StopSignal.TERM)
        assert process.wait(_PATIENCE).code == -15
        assert not host.pid_alive(process.pid)
        host.signal_pid(process.pid, StopSignal.TERM)  # nothing happens
        assert all(host.pid_alive(pid) for pid in host.transport_pids)
        if host.user != "root":
            failure_of(PgstrataError, lambda: host.signal_pid(1, StopSignal.CONT))

    def test_both_clocks_go_at_the_same_pace(self, host: Host) -> None:
        first = host.clock()
        time.sleep(0.2)
        second = host.clock()
        assert abs((second.wall - first.wall) - (second.monotonic - first.monotonic)) < 0.1
        assert 0.1 < second.monotonic - first.monotonic < _PATIENCE
        assert second.wall > 1_600_000_000 > second.monotonic

    @staticmethod
    def _sleep(host: Host, scratch: str, seconds: str = "100") -> Process:
        return host.spawn(_command("sleep", seconds), stdout=f"{scratch}/o", stderr=f"{scratch}/e")

    @staticmethod
    def _states(host: Host, pids: tuple[int, ...]) -> bytes:
        stats = (host.read(f"/proc/{pid}/stat") for pid in pids)
        return b"".join(stat.rpartition(b")")[2].split()[0] for stat in stats)

    def _start_coordinator(self, scratch: str) -> subprocess.Popen[bytes]:
        told = "trap 'echo asked to quit; exit' QUIT; echo ready; while :; do sleep 0.05; done"
        endless = 'echo $$ >"$1"; exec sleep 100'
        source = f"""
from pgstrata.ports.host import Command, StopSignal
{self.construction}
files = dict(stdout={scratch + "/o"!r}, stderr={scratch + "/e"!r})
told = host.spawn(Command(argv=("sh", "-c", {told!r})), **files, on_parent_death=StopSignal.QUIT)
print(told.pid, flush=True)
host.run(Command(argv=("sh", "-c", {endless!r}, "sh", {scratch + "/running"!r})))
"""
        return subprocess.Popen([sys.executable, "-c", source], stdout=subprocess.PIPE)


def _content_here(path: str) -> str:
    with suppress(FileNotFoundError), open(path, encoding="utf-8") as file:  # noqa: PTH123 a text, not a path
        return file.read()
    return ""


def _alive_here(pid: int) -> bool:
    state = _content_here(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return bool(state) and state[0] not in ("Z", "X")

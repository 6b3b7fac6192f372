"""Groups of a study's own: where they are, how they are made and removed through the ledger, how a server joins one.

Version 1 mounts each controller (or a few together) as a tree of its own; version 2 has one tree for all; hybrid hosts
have both, each controller in one of them. Formats: proc_pid_mountinfo(5), cgroups(7).

**Version 1.** A group is `pgstrata-KEY-ENVIRONMENT` directly below the mount of its controller. Its cgroup.procs is
given to the server's user, who may then move processes of his own into it (cgroups(7)).

**Version 2.** Whoever moves a process must be able to write cgroup.procs of the nearest group above both ends too, and
a group with processes in it has no controllers for groups below it (Documentation/admin-guide/cgroup-v2.rst,
"Delegation Containment", "No Internal Process Constraint"). So there is one group for a study, `pgstrata-KEY`, with a
group `coordinator` in it, into which pgstrata moves itself while it needs groups, and a group for each environment
beside that. `pgstrata-KEY` is made at the top of the tree, by root, also for an ordinary user. The top of a container
is no real root: whatever is in it (the container's first process, shells) moves to `coordinator` too for that time.
systemd is not asked: it leaves alone groups that it did not make, and controllers that it would switch off at the top
stay on as long as `pgstrata-KEY` uses them. Only controllers that some environment of the experiment needs are switched
on: with `cpu`, groups compete with each other as wholes, and no longer process by process.

What version 2 does here (moves, permissions, controllers for groups below, removal) was tested on a kernel whose
version 2 has another controller; cpu.max, memory.max and io.max, and hosts with systemd, were not seen running.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from pgstrata.errors import HostNotFitError, LevelNotTakenError, ParseError
from pgstrata.model.changes import Change
from pgstrata.model.experiment import Environment
from pgstrata.model.mounts import Mount, parse_mounts
from pgstrata.ports.host import Host
from pgstrata.ports.layer import Ledger
from pgstrata.ports.server import RunningServer
from pgstrata.system.commands import value_change
from pgstrata.system.groups import base_change, group_change


class Controller(StrEnum):
    """What a group can limit, by its name in version 2."""

    CPU = "cpu"
    MEMORY = "memory"
    IO = "io"

    @property
    def old_name(self) -> str:
        """The controller's name in version 1."""
        return "blkio" if self is Controller.IO else self.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Hierarchy:
    """A tree of groups: `folder` is where its part below `root` is mounted (a container may see a part only).

    `version` is 1 or 2. `controllers` are the names as /proc/PID/cgroup has them, none in version 2.
    """

    version: int
    folder: str
    root: str
    controllers: frozenset[str] = frozenset()
    read_only: bool = False

    def locate(self, group: str) -> str:
        """The folder of a group that /proc/PID/cgroup names; the nearest that is mounted where it lies outside."""
        root = self.root.rstrip("/")
        inside = group.removeprefix(root) if group == root or group.startswith(f"{root}/") else ""
        return f"{self.folder.rstrip('/')}{inside.rstrip('/')}" or "/"

    def name(self, folder: str) -> str:
        """How /proc/PID/cgroup names the group that has this folder."""
        return f"{self.root.rstrip('/')}{folder.removeprefix(self.folder)}" or "/"


def parse_memberships(text: str) -> dict[frozenset[str], str]:
    """Group of a process by the controllers of each hierarchy; no controllers at all: that of version 2.

    Args:
        text: /proc/PID/cgroup.

    Raises:
        ParseError: a line has another shape.
    """
    found = {}
    for line in text.splitlines():
        number, _, rest = line.partition(":")
        controllers, colon, group = rest.partition(":")
        if not number.isdecimal() or not colon or not group.startswith("/"):
            raise ParseError(f"not a line of /proc/PID/cgroup: {line!r}")
        found[frozenset(controllers.split(",")) - {""}] = group.removesuffix(" (deleted)")
    return found


def parse_hierarchies(mountinfo: str, memberships: str) -> tuple[Hierarchy, ...]:
    """All hierarchies that are mounted, each once; one that can be written goes before one that cannot.

    Args:
        mountinfo: /proc/self/mountinfo.
        memberships: /proc/self/cgroup, which says which controllers are one hierarchy.

    Raises:
        ParseError: a line has another shape.
    """
    known = [controllers for controllers in parse_memberships(memberships) if controllers]
    found: dict[frozenset[str], Hierarchy] = {}
    for hierarchy in (_hierarchy(mount, known) for mount in parse_mounts(mountinfo)):
        # Seen from a namespace, what lies outside has a root of /..: nothing of ours can be there.
        if hierarchy is None or hierarchy.root.startswith("/.."):
            continue
        before = found.get(hierarchy.controllers)
        if before is None or (before.read_only and not hierarchy.read_only):
            found[hierarchy.controllers] = hierarchy
    return tuple(found.values())


def _hierarchy(mount: Mount, known: Collection[frozenset[str]]) -> Hierarchy | None:
    if mount.kind not in {"cgroup", "cgroup2"}:
        return None
    own, unified = frozenset(mount.super_options), mount.kind == "cgroup2"
    controllers = frozenset[str]() if unified else next((names for names in known if names <= own), None)
    if controllers is None:
        return None
    return Hierarchy(
        version=2 if unified else 1,
        folder=mount.path,
        root=mount.root,
        controllers=controllers,
        read_only=mount.read_only,
    )


def find_hierarchy(
    hierarchies: Collection[Hierarchy], controller: Controller, unified: Collection[str]
) -> Hierarchy | None:
    """The tree in which a controller is at work; `unified` is what cgroup.controllers of version 2 says."""
    for hierarchy in hierarchies:
        if controller.old_name in hierarchy.controllers or (hierarchy.version == 2 and controller in unified):  # noqa: PLR2004
            return hierarchy
    return None


UNIFIED: Final = 2
_MOUNTS: Final = "/proc/self/mountinfo"
_OWN: Final = "/proc/self/cgroup"
_USUAL_UNIFIED: Final = ("/sys/fs/cgroup/cgroup.controllers", "/sys/fs/cgroup/unified/cgroup.controllers")
_COORDINATOR: Final = "coordinator"

# $1 = cgroup.procs; $$ stays the process's id after exec.
_JOIN: Final = 'echo $$ >"$1" || exit 126; shift; exec "$@"'

_BUSY: Final = (
    "a group with processes in it gets no controllers for groups below it: move out those that are named here, or work "
    "outside the container"
)


def needed_controllers(environments: Iterable[Environment]) -> tuple[Controller, ...]:
    """Controllers that levels of an experiment ask for: one that is on without need changes how groups compete."""
    keys = {key for environment in environments for key in environment.layers}
    traffic = any(key.startswith("limits.") and key != "limits.memory" for key in keys)
    needs = {Controller.CPU: "cpu.quota" in keys, Controller.MEMORY: "limits.memory" in keys, Controller.IO: traffic}
    return tuple(controller for controller, needed in needs.items() if needed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A group of an environment in a tree, whether it is there or not: its `folder`."""

    folder: str
    hierarchy: Hierarchy

    @property
    def unified(self) -> bool:
        """Whether it is one of version 2."""
        return self.hierarchy.version == UNIFIED

    @property
    def join(self) -> tuple[str, ...]:
        """Words in front of a command that put it into the group; its process id stays."""
        return ("sh", "-c", _JOIN, "sh", f"{self.folder}/cgroup.procs")

    def read(self, host: Host, *names: str) -> dict[str, str]:
        """Contents of its files by name, stripped; those are left out that it does not have."""
        found = host.read_files([f"{self.folder}/{name}" for name in names])
        return {path.rpartition("/")[2]: content.decode().strip() for path, content in found.items()}

    def assert_member(self, memberships: str, where: str) -> None:
        """LevelNotTakenError unless the process with this /proc/PID/cgroup is in the group."""
        found, name = (
            parse_memberships(memberships).get(self.hierarchy.controllers, ""),
            self.hierarchy.name(self.folder),
        )
        if found != name:
            raise LevelNotTakenError(
                f"the server is in the cgroup {found or '(none)'}, not in {name}",
                where=where,
                remedy="something on this host moves processes between cgroups: switch it off for the experiment",
            )


class Groups:
    """The groups of one study on one host; what it made itself and nobody has undone, it uses again."""

    def __init__(self, host: Host, key: str, controllers: Collection[str] = tuple(Controller)) -> None:
        """`controllers` are what groups of version 2 get, of those that the host has; the same for all of a study."""
        self._host = host
        self._key = key
        self._controllers = controllers
        self._made: set[str] = set()

    def find(self, controller: Controller, environment: str) -> Group:
        """The group of an environment for a controller.

        Raises:
            HostNotFitError: the host has no such controller, or its groups cannot be changed.
        """
        return self.place(self._hierarchy(controller), environment)

    def place(self, hierarchy: Hierarchy, environment: str) -> Group:
        """The group of an environment in a tree."""
        top = hierarchy.folder if hierarchy.version != UNIFIED else f"{hierarchy.folder}/pgstrata-{self._key}"
        folder = f"{top}/pgstrata-{self._key}-{environment}"
        return Group(folder=folder, hierarchy=hierarchy)

    def _hierarchy(self, controller: Controller) -> Hierarchy:
        """The tree of a controller."""
        files = self._host.read_files((_MOUNTS, _OWN, *_USUAL_UNIFIED))
        memberships = files.get(_OWN, b"").decode("utf-8", "surrogateescape")
        hierarchies = parse_hierarchies(files.get(_MOUNTS, b"").decode("utf-8", "surrogateescape"), memberships)
        available = self._unified_controllers(hierarchies, files)
        hierarchy = find_hierarchy(hierarchies, controller, available)
        if hierarchy is None:
            raise HostNotFitError(
                f"this host has no cgroup controller for {controller}",
                where=self._host.name,
                remedy="boot a kernel with it, mount it, or take a container that may use it; cgroup v1 calls it "
                f"{controller.old_name}",
            )
        if hierarchy.read_only:
            raise HostNotFitError(
                f"{hierarchy.folder} is mounted read-only: no cgroup can be made",
                where=self._host.name,
                remedy="work outside the container, or give it cgroups that it may write",
            )
        return hierarchy

    def _unified_controllers(self, hierarchies: Sequence[Hierarchy], files: Mapping[str, bytes]) -> list[str]:
        for hierarchy in hierarchies:
            if hierarchy.version == UNIFIED:
                path = f"{hierarchy.folder}/cgroup.controllers"
                content = files[path] if path in files else self._host.read_files((path,)).get(path, b"")
                return content.decode().split()
        return []

    def make(self, group: Group, values: Sequence[tuple[str, str]], ledger: Ledger) -> None:
        """Make the group with these values in its files; whether they hold is for the layer to observe.

        Raises:
            HostNotFitError: there is such a group already, and it is not ours.
            LevelNotTakenError: the kernel refuses a value.
        """
        if group.unified:
            self._make_base(group.hierarchy, group.folder.rpartition("/")[0], ledger)
        if self._host.exists(group.folder):
            if group.folder in self._made:
                return
            raise self._taken(group.folder)
        ledger.change(group_change(group.folder, self._host.user, values))
        self._made.add(group.folder)

    def _make_base(self, hierarchy: Hierarchy, base: str, ledger: Ledger) -> None:
        """The study's group of version 2 with the coordinator in it; nothing happens if pgstrata is there already."""
        own = self._hierarchy_own(hierarchy)
        if own == f"{base}/{_COORDINATOR}":
            return
        if self._host.exists(base):
            raise self._taken(base)
        top = base.rpartition("/")[0]
        files = self._host.read_files((f"{top}/cgroup.controllers", f"{top}/cgroup.subtree_control"))
        available, enabled = (
            files.get(f"{top}/{name}", b"").decode().split()
            for name in ("cgroup.controllers", "cgroup.subtree_control")
        )
        wanted = [str(controller) for controller in self._controllers if controller in available]
        missing = [name for name in wanted if name not in enabled]
        pids = tuple(str(pid) for pid in self._host.transport_pids)
        try:
            ledger.change(base_change(base, self._host.user, wanted, pids, (" ".join(missing), own)))
        except LevelNotTakenError as error:
            raise HostNotFitError(
                f"no cgroups can be made below {top}: {error.what}",
                where=self._host.name,
                details=error.details,
                remedy=_BUSY if any(line.startswith("processes in ") for line in error.details) else error.remedy,
            ) from error

    def _hierarchy_own(self, hierarchy: Hierarchy) -> str:
        memberships = self._host.read_files((_OWN,)).get(_OWN, b"").decode("utf-8", "surrogateescape")
        return hierarchy.locate(parse_memberships(memberships).get(hierarchy.controllers, "/"))

    def _taken(self, folder: str) -> HostNotFitError:
        return HostNotFitError(
            f"there is a cgroup {folder} already, and this study did not make it",
            where=self._host.name,
            remedy="see `pgstrata host status`; if nobody needs it, remove it with rmdir",
        )


def set_value(group: Group, file: str, value: str, ledger: Ledger) -> None:
    """Change one file of a group that is there; LevelNotTakenError where the kernel has another value."""
    change = value_change(f"cgroup {group.folder} {file}", f"{group.folder}/{file}", value)
    assert_taken(change, ledger.change(change))


def assert_level(key: str, asked: str, found: str, server: RunningServer, *, same: bool) -> None:
    """LevelNotTakenError unless what the kernel says of a level is the same as what was asked for."""
    if not same:
        raise LevelNotTakenError(
            f"{key} = {asked} was asked for, and the kernel says {found or 'nothing'}",
            where=f"environment {server.environment.name}",
            remedy="something on this host changes it: switch that off for the experiment",
        )


def assert_taken(change: Change, state: str) -> None:
    """LevelNotTakenError unless the state after a change is what was asked for."""
    if state != change.value:
        raise LevelNotTakenError(
            f"{change.what} was to be {change.value!r} and is {state!r}",
            remedy="the kernel accepts other values here: change the level",
        )

"""The layer `memory`: the size of the pages of the server's shared memory, and transparent huge pages.

What belongs here: what environments ask for and whether they have it. Files of the kernel are read in `huge_pages` and
`transparent`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pgstrata.errors import HostNotFitError, LevelNotTakenError, UsageError
from pgstrata.layers.huge_pages import (
    ANONYMOUS,
    LIST_BY_SIZE,
    PAGE_BYTES,
    PMD_SIZE,
    POOLS,
    SHARED,
    Pool,
    SharedMemory,
    Transparent,
    asked_of,
    of_state,
    parse_pool,
    parse_shared_memory,
    parse_transparent,
    pool_files,
    pool_folder,
    sizes_apart,
    transparent_change,
)
from pgstrata.model.experiment import Environment
from pgstrata.model.kernel_files import parse_meminfo
from pgstrata.model.launch import Launch, Needs
from pgstrata.ports.host import Command, Host
from pgstrata.ports.layer import Ledger
from pgstrata.ports.server import RunningServer, Sql
from pgstrata.units import render_bytes

_PAGES: Final = "pages"
_THP: Final = "thp"
_MEMINFO: Final = "/proc/meminfo"
_SMALL: Final = "4kB"
_HUGE_PAGES_FROM: Final = 90400
_PAGE_SIZE_SETTING_FROM: Final = 140000
_STATUS_FROM: Final = 170000


class MemoryLayer:
    """Implements `ports.HostLayer`.

    The server of an environment is started before the next environment is prepared: until then the pages that were
    reserved for it belong to nobody.

    Args:
        host: reads as the server's user.
    """

    name = "memory"

    def __init__(self, host: Host) -> None:
        self._host = host

    def concerns(self, environment: Environment) -> bool:
        """Whether the environment asks for a size of pages, or for transparent huge pages."""
        return not environment.layers.keys().isdisjoint((_PAGES, _THP))

    def prepare(self, environment: Environment, needs: Needs, ledger: Ledger) -> Launch:
        """Set transparent huge pages, reserve huge pages; settings that make the server use them.

        Raises:
            LevelNotTakenError: the kernel accepted a word and has another one.
            HostNotFitError: the kernel or the server cannot, or the kernel did not give enough pages.
            UsageError: the environment's settings contradict its pages.
        """
        if _THP in environment.layers:
            self._set_transparent(environment, ledger)
        if _PAGES not in environment.layers:
            return Launch()
        settings = self._settings(environment, needs)
        if environment.layers[_PAGES] != _SMALL:
            self._reserve(environment, needs, ledger)
        return Launch(settings=settings)

    # ------------------------------------------------------------------------------------------ huge pages

    def _settings(self, environment: Environment, needs: Needs) -> Mapping[str, str]:
        level = environment.layers[_PAGES]
        known = needs.version >= _HUGE_PAGES_FROM or not needs.version
        huge = level != _SMALL
        settings = {"huge_pages": "on" if huge else "off"} if known else {}
        if huge and needs.version >= _PAGE_SIZE_SETTING_FROM:
            settings["huge_page_size"] = level
        for name, value in settings.items():
            given = environment.settings.get(name, value)
            if given != value:
                raise UsageError(
                    f"pages = {level} needs {name} = {value}, and {name} = {given} is set",
                    where=f"environment {environment.name}",
                    remedy=f"take settings.{name} out: pages sets it",
                )
        if huge and not known:
            raise HostNotFitError(
                f"pages = {level} was asked for, but servers know huge pages from 9.4 on",
                where=f"environment {environment.name}",
                remedy=f"compare servers from 9.4 on, or use pages = {_SMALL}",
            )
        return settings

    def _reserve(self, environment: Environment, needs: Needs, ledger: Ledger) -> None:
        level = environment.layers[_PAGES]
        page = PAGE_BYTES[level]
        found = self._host.read_files((*pool_files(page), _MEMINFO))
        meminfo = found.get(_MEMINFO, b"").decode()
        pool = parse_pool(page, found)
        where = f"environment {environment.name}"
        if pool is None:
            raise self._no_such_pages(page)
        self._refuse_other_size(level, needs, parse_meminfo(meminfo, "Hugepagesize"), where)
        if not needs.shared_memory:
            raise HostNotFitError(
                f"pages = {level} was asked for, but it is not known how much shared memory the server will want",
                where=where,
                remedy="only servers that pgstrata starts itself can have huge pages reserved",
            )
        pages = -(-needs.shared_memory // page)
        target = pool.target(pages)
        if target == pool.total:
            return
        available = parse_meminfo(meminfo, "MemAvailable")
        if available and (target - pool.total) * page > available:
            raise _too_few(pool, pages, target, pool.total, f"{render_bytes(available)} of memory are available")
        given = int(ledger.change(pool.change(target)))
        if given < target:
            raise _too_few(pool, pages, target, given, "memory was compacted, and is still too fragmented")

    def _no_such_pages(self, page: int) -> HostNotFitError:
        sizes = [name.removeprefix("hugepages-") for name in self._host.list_folder(POOLS)]
        has = f"it has pages of {' and '.join(sizes)}" if sizes else "boot a kernel with hugetlbfs"
        return HostNotFitError(
            f"the kernel has no huge pages of {render_bytes(page)} (no {pool_folder(page)})",
            where=self._host.name,
            remedy=f"{has}; in a container /sys may be hidden",
        )

    def _refuse_other_size(self, level: str, needs: Needs, default: int, where: str) -> None:
        if not needs.version or needs.version >= _PAGE_SIZE_SETTING_FROM or default == PAGE_BYTES[level]:
            return
        raise HostNotFitError(
            f"pages = {level} was asked for, but servers before 14 take the default size of huge pages only, which is "
            f"{render_bytes(default)} here",
            where=where,
            remedy=f"boot with default_hugepagesz={level.removesuffix('B')}, or compare servers from 14 on",
        )

    # -------------------------------------------------------------------------------- transparent huge pages

    def _set_transparent(self, environment: Environment, ledger: Ledger) -> None:
        level = environment.layers[_THP]
        wanted = asked_of(level)
        files = self._host.read_files((ANONYMOUS, SHARED, PMD_SIZE))
        present = parse_transparent(files)
        if present is None:
            raise HostNotFitError(
                f"thp = {level} was asked for, but this kernel has no transparent huge pages for all memory",
                where=self._host.name,
                remedy=f"boot a kernel that has {ANONYMOUS} and {SHARED} (4.8 or later), or take thp out",
            )
        listed = self._host.run(Command(argv=LIST_BY_SIZE.argv)).text
        for file, word in sizes_apart(listed, int(files.get(PMD_SIZE, b"0"))):
            raise HostNotFitError(
                f"thp = {level} was asked for, but pages of one size have a setting of their own",
                where=file,
                remedy=f"write {word} to it",
            )
        if present == wanted:
            return
        taken = of_state(ledger.change(transparent_change(wanted)))
        if taken != wanted:
            raise _other_words(environment, wanted, taken)

    # ---------------------------------------------------------------------------------------------- observe

    def observe(self, server: RunningServer, sql: Sql) -> Mapping[str, str]:
        """`memory.…` as the kernel and the server have it; LevelNotTakenError where a level is not there.

        `memory.pages` is the size of the pages of the server's shared memory, `memory.huge_pages_used` how much of it
        is on huge pages (bytes; transparent ones as far as the postmaster itself has touched them),
        `memory.huge_page_size` the kernel's default, `memory.thp` and `memory.thp_shared`
        its words.
        """
        environment = server.environment
        if not self.concerns(environment):
            return {}
        smaps = f"/proc/{server.postmaster_pid}/smaps"
        found = self._host.read_files((smaps, _MEMINFO, ANONYMOUS, SHARED, PMD_SIZE))
        shared = parse_shared_memory(found[smaps]) if found.get(smaps) else None
        transparent = parse_transparent(found)
        if _PAGES in environment.layers:
            _assert_pages(server, sql, shared)
        if _THP in environment.layers:
            if transparent != asked_of(environment.layers[_THP]):
                raise _other_words(environment, asked_of(environment.layers[_THP]), transparent)
            if shared is not None:
                _assert_transparent(environment, shared, int(found.get(PMD_SIZE, b"0")))
        facts = {"memory.huge_page_size": _size(parse_meminfo(found.get(_MEMINFO, b"").decode(), "Hugepagesize"))}
        if shared is not None:
            huge = shared.page in {PAGE_BYTES[level] for level in PAGE_BYTES if level != _SMALL}
            facts["memory.pages"] = _size(shared.page)
            facts["memory.huge_pages_used"] = str(shared.bytes if huge else shared.transparent)
        if transparent is not None:
            facts |= {"memory.thp": transparent.anonymous, "memory.thp_shared": transparent.shared}
        return facts


def _assert_pages(server: RunningServer, sql: Sql, shared: SharedMemory | None) -> None:
    """LevelNotTakenError unless server and kernel agree on the pages that were asked for."""
    level = server.environment.layers[_PAGES]
    says = ""
    if server.build.version.number >= _STATUS_FROM:
        says = sql.query(server.address, "SELECT current_setting('huge_pages_status') AS status").value()
    if says and says != ("off" if level == _SMALL else "on"):
        but = f"the server says huge_pages_status = {says}"
        remedy = "look at its huge_pages and shared_memory_type: only mmap can have huge pages"
    elif shared is None and not says:
        but = "the page size of the server's memory cannot be seen"
        remedy = "the user of the server must be able to read /proc/PID/smaps; servers from 17 on say it themselves"
    elif shared is not None and shared.page != PAGE_BYTES[level]:
        but = f"the server's shared memory is on pages of {_size(shared.page)}"
        remedy = "look at its huge_pages, huge_page_size and shared_memory_type"
    else:
        return
    where = f"environment {server.environment.name}"
    raise LevelNotTakenError(f"pages = {level} was asked for, but {but}", where=where, remedy=remedy)


def _assert_transparent(environment: Environment, shared: SharedMemory, pmd_bytes: int) -> None:
    """LevelNotTakenError where the kernel treats shared memory otherwise than its word says.

    PostgreSQL never calls madvise for it, so that only `always` gives it huge pages. What the postmaster touches
    itself, before any client comes, lies on them where the kernel has any to give.
    """
    if shared.eligible is None or shared.bytes < 2 * pmd_bytes:
        return
    level, where = environment.layers[_THP], f"environment {environment.name}"
    if shared.page <= PAGE_BYTES[_SMALL] and shared.eligible != (level == "always"):
        raise LevelNotTakenError(
            f"thp = {level} was asked for, but the kernel says that the server's shared memory is "
            f"{'' if shared.eligible else 'not '}eligible for transparent huge pages",
            where=where,
            remedy="something else on this host decides it: a security policy, prctl(PR_SET_THP_DISABLE), or its boot "
            "parameters",
        )
    if level == "always" and shared.eligible and not shared.transparent:
        raise LevelNotTakenError(
            "thp = always was asked for, but the kernel gave the server's shared memory not one huge page: memory is "
            "too fragmented",
            where=where,
            remedy="`sync; sysctl vm.drop_caches=3 vm.compact_memory=1` may help, or a reboot; or use pages, which "
            "are reserved",
        )


def _other_words(environment: Environment, wanted: Transparent, found: Transparent | None) -> LevelNotTakenError:
    has = f"{found.anonymous} and, for shared memory, {found.shared}" if found else "nothing"
    return LevelNotTakenError(
        f"thp = {environment.layers[_THP]} was asked for ({wanted.anonymous} and, for shared memory, {wanted.shared}), "
        f"but the kernel has {has}",
        where=f"environment {environment.name}",
        remedy="something else on this host sets it, such as tuned or a boot script: stop that",
    )


def _too_few(pool: Pool, pages: int, target: int, given: int, why: str) -> HostNotFitError:
    had = max(0, pages - (target - given))
    return HostNotFitError(
        f"the server needs {pages} huge pages of {render_bytes(pool.page)}, and {had} are available: {why}",
        where=f"{pool_folder(pool.page)}/nr_hugepages",
        remedy="use a smaller shared_buffers; or reserve the pages on the kernel command line "
        f"(hugepagesz={_size(pool.page).removesuffix('B')} hugepages={target}) and reboot. Where memory is "
        "fragmented, `sync; sysctl vm.drop_caches=3` before the run may help: that is left to you, it empties the "
        "caches of all",
    )


def _size(size: int) -> str:
    """As in a level: 2MB."""
    return render_bytes(size).replace(" ", "")

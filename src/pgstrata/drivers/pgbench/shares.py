"""How the clients of one execution are shared among processes of pgbench: one, or one for each CPU with sessions. Pure.

Threads of one pgbench cannot be told apart from outside: which of its sockets is whose is seen by nobody. So sessions
that are paired with CPUs have a pgbench for each CPU, started on it, with a name that the server shows of its sessions.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final

from pgstrata.drivers.shares import SEEDS_APART, number_name

NAME: Final = "pgbench"


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """The clients of one process; `cpu` is None for a process that runs wherever the kernel puts it."""

    number: int
    clients: int
    threads: int
    seed: int
    cpu: int | None = None

    @property
    def session_name(self) -> str:
        """How its sessions call themselves (application_name); empty where they have the driver's own name."""
        return "" if self.cpu is None else f"{NAME} on CPU {self.cpu}"

    def file(self, kind: str) -> str:
        """Name of its output (`out`) or complaints (`err`)."""
        return number_name(f"{NAME}.{kind}", self.number)


def share_out(clients: int, threads: int, seed: int, cpus: tuple[int, ...]) -> tuple[Share, ...]:
    """The processes of one execution.

    Args:
        clients: of the whole load.
        threads: of the whole load; each share has its part of them, at least one.
        seed: of the first share.
        cpus: the CPU of each client, or nothing where the kernel decides.
    """
    if not cpus:
        return (Share(number=0, clients=clients, threads=threads, seed=seed),)
    return tuple(
        Share(
            number=number,
            clients=count,
            threads=min(count, max(1, round(threads * count / clients))),
            seed=seed + number * SEEDS_APART,
            cpu=cpu,
        )
        for number, (cpu, count) in enumerate(sorted(Counter(cpus).items()))
    )

"""The shop: nine kinds of short transactions by pgbench at a rate, and what its own log says of them each second."""

from __future__ import annotations

import math
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from incidents.server import SHOP, Site
from incidents.truth import Effect

RATE: Final = 120
"""Transactions per second of the shop; about a fifth of one CPU."""
CLIENTS: Final = (8, 4)
"""Those of the first load and of the second, which can be stopped; a third has four more at most."""
_LOGS: Final = "shop-log"
_LATE: Final = 4000
"""Milliseconds after which a transaction that could not be begun is left out: no backlog is worked off for minutes."""
_BROWSE: Final = """\
\\set id random(1, 100000)
SELECT balance FROM accounts WHERE id = :id;
"""
_SUMS: Final = """\
\\set first random(1, 50000)
SELECT customer % 100 AS part, sum(pieces) FROM orders WHERE id BETWEEN :first AND :first + 50000 GROUP BY 1;
"""
_PAY: Final = """\
\\set id random(1, 100000)
BEGIN;
UPDATE accounts SET balance = balance + 1 WHERE id = :id;
INSERT INTO payments (account, amount) VALUES (:id, 1);
COMMIT;
"""
_ORDER: Final = """\
\\set customer random(1, 3999)
SELECT sum(pieces) FROM orders WHERE customer = :customer;
"""
_TICKET: Final = """\
\\set queue random(0, 2)
SELECT * FROM tickets WHERE queue = :queue ORDER BY opened LIMIT 10;
"""
_STOCK: Final = """\
\\set item random(1, 200)
UPDATE stock SET pieces = pieces - 1 WHERE item = :item;
"""
_COUNT: Final = """\
\\set shard :client_id + :base
UPDATE counters SET n = n + 1 WHERE shard = :shard;
"""
_TOTAL: Final = "SELECT sum(n) FROM counters;\n"
_READ: Final = """\
SELECT span FROM working_set \\gset
\\set seed random(1, 1000000)
SELECT count(note) FROM generate_series(1, 1500) AS g JOIN articles AS a ON a.id = 1 + abs(hashint4(g + :seed)) % :span;
"""
_SCRIPTS: Final[Mapping[str, tuple[int, str]]] = {
    "browse": (17, _BROWSE),
    "sums": (7, _SUMS),
    "pay": (20, _PAY),
    "order": (12, _ORDER),
    "ticket": (10, _TICKET),
    "stock": (8, _STOCK),
    "count": (9, _COUNT),
    "total": (7, _TOTAL),
    "read": (10, _READ),
}
"""Scripts with their weights."""


class Load:
    """Clients of the shop at a rate until they are stopped; `base` is how many clients the loads before it have."""

    def __init__(self, site: Site, rate: float, *, clients: int, base: int) -> None:
        self.site, self.rate, self.clients, self.base = site, rate, clients, base
        scripts = []
        for script, (weight, text) in _SCRIPTS.items():
            file = site.folder / f"{script}.sql"
            file.write_text(text)
            scripts += ["-f", f"{file}@{weight}"]
        words = [
            site.build.program("pgbench"), "-n", "-c", str(clients), "-j", "1", "-R", f"{rate:g}", "-T", "86400",
            "-D", f"base={base}", "--latency-limit", str(_LATE), "-l", "--aggregate-interval=1",
            f"--log-prefix={_LOGS}", *scripts, site.dsn,
        ]  # fmt: skip
        self.child = site.start(words, SHOP, site.folder / "clients")

    def stop(self) -> None:
        """End it as if its time were over, so that its log is written."""
        self.child.send_signal(signal.SIGALRM)
        try:
            self.child.wait(15)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()

    def again(self) -> Load:
        """The same load, begun anew."""
        return Load(self.site, self.rate, clients=self.clients, base=self.base)


def shop_loads(site: Site) -> list[Load]:
    """The usual demand, in two parts."""
    first, second = CLIENTS
    return [
        Load(site, 0.6 * RATE, clients=first, base=0),
        Load(site, 0.4 * RATE, clients=second, base=first),
    ]


def more_load(site: Site, rate: float) -> Load:
    """Further demand of the same mix."""
    return Load(site, rate, clients=4, base=sum(CLIENTS))


def client_log(folder: Path) -> Mapping[int, tuple[float, float]]:
    """By second: transactions of all loads, and the sum of their latencies in seconds, waiting for a turn included."""
    return read_log("".join(file.read_text() for file in folder.glob(f"{_LOGS}.*")))


def read_log(text: str) -> Mapping[int, tuple[float, float]]:
    """pgbench's aggregated logs: second, transactions, sum of latencies in microseconds, and columns not needed."""
    found: dict[int, tuple[float, float]] = {}
    for line in text.splitlines():
        words = line.split()
        with suppress(ValueError, IndexError):
            second, count, spent = int(words[0]), float(words[1]), float(words[2]) / 1e6
            before = found.get(second, (0.0, 0.0))
            found[second] = (before[0] + count, before[1] + spent)
    return found


def effect_of(
    seconds: Mapping[int, tuple[float, float]], before: tuple[float, float], within: tuple[float, float]
) -> Effect:
    """What changed for the clients between two spans of Unix seconds."""
    latency_before, rate_before = _means(seconds, before)
    latency, rate = _means(seconds, within)
    return Effect(latency_before=latency_before, latency=latency, rate_before=rate_before, rate=rate)


def _means(seconds: Mapping[int, tuple[float, float]], span: tuple[float, float]) -> tuple[float, float]:
    first, last = math.ceil(span[0]), math.floor(span[1])
    inside: Sequence[tuple[float, float]] = [seconds.get(second, (0.0, 0.0)) for second in range(first, last)]
    count, spent = sum(each[0] for each in inside), sum(each[1] for each in inside)
    return round(spent / count, 6) if count else 0.0, round(count / max(1, last - first), 2)

"""CPU that the metrics of a recorder cost: its endpoint at rest, and a scrape each five seconds. A minute."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from figures import Figure

from pgstrata.app.httpd.listen import parse_listen
from pgstrata.app.watching.cost import CostReader
from pgstrata.app.watching.endpoint import Endpoint
from pgstrata.app.watching.metrics import measure
from pgstrata.app.watching.recent import WINDOW, Recent
from pgstrata.model.archive import HOST_RATES, SERVER_RATES, SessionClass, SessionsLook
from pgstrata.ports.recording import RecordedSecond
from pgstrata.report.live.openmetrics import render_metrics

SCRAPES = 1000
REST = 20.0
EACH = 5.0
CLIENT = """
import sys, urllib.request
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
for _ in range(int(sys.argv[2])):
    request = urllib.request.Request(sys.argv[1], headers={"Accept": "application/openmetrics-text; version=1.0.0"})
    opener.open(request).read()
"""


def measure_scraping() -> Iterable[Figure]:
    """At rest and by scrape, in this process; clients are in another one."""
    with tempfile.TemporaryDirectory() as folder:
        recent, cost = _told(), CostReader(archive=Path(folder), psql=lambda: None)
        listen = parse_listen("127.0.0.1:0", anywhere=False)
        endpoint = Endpoint(listen, lambda form: render_metrics(measure(recent.read(WINDOW), cost.read()), form))
        try:
            before = time.process_time()
            time.sleep(REST)
            rest = (time.process_time() - before) / REST
            before = time.process_time()
            subprocess.run((sys.executable, "-c", CLIENT, endpoint.url, str(SCRAPES)), check=True)
            scrape = (time.process_time() - before) / SCRAPES
        finally:
            endpoint.close()
    notes = (f"at rest {rest:.4%}, a scrape {scrape * 1e3:.2f} ms",)
    yield Figure(
        name="scraping: CPU at one each 5 s", value=100 * (rest + scrape / EACH), goal=0.05, unit="%", notes=notes
    )


def _told() -> Recent:
    """Seconds of a server with a hundred classes of sessions."""
    recent = Recent()
    classes = [
        SessionClass(kind="client backend", state="active", wait_type="IO" if number % 2 else "", statement=str(number))
        for number in range(100)
    ]
    look = SessionsLook(counts=dict.fromkeys(classes, 1), blocked={})
    for moment in range(WINDOW):
        recent.follow(
            RecordedSecond(
                moment=moment,
                look=look,
                server=dict.fromkeys(SERVER_RATES, 100.0),
                server_seconds=1.0,
                host=dict.fromkeys(HOST_RATES, 1.0),
                host_seconds=1.0,
            )
        )
    return recent

"""`pgstrata serve` with a thousand studies: milliseconds of the list, as a browser gets it."""

from __future__ import annotations

import http.client
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

from figures import Figure
from synthetic import write_little_study

from pgstrata.app.httpd.listen import parse_listen
from pgstrata.app.serving.child import Children
from pgstrata.app.serving.service import Service

STUDIES = 1000
REQUESTS = 41


def measure_serving() -> Iterable[Figure]:
    """Nothing has changed between two requests; answers are looked for by nobody."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "studies"
        folder.mkdir()
        write_little_study(folder / "0000")
        for number in range(1, STUDIES):
            shutil.copytree(folder / "0000", folder / f"{number:04}")
        begun = time.perf_counter()
        # `false` ends at once: an answer takes half a second of CPU, for each study once
        service = Service(folder, parse_listen("127.0.0.1:0", anywhere=False), Children(("false",)))
        first = time.perf_counter() - begun
        try:
            times, size = _ask(service)
        finally:
            service.close()
    notes = (f"begun in {first:.2f} s, slowest {max(times):.0f} ms, {size / 1e6:.2f} MB",)
    yield Figure(name="serve: list of 1,000 studies", value=statistics.median(times), goal=200, unit="ms", notes=notes)


def _ask(service: Service) -> tuple[list[float], int]:
    """Milliseconds of each request, and bytes of a page."""
    host, first = service.url.removeprefix("http://").split("/", 1)
    times, size = [], 0
    with closing(http.client.HTTPConnection(host, timeout=60)) as connection:
        connection.request("GET", f"/{first}")
        entered = connection.getresponse()
        entered.read()
        base, cookie = entered.headers["Location"], entered.headers["Set-Cookie"].partition(";")[0]
        for _ in range(REQUESTS):
            begun = time.perf_counter()
            connection.request("GET", base, headers={"Cookie": cookie})
            page = connection.getresponse().read()
            times.append(1e3 * (time.perf_counter() - begun))
            assert page.count(b"<tr>") == STUDIES + 1
            size = len(page)
    return times, size

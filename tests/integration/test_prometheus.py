"""Prometheus accepts what a recorder offers, and answers each query of the dashboard for Grafana."""

import json
import math
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from databases import CLEAN, ask
from foreign_server import foreign_server
from pgstrata.app.watching.metrics import FAMILIES, INCIDENT_BEGIN
from pgstrata.report.live.openmetrics import Measured, MetricsFormat, render_metrics
from working_folder import working_folder

ROOT = Path(__file__).parents[2]
DASHBOARD = json.loads((ROOT / "docs/grafana/pgstrata.json").read_text())
MANUAL = (ROOT / "docs/how-to/incidents.md").read_text()
MISSING = [program for program in ("prometheus", "promtool") if not shutil.which(program)]
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"{' and '.join(MISSING)} missing")

INTERVAL, RATE_INTERVAL = 15, 60
"""Seconds between two scrapes, as the manual has it, and what Grafana makes of it: four times as many."""
BEFORE, BLOCKED, AFTER = 35, 20, 75
"""Seconds until the server is restarted, in which a session blocks others, and until all is asked."""
TABLE = (
    "CREATE TABLE stock (id int PRIMARY KEY, pieces int); INSERT INTO stock SELECT n, 0 FROM generate_series(0, 9) n;"
)
SCRIPT = "\\set id random(1, 9)\nUPDATE stock SET pieces = pieces + 1 WHERE id = :id;\n\\sleep 50 ms\n"
OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def queries():
    """What panels and annotations of the dashboard ask, by their titles."""
    for panel in DASHBOARD["panels"]:
        for target in panel["targets"]:
            yield f"{panel['title']}, {target['refId']}", target["expr"]
    for annotation in DASHBOARD["annotations"]["list"]:
        yield f"annotation {annotation['name']}", annotation["expr"]


def filled(expression, instance):
    text = expression.replace("$instance", instance).replace("$__rate_interval", f"{RATE_INTERVAL}s")
    assert "$" not in text, "a variable that nobody fills in"
    return text


def yaml_of_the_manual(word):
    (found,) = (block for block in re.findall(r"```yaml\n(.*?)```", MANUAL, re.DOTALL) if word in block)
    return found


def check(what, folder, text):
    """What promtool says of a text; it has to be nothing but success."""
    file = folder / what
    file.write_text(text)
    source = file if what == "metrics" else "/dev/null"
    with Path(source).open() as stream:
        words = ["promtool", "check", what, *([] if what == "metrics" else [file])]
        done = subprocess.run(words, stdin=stream, capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    return said


def test_promtool_finds_no_fault_with_the_metrics(tmp_path):
    every = [Measured(family=family, values=dict.fromkeys(family.values or ("",), 1.5)) for family in FAMILIES]
    assert check("metrics", tmp_path, render_metrics(every, MetricsFormat.PLAIN)) == ""


def test_each_query_of_the_dashboard_can_be_parsed(tmp_path):
    lines = ["groups:", "- name: dashboard", "  rules:"]
    for number, (_, expression) in enumerate(queries()):
        lines += [f"  - record: query:{number}", f"    expr: {json.dumps(filled(expression, '127.0.0.1:9790'))}"]
    said = check("rules", tmp_path, "\n".join([*lines, ""]))
    assert f"{len(list(queries()))} rules found" in said


def test_what_the_manual_writes_for_prometheus_is_valid(tmp_path):
    assert "2 rules found" in check("rules", tmp_path, yaml_of_the_manual("alert:"))
    check("config", tmp_path, yaml_of_the_manual("scrape_configs:"))


class Prometheus:
    """One that reads a recorder; `instance` is what it calls that."""

    def __init__(self, address, instance):
        self.address, self.instance = address, instance

    def get(self, path, **words):
        url = f"http://{self.address}/api/v1/{path}?{urllib.parse.urlencode(words)}"
        with OPENER.open(url, timeout=30) as answer:
            said = json.load(answer)
        assert said["status"] == "success", said
        return said["data"]

    def ask(self, expression, begin, end):
        """The values of each series that a panel draws."""
        words = {"query": filled(expression, self.instance), "start": begin, "end": end, "step": f"{INTERVAL}s"}
        found = self.get("query_range", **words)["result"]
        return [[float(value) for _, value in series["values"]] for series in found]


def await_(condition, what):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, what()
        time.sleep(0.2)


def start_recorder(ending, sandbox, server, folder):
    """The address of its metrics."""
    told = folder / "told"
    place = ("watch", server["dsn"], "--archive", str(folder / "archive"), "--listen", "127.0.0.1:0")
    with told.open("w") as stream:
        words = [sys.executable, "-m", "pgstrata", *place]
        process = subprocess.Popen(words, stdout=stream, stderr=stream, env=sandbox.environ)
    ending.callback(process.wait)
    ending.callback(process.send_signal, signal.SIGINT)
    await_(lambda: "metrics: " in told.read_text(), told.read_text)
    return re.search(r"metrics: http://(\S+)/metrics", told.read_text())[1]


def start_prometheus(ending, folder, target):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    config, log = folder / "prometheus.yml", folder / "prometheus.log"
    config.write_text(yaml_of_the_manual("scrape_configs:").replace("127.0.0.1:9790", target))
    words = [f"--config.file={config}", f"--storage.tsdb.path={folder / 'tsdb'}", f"--web.listen-address={address}"]
    with log.open("w") as stream:
        process = subprocess.Popen(["prometheus", *words], stdout=stream, stderr=stream, cwd=folder)
    ending.callback(process.wait)
    ending.callback(process.terminate)
    found = Prometheus(address, target)

    def answers():
        with suppress(OSError):
            return found.get("targets")["activeTargets"]
        return False

    await_(answers, log.read_text)
    return found


def start_load(ending, server, folder):
    script = folder / "script.sql"
    script.write_text(SCRIPT)
    words = [Path(server["psql"]).with_name("pgbench"), "-n", "-c", "4", "-T", "600", "-f", script, server["dsn"]]
    process = subprocess.Popen(words, env=CLEAN, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    ending.callback(process.wait)
    ending.callback(process.terminate)


@pytest.fixture(scope="module")
def reading(shared_sandbox):
    """A Prometheus that has read a recorder through load, a restart and a block; since when, and until when."""
    with working_folder() as folder, ExitStack() as ending:
        options = "-c shared_preload_libraries=pg_stat_statements"
        server = ending.enter_context(foreign_server(folder / "server", port=5432, options=options))
        ask(server, "postgres", f"CREATE EXTENSION pg_stat_statements; {TABLE}")
        prometheus = start_prometheus(ending, folder, start_recorder(ending, shared_sandbox, server, folder))
        begin = time.time()
        start_load(ending, server, folder)
        time.sleep(BEFORE)
        server["restart"]()
        start_load(ending, server, folder)
        ask(server, "postgres", f"BEGIN; UPDATE stock SET pieces = 0; SELECT pg_sleep({BLOCKED}); COMMIT;")
        time.sleep(AFTER - BLOCKED)
        yield prometheus, begin, time.time()


@pytest.mark.soak("grafana")
@pytest.mark.server
def test_prometheus_reads_a_recorder_and_answers_the_dashboard(reading, tmp_path):
    prometheus, begin, end = reading
    (target,) = prometheus.get("targets")["activeTargets"]
    assert (target["health"], target["lastError"]) == ("up", "")
    with OPENER.open(f"http://{prometheus.instance}/metrics", timeout=30) as answer:
        assert check("metrics", tmp_path, answer.read().decode()) == ""
    (variable,) = (each for each in DASHBOARD["templating"]["list"] if each["type"] == "query")
    metric, label = re.fullmatch(r"label_values\((\w+), (\w+)\)", variable["definition"]).groups()
    assert prometheus.get(f"label/{label}/values", **{"match[]": metric}) == [prometheus.instance]
    known = prometheus.get("metadata")
    for family in FAMILIES:
        if family is not INCIDENT_BEGIN:
            ((said,),) = [known[name] for name in (family.name, family.base) if name in known][:1]
            assert (said["type"], said["unit"]) == (family.type.value, family.unit), family.name
    without = []
    for title, expression in queries():
        series = prometheus.ask(expression, begin, end)
        if not any(math.isfinite(value) for values in series for value in values):
            without.append((title, expression))
    assert [title for title, _ in without] == ["annotation Incidents"], without

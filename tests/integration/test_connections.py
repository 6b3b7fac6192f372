"""What a connection costs: the workload that connects for each transaction, over a socket, TCP and TLS."""

import pytest

from pgstrata.model.activity import SessionState
from pgstrata.store.load import load_study

pytestmark = [pytest.mark.server, pytest.mark.timeout(600)]

CONNECTIONS = """
question = "What does a connection cost?"
blocks = 1
[factors]
connection = ["socket", "tcp", "tls"]
[common]
server = "18"
[[cells]]
workload = "connect"
scale = 1
clients = 2
run = "2s"
warmup = "0s"
"""


def share_of(runs, state):
    counts = [count for run in runs for count in run.sessions]
    return sum(count.samples for count in counts if count.state is state) / sum(count.samples for count in counts)


def test_a_connection_for_each_transaction_over_socket_tcp_and_tls(sandbox):
    done = sandbox.pgstrata("run", sandbox.file(CONNECTIONS), "--study", "study-connections")
    assert done.returncode == 0, done.stderr
    study = load_study(sandbox.root / "study-connections", sessions=True)
    assert all(run.value("tps") > 0 for run in study.runs)
    # connecting is what this workload does, not what keeps it from doing it
    assert not [reason for run in study.runs for reason in run.reasons if reason.code == "near_ceiling"]
    # and much of what clients do; a run of two seconds has too few samples to say so of it alone
    assert 0.1 < share_of(study.runs, SessionState.CONNECTING) < 1
    # what the client hashes to prove its password is little beside connecting
    cpu = {run.environment: run.value("client_cpu_per_tx") for run in study.runs}
    assert cpu["tcp"] < 8 * cpu["socket"]
    # the certificate of a clone is no change of the environment, though each clone has another one
    assert not [reason for run in study.runs for reason in run.reasons if reason.code == "fingerprint_changed"]
    facts = {name: fingerprint.facts for name, fingerprint in study.environments.items()}
    assert {name: found["connection.kind"] for name, found in facts.items()} == {
        "socket": "socket",
        "tcp": "tcp",
        "tls": "tls",
    }
    assert facts["tls"]["connection.tls"].startswith("TLSv1.")
    assert "connection.tls" not in facts["tcp"]


def test_a_server_without_tls_is_refused_before_anything_is_measured(sandbox):
    text = CONNECTIONS.replace('server = "18"', 'server = "embedded"')
    done = sandbox.pgstrata("run", sandbox.file(text), "--study", "study-plain")
    assert done.returncode == 2
    assert "built without TLS" in done.stderr
    assert 'server = "18"' in done.stderr

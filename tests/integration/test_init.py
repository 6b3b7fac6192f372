"""Files of `pgstrata init` are carried out as they are written."""

import pytest

pytestmark = [pytest.mark.server, pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.mark.parametrize(("question", "runs"), [("versions", 3), ("builds", 3)])
def test_a_file_is_carried_out_unchanged(question, runs, sandbox):
    file = sandbox.root / f"{question}.toml"
    assert sandbox.pgstrata("init", question, file, real=True).returncode == 0
    done = sandbox.pgstrata("run", file, "--study", sandbox.root / f"study-{question}", "--blocks", 1, timeout=500)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"done: {runs} of {runs} runs" in done.stdout

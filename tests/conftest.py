"""What holds for all tests."""

import os

import pytest
from hypothesis import settings

# The same examples on every machine, so that a change and nothing else decides whether a submission passes;
# --hypothesis-profile=explore looks for new ones.
settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None, max_examples=400)
settings.load_profile("same")


@pytest.fixture(scope="session", autouse=True)
def own_lock(tmp_path_factory):
    """Tests measure nothing that counts: they may run beside a pgstrata at work, and beside other tests."""
    before = os.environ.get("PGSTRATA_LOCK")
    os.environ["PGSTRATA_LOCK"] = str(tmp_path_factory.mktemp("lock") / "pgstrata.lock")
    yield
    if before is None:
        del os.environ["PGSTRATA_LOCK"]
    else:
        os.environ["PGSTRATA_LOCK"] = before

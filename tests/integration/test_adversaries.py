"""A minute of what `make soak` does for twenty: users attack root's pgstrata while it works, and gain nothing."""

import os

import pytest

from siege import Siege

pytestmark = [
    pytest.mark.root,
    pytest.mark.server,
    pytest.mark.timeout(600),
    pytest.mark.skipif(os.getuid() != 0, reason="needs root"),
]


def test_nothing_of_roots_is_touched(open_folder):
    siege = Siege(open_folder)
    siege.set_up()
    assert siege.run(60) == []
    assert siege.outcomes

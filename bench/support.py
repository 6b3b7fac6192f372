"""Loads helper modules of the tests for benchmarks, because the tests are not a package."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).parents[1] / "tests" / "support"


def load_support(name: str) -> Any:
    """The module of this name in `tests/support`, which must import nothing else from there."""
    spec = importlib.util.spec_from_file_location(name, _FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

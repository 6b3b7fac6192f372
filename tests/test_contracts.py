"""The contracts of import-linter name every module that calls itself pure."""

import ast
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PURE_IN_PART = {"pgstrata.collectors", "pgstrata.drivers", "pgstrata.layers.storage.stack"}
"""Their parsers are pure and named one by one; the rest observes a host or starts a client."""


def contract(name):
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    return next(each for each in contracts if each["name"] == name)


def module_of(path):
    parts = path.relative_to(ROOT / "src").with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def test_every_module_that_calls_itself_pure_is_in_the_contract_without_io():
    covered = contract("the core does no I/O")["source_modules"]
    pure = {
        module_of(path)
        for path in (ROOT / "src").rglob("*.py")
        if re.search(r"\b[Pp]ure\b", ast.get_docstring(ast.parse(path.read_text())) or "")
    }
    assert pure
    missing = {name for name in pure if not any(name == each or name.startswith(f"{each}.") for each in covered)}
    assert missing == PURE_IN_PART


def test_indirect_imports_count():
    assert "allow_indirect_imports" not in contract("the core does no I/O")

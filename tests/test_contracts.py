"""The contracts of import-linter name every module that calls itself pure."""

import ast
import re
import tomllib
from functools import cache
from pathlib import Path

import pytest

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


SOURCE = ROOT / "src" / "pgstrata"
FILES = SOURCE / "system" / "files.py"
MAKING = {
    "chmod",
    "lchmod",
    "mkdir",
    "unlink",
    "rmdir",
    "touch",
    "symlink_to",
    "hardlink_to",
    "write_text",
    "write_bytes",
}
"""Methods of Path that ruff cannot ban, because it does not know what they are called on."""

OF_ROOT = {"mount", "umount", "losetup", "chown", "setpriv", "runuser", "su", "flock", "wipefs", "chattr", "fallocate"}
IN_A_SCRIPT = re.compile(rf"(?:^|[;&|(]\s*|\n\s*|then |do )(?:{'|'.join(sorted(OF_ROOT))}) (?:-|\"?\$)")


def changes_files(call):
    """Whether a call makes, changes or removes a file by a method of Path, or opens one to be written."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    words = [value.value for value in call.args if isinstance(value, ast.Constant) and isinstance(value.value, str)]
    if name == "open":
        return any(re.fullmatch(r"[rwxab+t]{1,3}", word) and set(word) & set("wxa+") for word in words)
    if not isinstance(call.func, ast.Attribute):
        return False
    # a text and a value take more arguments to be replaced, a host and its path to be renamed
    of_path = name in {"rename", "replace"} and len(call.args) == 1 and not call.keywords
    return name in MAKING or of_path


def commands_root(node):
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Command":
        first = next((keyword.value for keyword in node.keywords if keyword.arg == "argv"), None)
        words = first.elts[:1] if isinstance(first, ast.Tuple) else []
        asks = isinstance(first, ast.Tuple) and ast.unparse(first).endswith("'--version')")
        return any(isinstance(word, ast.Constant) and word.value in OF_ROOT for word in words) and not asks
    text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
    return bool(IN_A_SCRIPT.search(text))


@cache
def calls_and_texts():
    """All calls and constants of the source, with the file of each; what is for tests is left out."""
    paths = [path for path in SOURCE.rglob("*.py") if not path.name.startswith("testing")]
    nodes = ((path, node) for path in paths for node in ast.walk(ast.parse(path.read_text())))
    return [(path, node) for path, node in nodes if isinstance(node, ast.Call | ast.Constant)]


def found_in(outside, wanted):
    return {
        f"{path.relative_to(SOURCE)}:{node.lineno}"
        for path, node in calls_and_texts()
        if outside not in {path, *path.parents} and wanted(node)
    }


def test_files_are_made_changed_and_removed_in_one_module():
    found = found_in(FILES, lambda node: isinstance(node, ast.Call) and changes_files(node))
    assert {place for place in found if not place.startswith("cli/main.py")} == set()  # which opens /dev/null


def test_commands_for_which_root_is_needed_are_composed_in_one_room():
    assert found_in(FILES.parent, commands_root) == set()


def first_in(text, kind):
    return next(node for node in ast.walk(ast.parse(text)) if isinstance(node, kind))


@pytest.mark.parametrize("call", ["path.chmod(0)", "a.rename(b)", "Path(p).open('w')", "open(p, 'ab')", "x.replace(y)"])
def test_a_call_that_changes_files_is_seen(call):
    assert changes_files(first_in(call, ast.Call))


@pytest.mark.parametrize(
    "call", ["host.rename(a, b)", "text.replace('a', 'b')", "moment.replace(tzinfo=UTC)", "p.open('rb')"]
)
def test_a_call_that_changes_no_file_is_not(call):
    assert not changes_files(first_in(call, ast.Call))


@pytest.mark.parametrize("text", ["mount -t ext4", 'x && chown "$1" a', "(\n  losetup --find"])
def test_a_command_of_root_in_a_script_is_seen(text):
    assert commands_root(ast.Constant(text))


def test_a_command_of_root_is_seen_and_prose_is_not():
    assert commands_root(first_in("Command(argv=('umount', path))", ast.Call))
    assert not commands_root(ast.Constant("the mount option noatime"))


def sentences_in(path):
    """Strings of several words, but for docstrings and what is said by errors that are raised."""
    tree = ast.parse(path.read_text())
    spared = [node for node in ast.walk(tree) if isinstance(node, ast.Raise)]
    spared += [node for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)]
    allowed = {id(leaf) for node in spared for leaf in ast.walk(node)}
    constants = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in allowed)
    texts = (node.value for node in constants if isinstance(node.value, str))
    return [f"{path.name}: {text}" for text in texts if re.search(r"[a-z]{2,},? [a-z]{2,}", text)]


def test_findings_are_data_and_compare_holds_no_sentence():
    found = [text for path in (ROOT / "src/pgstrata/compare").rglob("*.py") for text in sentences_in(path)]
    # how an error and a reason of `conduct` spell a fact that is gone
    assert found == ["changes.py: not there"]

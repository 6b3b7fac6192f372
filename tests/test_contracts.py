"""The contracts of import-linter name every module that calls itself pure."""

import ast
import re
import tomllib
from functools import cache
from pathlib import Path

import pytest

from pgstrata.conduct.judge import _EXHAUSTED

ROOT = Path(__file__).parents[1]
PURE_IN_PART = {"pgstrata.drivers", "pgstrata.layers.storage.stack"}
"""Their pure modules are named one by one; the rest observes a host or starts a client."""


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
SYSTEM = SOURCE / "system"
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
IN_A_SCRIPT = re.compile(rf"(?:^|[;&|(]\s*|\n\s*|then |do )(?:{'|'.join(sorted(OF_ROOT))}) (?:-|/|\"?\$)")
OPENING = re.compile(r"\bO_(?:WRONLY|RDWR|CREAT|TRUNC|APPEND|TMPFILE)\b")
OF_THE_NULL_DEVICE = {"Path(os.devnull).open('w', encoding='utf-8')", "os.open(os.devnull, os.O_WRONLY)"}
"""Calls in cli/program.py, which change no file."""


def changes_files(call):
    """Whether a call makes, changes or removes a file by a method of Path, or opens one to be written."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if name == "open":
        given = [*call.args, *(keyword.value for keyword in call.keywords if keyword.arg in {"mode", "flags"})]
        words = [value.value for value in given if isinstance(value, ast.Constant) and isinstance(value.value, str)]
        if any(re.fullmatch(r"[rwxab+t]{1,3}", word) and set(word) & set("wxa+") for word in words):
            return True
        return any(OPENING.search(ast.unparse(value)) for value in given)
    if not isinstance(call.func, ast.Attribute):
        return False
    # a text and a value take more arguments to be replaced, a host and its path to be renamed
    named = tuple(keyword.arg for keyword in call.keywords)
    of_path = name in {"rename", "replace"} and (len(call.args), named) in {(1, ()), (0, ("target",))}
    return name in MAKING or of_path


def commands_root(node):
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Command":
        given = [*node.args[:1], *(keyword.value for keyword in node.keywords if keyword.arg == "argv")]
        argv = next((value.elts for value in given if isinstance(value, ast.Tuple | ast.List)), [])
        # what stands before the program, such as sudo, is put in
        words = [getattr(word, "value", None) for word in argv if not isinstance(word, ast.Starred)]
        return words[:1] != [] and words[0] in OF_ROOT and words[-1] != "--version"
    return bool(IN_A_SCRIPT.search(text_of(node)))


def text_of(node):
    """A text as a shell would get it, with `$` for what is put into it."""
    if isinstance(node, ast.JoinedStr):
        return "".join(text_of(value) if isinstance(value, ast.Constant) else "$" for value in node.values)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


@cache
def calls_and_texts():
    """All calls and texts of the source, with the file of each; what is for tests or for people is left out."""
    paths = [path for path in SOURCE.rglob("*.py") if not path.name.startswith("testing")]
    nodes = ((path, node) for path in paths for node in walk_what_is_done(ast.parse(path.read_text())))
    return [(path, node) for path, node in nodes if isinstance(node, ast.Call | ast.Constant | ast.JoinedStr)]


def walk_what_is_done(node):
    """The nodes of a tree, but for docstrings and remedies."""
    yield node
    for child in ast.iter_child_nodes(node):
        docstring = isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)
        remedy = isinstance(child, ast.keyword) and child.arg == "remedy"
        if not docstring and not remedy:
            yield from walk_what_is_done(child)


def found_in(outside, wanted):
    return {
        f"{path.relative_to(SOURCE)}:{node.lineno}"
        for path, node in calls_and_texts()
        if outside not in {path, *path.parents} and wanted(node)
    }


def test_files_are_made_changed_and_removed_in_one_room():
    def changes(node):
        return isinstance(node, ast.Call) and changes_files(node) and ast.unparse(node) not in OF_THE_NULL_DEVICE

    assert found_in(SYSTEM, changes) == set()


def test_the_null_device_is_opened_by_those_who_may():
    calls = [(path, node) for path, node in calls_and_texts() if isinstance(node, ast.Call) and changes_files(node)]
    opened = [path.name for path, node in calls if ast.unparse(node) in OF_THE_NULL_DEVICE]
    assert opened == ["program.py"] * len(OF_THE_NULL_DEVICE)


def test_commands_for_which_root_is_needed_are_composed_in_one_room():
    assert found_in(SYSTEM, commands_root) == set()


def first_in(text, kind):
    return next(node for node in ast.walk(ast.parse(text)) if isinstance(node, kind))


@pytest.mark.parametrize(
    "call",
    [
        "path.chmod(0)",
        "a.rename(b)",
        "a.rename(target=b)",
        "x.replace(y)",
        "p.replace(target=x)",
        "Path(p).open('w')",
        "p.open(mode='wb')",
        "open(p, 'ab')",
        "open(p, mode='w')",
        "os.open(p, os.O_CREAT)",
        "os.open(p, flags=os.O_RDWR | os.O_CLOEXEC)",
    ],
)
def test_a_call_that_changes_files_is_seen(call):
    assert changes_files(first_in(call, ast.Call))


@pytest.mark.parametrize(
    "call",
    [
        "host.rename(a, b)",
        "text.replace('a', 'b')",
        "moment.replace(tzinfo=UTC)",
        "p.open('rb')",
        "os.open(p, os.O_RDONLY)",
    ],
)
def test_a_call_that_changes_no_file_is_not(call):
    assert not changes_files(first_in(call, ast.Call))


@pytest.mark.parametrize("text", ["mount -t ext4", 'x && chown "$1" a', "(\n  losetup --find", "mount /dev/x /y"])
def test_a_command_of_root_in_a_script_is_seen(text):
    assert commands_root(ast.Constant(text))


def test_so_is_one_into_which_paths_are_put():
    assert commands_root(first_in("f'mount {a} {b}'", ast.JoinedStr))
    assert not commands_root(first_in("f'the mount {a}'", ast.JoinedStr))


@pytest.mark.parametrize(
    "argv", ["argv=('umount', p)", "argv=['umount', p]", "('umount', p)", "argv=(*sudo, 'umount', p)"]
)
def test_a_command_of_root_is_seen(argv):
    assert commands_root(first_in(f"Command({argv})", ast.Call))


@pytest.mark.parametrize("argv", ["argv=('flock', '--version')", "argv=words", "argv=()", "argv=(program, 'mount')"])
def test_another_command_is_not_and_prose_is_none(argv):
    assert not commands_root(first_in(f"Command({argv})", ast.Call))
    assert not commands_root(ast.Constant("the mount option noatime"))


def sentences_in(path):
    """Strings of several words, but for docstrings, cases of a code, and what is said by errors that are raised."""
    tree = ast.parse(path.read_text())
    spared = [node for node in ast.walk(tree) if isinstance(node, ast.Raise)]
    spared += [node for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)]
    spared += [node for node in ast.walk(tree) if isinstance(node, ast.keyword) and node.arg == "how"]
    allowed = {id(leaf) for node in spared for leaf in ast.walk(node)}
    constants = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in allowed)
    texts = (node.value for node in constants if isinstance(node.value, str))
    return [f"{path.name}: {text}" for text in texts if re.search(r"[a-z]{2,},? [a-z]{2,}", text)]


TEXTS_OF_ERRORS = {"conduct/disk_full.py", "plan/refusals.py"}
"""Modules whose texts are all those of errors that are raised, some of them elsewhere."""
OTHER_TEXTS = {
    # what a ceiling and a noise floor depend on, as keys
    "ceiling.py: running server of ",
    "floors.py: cell option ",
    # cases of a code
    "samplers.py: not started",
    "outgrown.py: of some",
    "outgrown.py: one scale",
    # a sign in the server's log
    "finish.py: was terminated by signal",
    # remedies and places of errors that are raised
    "losses.py:  has lost its connection ",
    "losses.py:  times: check the host's logs for the reason",
    "losses.py: give the same command again when the host is back: what was measured is kept",
    "preflight.py: while the environment {} was tried",
    "bisection.py: the experiment has several factors",
    "bisection.py: add one with three levels or more, such as server",
    "bisection.py: there is no factor ",
    "bisection.py: choose one of ",
    # the question and a remark in the experiment file of a step
    "bisection.py: # A step of a search along ",
    "bisection.py: , with a threshold of ",
    "bisection.py:  differ from ",
}
PROGRAMS = re.compile(r"SELECT |for pair; do ")


def test_reasons_are_data_and_those_who_give_them_hold_no_sentence():
    rooms = [path for room in ("conduct", "plan") for path in sorted((SOURCE / room).rglob("*.py"))]
    givers = [path for path in rooms if str(path.relative_to(SOURCE)) not in TEXTS_OF_ERRORS]
    found = [text for path in (*givers, SOURCE / "collectors/waits/sampler.py") for text in sentences_in(path)]
    signs = {f"judge.py: {sign}" for sign in _EXHAUSTED}
    left = {text for text in found if not PROGRAMS.match(text.partition(": ")[2])} - signs
    assert left == OTHER_TEXTS


def test_findings_are_data_and_compare_holds_no_sentence():
    found = [text for path in (ROOT / "src/pgstrata/compare").rglob("*.py") for text in sentences_in(path)]
    assert set(found) == {
        # how an error and a reason of `conduct` spell a fact that is gone
        "changes.py: not there",
    }

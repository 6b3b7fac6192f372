"""The catalogue of guards is whole: what the code can say is in it, what is in it can be said, and was seen to be said."""

import ast
import importlib.util
import re
from pathlib import Path
from typing import get_args

import pytest

from guard_book import load_book, shape
from pgstrata.model.doubts import Doubt
from pgstrata.model.guards import GUARDS, Force, GuardSubject, Proof, force_of
from pgstrata.model.reasons import Reason

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "pgstrata"
CARRIERS = {"Reason": Reason, **{kind.__name__: kind for kind in get_args(Doubt)}}
OF_RUNS = {"collectors", "conduct"}
"""Rooms that give reasons of runs; those of others are about plans."""

# Refusals are errors, whose sentences say more than a code: where each is raised, by words that stand there.
RAISED = {
    "mixed_suppliers": ("experiment/environments.py", "allow.mixed_suppliers"),
    "mixed_compilers": ("app/wiring.py", "allow.mixed_compilers"),
    "assertions": ("app/wiring.py", "allow.assertions"),
    "level_not_taken": ("layers/settings.py", "raise LevelNotTakenError"),
    "script_failed": ("conduct/preflight.py", "the script failed when it was tried once"),
    "environment_changed": ("conduct/preflight.py", "def _refuse_changed"),
}


def constants_of(tree):
    """Texts that names of a module may stand for: constants, and everything that is assigned to a name."""
    found = {}
    for node in ast.walk(tree):
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        names = {name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)}
        value = getattr(node, "value", None)
        if names and value is not None:
            texts = {
                leaf.value for leaf in ast.walk(value) if isinstance(leaf, ast.Constant) and isinstance(leaf.value, str)
            }
            for name in names:
                found.setdefault(name, set()).update(texts)
    return found


def codes_in(path):
    """Codes that a module can give to a reason of a run or a warning; a composed one as a pattern."""
    tree = ast.parse(path.read_text())
    carriers = CARRIERS if path.relative_to(SOURCE).parts[0] in OF_RUNS else CARRIERS.keys() - {"Reason"}
    constants = constants_of(tree)
    for call in ast.walk(tree):
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in carriers):
            continue
        own = getattr(CARRIERS[call.func.id], "code", None)
        if isinstance(own, str):
            yield re.escape(own)
        for keyword in call.keywords:
            if keyword.arg == "code":
                yield from resolve(keyword.value, constants)


def resolve(node, constants):
    match node:
        case ast.Constant(value=str(text)):
            yield re.escape(text)
        case ast.JoinedStr(values=parts):
            yield "".join(re.escape(part.value) if isinstance(part, ast.Constant) else "[a-z_]+" for part in parts)
        case ast.IfExp(body=body, orelse=orelse):
            yield from resolve(body, constants)
            yield from resolve(orelse, constants)
        case ast.Name(id=name) if name in constants:
            yield from (
                re.escape(text) for text in constants[name] if re.fullmatch(r"[a-z]+(_[a-z]+)*", text) and "_" in text
            )
        case ast.Name():
            pass  # a parameter: whoever gives it is looked at too
        case ast.Attribute():
            pass  # a code that was read from a record
        case _:
            pytest.fail(f"a code is composed in a way that this test does not know: {ast.unparse(node)}")


def emitted():
    """Pattern of each code, and the modules that can say it."""
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        for pattern in codes_in(path):
            found.setdefault(pattern, set()).add(str(path.relative_to(SOURCE)))
    return found


def refusals():
    """Names of the checks of plan/refusals.py, without their underscore."""
    tree = ast.parse((SOURCE / "plan" / "refusals.py").read_text())
    (refuse,) = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "refuse"]
    return {
        call.func.id.removeprefix("_")
        for call in ast.walk(refuse)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id.startswith("_")
    }


def test_every_code_that_the_program_can_give_is_in_the_catalogue():
    missing = {
        pattern: sorted(where)
        for pattern, where in emitted().items()
        if not any(re.fullmatch(pattern, code) for code in GUARDS)
    }
    assert not missing
    assert not refusals() - GUARDS.keys()


def test_every_guard_of_the_catalogue_can_be_given_by_the_program():
    patterns = emitted()
    for code, guard in GUARDS.items():
        if code in RAISED:
            file, words = RAISED[code]
            assert words in (SOURCE / file).read_text(), code
        elif guard.subject is GuardSubject.PLAN:
            assert code in refusals(), code
        else:
            assert any(re.fullmatch(pattern, code) for pattern in patterns), code


def test_a_reason_that_nobody_knows_leaves_a_run_suspect():
    assert force_of("from_another_version") is Force.SUSPECT


@pytest.mark.parametrize("code", [code for code, guard in GUARDS.items() if guard.proof is not Proof.FIGURES])
def test_every_guard_that_claims_a_proof_was_seen_by_a_test_that_is_there(code):
    seen = load_book()[code]
    file, _, name = seen["test"].partition("::")
    assert f"def {name.rpartition('::')[2]}(" in (ROOT / file).read_text()
    provoked = GUARDS[code].proof is Proof.PROVOKED
    assert file.startswith("tests/integration/") is provoked
    assert seen["text"].strip()


def test_nothing_is_recorded_of_guards_that_are_not_there():
    assert load_book().keys() <= GUARDS.keys()


def test_shapes_are_alike_where_only_numbers_differ():
    assert shape("used 1.95 of 2 CPUs (97%)") == shape("used 0.9 of 16 CPUs (5%)")
    assert shape("jumped by +3600.0 s") == shape("jumped by -1.5 s")
    assert shape("pg16 differs") != shape("pg16 is alike")


def test_the_reference_of_the_guards_is_fresh():
    spec = importlib.util.spec_from_file_location("guards", ROOT / "scripts/guards.py")
    guards = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(guards)
    kept = (ROOT / "docs/reference/guards.md").read_text()
    assert kept == guards.render_guards(), "run `.venv/bin/python scripts/guards.py`"

"""How a server is built: nothing of the host is changed for it."""

import re
from typing import Final

from pgstrata.experiment.keys import WrongValueError
from pgstrata.experiment.layers.declaration import FactorKey, Layer, LayerKey, level_text, one_of, read_options
from pgstrata.experiment.values import TABLE, Scalar

_PROGRAM: Final = re.compile(r"[A-Za-z0-9_/][A-Za-z0-9_.+/-]*")


def _read_program(value: Scalar) -> str:
    text = level_text(value)
    if not _PROGRAM.fullmatch(text):
        raise WrongValueError(f"{text!r} is not a compiler", 'write the name or path of one: "gcc-12", "clang"')
    return text


BUILD: Final = Layer(
    factors={
        "build": FactorKey(
            kind=TABLE,
            meaning="How build:DIR is built: compiler (a program), flags (such as -O2; they replace PostgreSQL's own), "
            "system (meson or configure).",
            wrong='{ flag = "-O2" }',
            wrong_levels='{ compiler = ["gcc -O2", "clang"] }',
        )
    },
    keys={
        "build.compiler": LayerKey(_read_program, "the C compiler, by name or path"),
        "build.flags": LayerKey(read_options, "flags of the compiler, as one text"),
        "build.system": LayerKey(one_of("meson", "configure"), '`"meson"`, `"configure"`'),
    },
)

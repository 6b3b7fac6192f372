"""Connection strings as the libpq of the embedded build reads them."""

import ctypes
from random import Random

import pytest

from connection_strings import WITH_PASSWORD
from pgstrata.app.machine import open_machine
from pgstrata.experiment.keys import WrongValueError
from pgstrata.experiment.servers import parse_server
from pgstrata.libpq import parse_conninfo, quote_dollars
from pgstrata.model.experiment import ServerKind, ServerSpec

pytestmark = pytest.mark.server

PIECES = (
    "postgresql://", "postgres://", "POSTGRES://", "me", ":", "@", "/", "?", "&", "=", "#", "%40", "%", "%00", "%FF", "'", "\\",
    " ", "\t", "\n", "\u00a0", ",", "[::1]", "[", "]", "5432", "password=", "host=", "ssl=true", "dbname=", "pass%77ord=", "+",
)  # fmt: skip
BEGINNINGS = ("", "postgresql://me:", "postgres://h/?password=", "host=h password=", "postgresql://")


class Option(ctypes.Structure):
    """PQconninfoOption of libpq-fe.h."""

    _fields_ = [
        *((name, ctypes.c_char_p) for name in ("keyword", "envvar", "compiled", "val", "label", "dispchar")),
        ("dispsize", ctypes.c_int),
    ]


@pytest.fixture(scope="module")
def libpq():
    with open_machine(print) as machine:
        build = machine.servers.resolve(ServerSpec(kind=ServerKind.EMBEDDED))
    library = ctypes.CDLL(f"{build.prefix}/lib/libpq.so.5")
    library.PQconninfoParse.restype = ctypes.POINTER(Option)

    def read(text):
        found = library.PQconninfoParse(text.encode("utf-8", "surrogateescape"), None)
        assert found, f"libpq refuses {text!r}"
        options = {}
        while found[len(options)].keyword:
            option = found[len(options)]
            options[option.keyword.decode()] = (option.val or b"").decode("utf-8", "surrogateescape")
        library.PQconninfoFree(found)
        return {keyword: value for keyword, value in options.items() if value}

    return read


def drawn(seed):
    random = Random(seed)
    while True:
        yield random.choice(BEGINNINGS) + "".join(random.choices(PIECES, k=random.randint(1, 10)))


def test_whatever_is_accepted_is_read_as_libpq_reads_it(libpq):
    accepted = 0
    for text, _ in zip(drawn(15), range(10_000), strict=False):
        try:
            level = parse_server(f"dsn:{text}")
        except WrongValueError:
            continue
        said = level.conninfo.reveal()
        if said.startswith("service="):
            continue
        accepted += 1
        read = {keyword: value for keyword, value in parse_conninfo(said).items() if value}
        # an empty port of several is the default one
        assert {**libpq(said), "port": read.get("port", "")} == {**read, "port": read.get("port", "")}, text
    assert accepted > 500


@pytest.mark.parametrize("text", [text for text in WITH_PASSWORD if "tty" not in text])
def test_every_form_is_one_of_libpq(libpq, text):
    assert libpq(text) == dict(parse_conninfo(text))


@pytest.mark.parametrize("value", ["", "a", "$pgstrata0$", "a$pgstrata0", "$pgstrata0$ $pgstrata1", "$$", "a$"])
def test_a_text_in_dollars_ends_where_it_ends(value):
    quoted = quote_dollars(value)
    tag = quoted[: quoted.index("$", 1) + 1]
    assert quoted.index(tag, len(tag)) == len(tag) + len(value) == len(quoted) - len(tag)

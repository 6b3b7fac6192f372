"""Clients of all majors up to 18 prove the same kind of password, and checking it costs little."""

import hashlib
import hmac
import re
from base64 import b64decode

from pgstrata.datasets.recipe import hash_scram, render_password


def test_up_to_18_the_password_is_stored_as_a_cheap_hash_of_it_and_the_role():
    # as SELECT 'md5' || md5('secret' || 'pgstrata') says
    stored = "ALTER ROLE pgstrata PASSWORD 'md5803b283815c914b37943615ca6dd8f4e';"
    assert {render_password("pgstrata", "secret", version) for version in (90624, 140000, 180600)} == {stored}


def test_from_19_on_it_is_hashed_in_one_round_before_the_server_reads_it():
    text = render_password("pgstrata", "secret", 190000)
    assert re.fullmatch(r"ALTER ROLE pgstrata PASSWORD 'SCRAM-SHA-256\$1:[^$]+\$[^:]+:[^']+';", text)
    assert "secret" not in text


def test_scram_is_that_of_the_standard():
    """Against the client's proof and the server's signature of RFC 7677, chapter 3."""
    stored, server = (
        b64decode(key)
        for key in hash_scram("pencil", b64decode("W22ZaJ0SNY7soEsUEjb6gQ=="), iterations=4096).split("$")[2].split(":")
    )
    nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    said = (f"n=user,r=rOprNGfwEbeRWgbNEkqO,r={nonce},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,c=biws,r={nonce}").encode()
    proof = b64decode("dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=")
    signature = hmac.digest(stored, said, "sha256")
    client = bytes(one ^ other for one, other in zip(proof, signature, strict=True))
    assert hashlib.sha256(client).digest() == stored
    assert hmac.digest(server, said, "sha256") == b64decode("6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")

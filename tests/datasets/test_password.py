"""Clients of all majors up to 18 prove the same kind of password, and checking it costs little."""

from pgstrata.datasets.password import render_password


def test_up_to_18_the_password_is_stored_as_a_cheap_hash_of_it_and_the_role():
    # as SELECT 'md5' || md5('secret' || 'pgstrata') says
    stored = "ALTER ROLE pgstrata PASSWORD 'md5803b283815c914b37943615ca6dd8f4e';"
    assert {render_password("pgstrata", "secret", version) for version in (90624, 140000, 180600)} == {stored}


def test_from_19_on_it_is_hashed_once_by_the_server():
    text = render_password("pgstrata", "secret", 190000)
    assert text == "SET scram_iterations = 1;\nALTER ROLE pgstrata PASSWORD 'secret';"

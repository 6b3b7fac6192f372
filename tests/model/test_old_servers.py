"""Settings in the words of old servers."""

import pytest

from pgstrata.model.old_servers import settings_of_its_time

CHOSEN = {
    "max_wal_size": "4GB",
    "min_wal_size": "32MB",
    "huge_pages": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "effective_io_concurrency": "16",
    "unix_socket_directories": "/run/x",
    "shared_buffers": "128MB",
}


def test_servers_from_9_5_on_and_those_not_known_get_their_settings_as_they_are():
    for version in (0, 90500, 90600, 180006):
        assert settings_of_its_time(CHOSEN, version) == CHOSEN


@pytest.mark.parametrize(
    ("version", "gone"),
    [
        (90400, {"min_wal_size"}),
        (90300, {"min_wal_size", "huge_pages"}),
        (80400, {"min_wal_size", "huge_pages", "wal_level", "max_wal_senders"}),
        (80300, {"min_wal_size", "huge_pages", "wal_level", "max_wal_senders", "effective_io_concurrency"}),
    ],
)
def test_old_servers_are_not_told_what_they_do_anyway(version, gone):
    kept = settings_of_its_time(CHOSEN, version)
    assert not gone & kept.keys()
    assert {"shared_buffers", "checkpoint_segments"} <= kept.keys()
    assert "max_wal_size" not in kept


def test_the_size_of_the_wal_becomes_a_number_of_segments():
    assert settings_of_its_time({"max_wal_size": "4GB"}, 90400) == {"checkpoint_segments": "85"}
    assert settings_of_its_time({"max_wal_size": "32MB"}, 80300) == {"checkpoint_segments": "1"}


def test_the_folder_of_sockets_has_its_former_name_before_9_3():
    assert settings_of_its_time({"unix_socket_directories": "/x"}, 90200) == {"unix_socket_directory": "/x"}
    assert settings_of_its_time({"unix_socket_directories": "/x"}, 90300) == {"unix_socket_directories": "/x"}


def test_a_setting_that_an_old_server_cannot_follow_is_left_to_be_refused_by_it():
    asked = {"huge_pages": "on", "wal_level": "logical"}
    assert settings_of_its_time(asked, 80400) == asked

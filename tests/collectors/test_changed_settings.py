"""Which settings differ from the defaults is read from the table that every run keeps."""

from __future__ import annotations

from pgstrata.collectors.changed_settings import parse_changed_settings
from pgstrata.model.server import ChangedSetting

HEAD = "name\tsetting\tunit\tsource\tboot_val\n"


def test_what_somebody_set_to_something_else_is_told():
    table = (
        f"{HEAD}shared_buffers\t131072\t8kB\tconfiguration file\t16384\nwork_mem\t4096\tkB\tdefault\t4096\n"
        "fsync\ton\t\tcommand line\ton\nport\t5433\t\tcommand line\t5432\n"
        "data_directory\t/x\t\toverride\t\napplication_name\tpsql\t\tclient\t\n"
        "archive_command\t********\t\tconfiguration file\t\n"
    )
    assert parse_changed_settings(table.encode()) == (
        ChangedSetting(name="shared_buffers", value="131072", unit="8kB", default="16384"),
        ChangedSetting(name="archive_command", value="********", unit="", default=""),
    )


def test_nothing_and_damage_tell_nothing():
    assert parse_changed_settings(b"") == ()
    assert parse_changed_settings(f"{HEAD}a\tb\n\xff\n".encode("latin-1")) == ()

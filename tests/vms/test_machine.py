"""What a virtual machine remembers of its host."""

import json
import os
from pathlib import Path

from pgstrata.ports.host import Completed
from pgstrata.servers.places import Places
from pgstrata.vms.machine import VirtualMachine
from pgstrata.vms.qemu import Acceleration


class HostWithoutKvm:
    user = "root"

    def read(self, path):
        return Path(path).read_bytes()

    def run(self, _, **__):
        return Completed(code=1, stdout=b"", stderr=b"")


def test_what_is_remembered_is_read_as_a_file_and_otherwise_found_out_anew(tmp_path):
    image = tmp_path / "vms" / "deb12"
    image.mkdir(parents=True)
    (image / "image.json").write_text(json.dumps({"suite": "bookworm", "kernels": ["6.1.0-1"], "oldest": []}))
    places = Places(cache=str(tmp_path), state=str(tmp_path), data="", storage="", run="", memory="")
    host = HostWithoutKvm()
    machine = VirtualMachine("deb12", places=places, here=host, host=host, clock=None, data="", tell=lambda _: None)
    remembered = tmp_path / "vms-acceleration"
    os.mkfifo(remembered)
    assert machine.acceleration() is Acceleration.EMULATION
    assert remembered.read_text().endswith(" root tcg\n")

"""Which kernels a machine has, which one is meant, and how it is started once."""

import random

import pytest

from pgstrata.boots.menu import (
    BootMenu,
    InstalledKernel,
    choose_boot,
    choose_boots,
    parse_bootctl,
    parse_grub,
    parse_menu,
    parse_specified,
)
from pgstrata.errors import HostNotFitError
from pgstrata.model.boot import Boot, release_key
from pgstrata.system.boots import BootWay

GRUB = r"""
set default="0"
if [ x"${feature_menuentry_id}" = xy ]; then
  menuentry_id_option="--id"
fi
menuentry 'Debian GNU/Linux' --class debian --class gnu $menuentry_id_option 'gnulinux-simple-0aa1' {
	load_video
	if [ x$grub_platform = xxen ]; then insmod xzio; fi
	linux	/boot/vmlinuz-6.12.48+deb13-amd64 root=UUID=0aa1 ro  quiet
	initrd	/boot/initrd.img-6.12.48+deb13-amd64
}
submenu 'Advanced options for Debian GNU/Linux' $menuentry_id_option 'gnulinux-advanced-0aa1' {
	menuentry 'Debian GNU/Linux, with Linux 6.12.48+deb13-amd64' --class gnu $menuentry_id_option 'gnulinux-6.12.48+deb13-amd64-advanced-0aa1' {
		linux	/boot/vmlinuz-6.12.48+deb13-amd64 root=UUID=0aa1 ro  quiet
	}
	menuentry 'Debian GNU/Linux, with Linux 6.12.48+deb13-amd64 (recovery mode)' $menuentry_id_option 'gnulinux-6.12.48+deb13-amd64-recovery-0aa1' {
		linux	/boot/vmlinuz-6.12.48+deb13-amd64 root=UUID=0aa1 ro single
	}
	menuentry 'Debian GNU/Linux, with Linux 6.1.0-44-amd64' --class gnu $menuentry_id_option 'gnulinux-6.1.0-44-amd64-advanced-0aa1' {
		linux	/boot/vmlinuz-6.1.0-44-amd64 root=UUID=0aa1 ro  quiet
	}
}
menuentry 'UEFI Firmware Settings' $menuentry_id_option 'uefi-firmware' {
	fwsetup
}
"""
KERNELS = tuple(
    InstalledKernel(release=release, image=f"/boot/vmlinuz-{release}", initrd=f"/boot/initrd.img-{release}")
    for release in ("6.1.0-9-amd64", "6.1.0-44-amd64", "6.12.48+deb13-amd64")
)
MENU = BootMenu(
    running="6.12.48+deb13-amd64",
    line="BOOT_IMAGE=/boot/vmlinuz-6.12.48+deb13-amd64 root=UUID=0aa1 ro quiet",
    kernels=KERNELS,
    entries={BootWay.GRUB: parse_grub(GRUB)},
    kexec=True,
)


def choose(kernel="", options=(), menu=MENU, words=()):
    return choose_boot(menu, Boot(kernel=kernel, options=tuple(options)), words={*words, *options}, where="ssh:db1")


def test_entries_of_grub_are_those_within_the_submenu_and_none_for_rescue():
    assert parse_grub(GRUB) == {
        "6.12.48+deb13-amd64": "gnulinux-advanced-0aa1>gnulinux-6.12.48+deb13-amd64-advanced-0aa1",
        "6.1.0-44-amd64": "gnulinux-advanced-0aa1>gnulinux-6.1.0-44-amd64-advanced-0aa1",
    }


@pytest.mark.parametrize("text", ["", "{{{", "}\n}", "menuentry 'x' {\n linux /boot/vmlinuz-6.1\n}", "\0" * 9])
def test_a_menu_that_is_none_has_no_entries(text):
    assert parse_grub(text) == {}


def test_entries_by_the_boot_loader_specification_are_called_by_their_files():
    files = {
        "/boot/loader/entries/abc-6.5.6-300.fc39.x86_64.conf": "title Fedora\nversion 6.5.6-300.fc39.x86_64\nlinux /vmlinuz-6.5.6\n",
        "/boot/loader/entries/abc-0-rescue.conf": "version 0-rescue-abc\nlinux /vmlinuz-0-rescue-abc\n",
        "/boot/loader/entries/other.conf": "linux /boot/vmlinuz-6.7.1\noptions quiet\n",
    }
    assert parse_specified(files) == {"6.5.6-300.fc39.x86_64": "abc-6.5.6-300.fc39.x86_64", "6.7.1": "other"}


def test_entries_of_systemd_boot_are_those_with_a_version():
    text = '[{"type":"type1","id":"debian-6.1.conf","version":"6.1.0-44-amd64"},{"id":"auto-reboot-to-firmware-setup"}]'
    assert parse_bootctl(text) == {"6.1.0-44-amd64": "debian-6.1.conf"}
    assert parse_bootctl("no list") == parse_bootctl("{}") == {}
    assert parse_bootctl("[" * 100_000) == {}


def test_a_menu_is_read_from_what_the_machine_printed():
    menu = parse_menu(
        {
            "running": "6.1.0-44-amd64\n",
            "line": "root=/dev/vda ro\n",
            "files": "/boot/vmlinuz-6.12.48\n/boot/vmlinuz-6.1.0-44-amd64\n/boot/initrd.img-6.1.0-44-amd64\n/boot/vmlinuz-linux\n",
            "programs": "grub-reboot\nkexec\n",
            "kexec_disabled": "0\n",
            "grub": GRUB,
        }
    )
    assert menu.running == "6.1.0-44-amd64"
    assert [(each.release, each.initrd) for each in menu.kernels] == [
        ("6.1.0-44-amd64", "/boot/initrd.img-6.1.0-44-amd64"),
        ("6.12.48", ""),
    ]
    assert list(menu.entries) == [BootWay.GRUB]
    assert menu.kexec


def test_kexec_that_is_disabled_is_no_way():
    assert not parse_menu({"programs": "kexec", "kexec_disabled": "1"}).kexec
    assert not parse_menu({"programs": "kexec"}).kexec


def test_releases_are_in_the_order_of_versions():
    ordered = ["2.6.39", "3.9.1", "3.10.102", "4.7.0-rc1", "4.7.0", "6.1.0-9-amd64", "6.1.0-44-amd64", "6.12.1"]
    shuffled = random.Random(1).sample(ordered, len(ordered))
    assert sorted(shuffled, key=release_key) == ordered


def test_the_newest_of_a_series_is_meant():
    assert choose("6.1").release == "6.1.0-44-amd64"
    assert choose("6.1.0-9-amd64", menu=MENU).release == "6.1.0-9-amd64"
    assert choose("6.12").release == "6.12.48+deb13-amd64"


def test_the_kernel_that_it_starts_by_itself_needs_no_more_than_a_reboot():
    assert choose("6.12").way is choose().way is BootWay.DEFAULT
    assert choose().release == "6.12.48+deb13-amd64"


def test_another_kernel_is_started_once_by_its_entry():
    found = choose("6.1")
    assert found.way is BootWay.GRUB
    assert found.entry == "gnulinux-advanced-0aa1>gnulinux-6.1.0-44-amd64-advanced-0aa1"


def test_one_without_an_entry_is_started_by_kexec():
    found = choose("6.1.0-9-amd64")
    assert found.way is BootWay.KEXEC
    assert (found.image, found.initrd) == ("/boot/vmlinuz-6.1.0-9-amd64", "/boot/initrd.img-6.1.0-9-amd64")
    assert found.line == "root=UUID=0aa1 ro quiet"


def test_words_of_the_command_line_are_given_by_kexec_and_those_of_other_boots_are_unwanted():
    found = choose("6.12", ["mitigations=off"], words=["isolcpus=1"])
    assert found.way is BootWay.KEXEC
    assert found.line == "root=UUID=0aa1 ro quiet mitigations=off"
    assert found.unwanted == ("isolcpus=1",)
    assert found.text == "6.12.48+deb13-amd64 mitigations=off"


def test_words_that_the_default_line_has_are_refused():
    words = Boot(options=("quiet", "mitigations=off"))
    with pytest.raises(HostNotFitError) as caught:
        choose_boots(MENU, (Boot(), words), "ssh:db1")
    assert caught.value.what == "the default command line of ssh:db1 already has quiet"
    assert len(choose_boots(MENU, (Boot(), Boot(options=("mitigations=off",))), "ssh:db1")) == 2


def test_a_kernel_that_is_not_there_is_refused_with_those_that_are():
    with pytest.raises(HostNotFitError, match=r"no kernel 5\.10 is installed") as caught:
        choose("5.10")
    assert "6.1.0-44-amd64" in caught.value.remedy
    with pytest.raises(HostNotFitError) as caught:
        choose("5.10", menu=BootMenu(running="5.4", line=""))
    assert "has no kernel" in caught.value.remedy


def test_without_any_way_it_says_what_would_be_one():
    alone = BootMenu(running="6.12.48+deb13-amd64", line="", kernels=KERNELS)
    with pytest.raises(HostNotFitError, match="cannot be started for one boot only"):
        choose("6.1", menu=alone)
    with pytest.raises(HostNotFitError, match=r"for one boot \(mitigations=off\) needs kexec"):
        choose("", ["mitigations=off"], menu=alone)


def parsed(*, grubenv, programs="grub-reboot"):
    files = "\n".join(f"{each.image}\n{each.initrd}" for each in KERNELS)
    sections = {"running": MENU.running, "line": MENU.line, "files": files, "programs": programs, "grub": GRUB}
    return parse_menu({**sections, "kexec_disabled": "0", "grubenv": grubenv})


@pytest.mark.parametrize(
    "kept", ["btrfs  /dev/sda2[/@/boot]", "zfs bpool/BOOT", "ext4 /dev/mapper/vg-root", "xfs   /dev/md0"]
)
def test_an_entry_that_grub_could_not_take_back_after_one_boot_is_no_way(kept):
    menu = parsed(grubenv=f"{kept}\n")
    assert menu.entries == {}
    with pytest.raises(HostNotFitError, match=r"cannot choose the kernel 6\.1\.0-44-amd64 for one boot only") as caught:
        choose("6.1", menu=menu)
    assert " ".join(kept.split()) in caught.value.what
    assert "install kexec-tools" in caught.value.remedy
    assert choose("6.1", menu=parsed(grubenv=kept, programs="grub-reboot kexec")).way is BootWay.KEXEC
    # the kernel that it starts by itself needs no choice
    assert choose("6.12", menu=menu).way is BootWay.DEFAULT


@pytest.mark.parametrize("kept", ["ext4 /dev/sda1", "vfat /dev/nvme0n1p1", "xfs /dev/vda2", "overlay overlay", ""])
def test_on_plain_partitions_and_where_nothing_is_known_grub_chooses(kept):
    assert choose("6.1", menu=parsed(grubenv=kept)).way is BootWay.GRUB


@pytest.mark.parametrize(
    ("root", "comes_up"),
    [
        ("UUID=0aa1", False), ("LABEL=root", False), ("/dev/mapper/vg-root", False), ("ZFS=rpool/ROOT", False),
        ("/dev/sda1", True), ("PARTUUID=0aa1-02", True), ("", True),
    ],
)  # fmt: skip
def test_a_kernel_that_a_full_disk_left_without_initrd_is_not_started_by_kexec(root, comes_up):
    bare = InstalledKernel(release="6.1.0-9-amd64", image="/boot/vmlinuz-6.1.0-9-amd64")
    menu = BootMenu(running=MENU.running, line=f"root={root} ro" if root else "ro", kernels=(bare,), kexec=True)
    if comes_up:
        assert choose("6.1", menu=menu).initrd == ""
        return
    with pytest.raises(HostNotFitError, match=r"6\.1\.0-9-amd64 has no initrd in /boot") as caught:
        choose("6.1", menu=menu)
    assert root in caught.value.what
    assert "df -h /boot" in caught.value.remedy

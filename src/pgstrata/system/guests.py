"""The root file system of virtual machines: its packages, its own init, and the script that puts it together."""

from __future__ import annotations

from typing import Final

INCLUDED: Final = (
    "openssh-server", "libxml2", "libssl3", "libzstd1", "liblz4-1", "libgssapi-krb5-2", "libreadline8", "tzdata",
    "procps", "util-linux", "kexec-tools", "busybox-static", "kmod",
)  # fmt: skip
HOME: Final = "/srv/pgstrata"
"""Where the data disk is mounted in a guest."""

_INIT: Final = f"""#!/bin/sh
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
mkdir -p /dev/pts /dev/shm
mount -t devpts -o mode=620,gid=5 devpts /dev/pts
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
mount -t tmpfs -o mode=1777 tmpfs /tmp
mount -t tmpfs -o mode=755 tmpfs /run
mount -t cgroup2 cgroup2 /sys/fs/cgroup 2>/dev/null
ln -sf /proc/self/fd /dev/fd
mkdir -p /run/sshd /run/lock
hostname pgstrata-vm
busybox ifconfig lo 127.0.0.1 up
busybox ifconfig eth0 10.0.2.15 netmask 255.255.255.0 up
busybox route add default gw 10.0.2.2
mount -t ext4 -o noatime /dev/vdb {HOME} || echo "pgstrata: cannot start: its data disk is not mounted"
chmod 755 {HOME}
exec busybox init
"""
_INITTAB: Final = f"""::respawn:/usr/sbin/sshd -D
::shutdown:/bin/sync
::shutdown:/bin/umount -f {HOME}
::ctrlaltdel:/sbin/reboot
"""
_SSHD: Final = f"""HostKey /etc/ssh/pgstrata_host
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
UseDNS no
PrintMotd no
PrintLastLog no
Subsystem sftp internal-sftp
SetEnv PGSTRATA_DATA={HOME}/data PGSTRATA_CACHE={HOME}/cache PGSTRATA_STATE={HOME}/state
"""

# The folder is the first argument. It runs as root, or under fakeroot, because files have to belong to root. The image
# holds the guest's host key: from its first byte on nobody else may read it.
ASSEMBLE: Final = f"""set -e
umask 022
cd -- "$1"
mkdir tree
tar -x --numeric-owner --exclude './dev/*' -f root.tar -C tree
cat >tree/sbin/pgstrata-init <<'END'
{_INIT}END
cat >tree/etc/inittab <<'END'
{_INITTAB}END
cat >tree/etc/ssh/sshd_config <<'END'
{_SSHD}END
printf '127.0.0.1 localhost\\n::1 localhost\\n10.0.2.15 pgstrata-vm\\n' >tree/etc/hosts
echo pgstrata-vm >tree/etc/hostname
: >tree/etc/resolv.conf
chmod 755 tree/sbin/pgstrata-init
for name in reboot poweroff halt; do ln -sf /bin/busybox tree/sbin/$name; done
mkdir -p tree/root/.ssh tree{HOME} tree/home/postgres tree/boot
chmod 700 tree/root/.ssh
cat id.pub >tree/root/.ssh/authorized_keys
cp host tree/etc/ssh/pgstrata_host
chmod 600 tree/etc/ssh/pgstrata_host tree/root/.ssh/authorized_keys
chown -R 0:0 tree/root/.ssh tree/etc/ssh/pgstrata_host tree/sbin/pgstrata-init
grep -q ^postgres: tree/etc/passwd || {{
    echo 'postgres:x:901:901::/home/postgres:/bin/sh' >>tree/etc/passwd
    echo 'postgres:x:901:' >>tree/etc/group
    echo 'postgres:*:19000:0:99999:7:::' >>tree/etc/shadow
}}
chown 901:901 tree/home/postgres
sed -i 's/^root:[^:]*:/root:*:/' tree/etc/shadow
for list in boot/*.modules; do
    release=$(basename "$list" .modules)
    mkdir -p tree/usr/lib/modules
    cp -a "$(cat "$list")" tree/usr/lib/modules/
    chown -R 0:0 "tree/usr/lib/modules/$release"
    cp "kernels/$release/vmlinuz" "tree/boot/vmlinuz-$release"
    cp "kernels/$release/initrd.img" "tree/boot/initrd.img-$release"
done
cp -L tree/lib/x86_64-linux-gnu/libc.so.6 libc.so.6
size=$(($(du -sm tree | cut -f1) * 5 / 4 + 256))
chmod 644 libc.so.6
umask 077
mke2fs -q -t ext4 -E root_owner=0:0 -d tree root.img "${{size}}M"
"""

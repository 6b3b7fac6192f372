"""A program that holds a file as QEMU holds the image of a disk, until its input ends."""

# A shared lock of a byte of an image that it only reads.
HOLD = """
import fcntl, os, sys
descriptor = os.open(sys.argv[1], os.O_RDONLY)
fcntl.lockf(descriptor, fcntl.LOCK_SH, 1, 100)
print("held", flush=True)
sys.stdin.read()
"""

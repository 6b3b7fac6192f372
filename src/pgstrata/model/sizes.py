"""The largest inputs that are read: bytes of a file unless a line says otherwise. Larger ones are refused unread."""

from typing import Final

_MIB: Final = 1 << 20

EXPERIMENT_FILE: Final = _MIB
SCRIPT: Final = 4 * _MIB
SCRIPTS: Final = 16 * _MIB
"""All scripts and setup files of an experiment together, each counted once."""
TABLE: Final = 32 * _MIB
"""A table of other tools' results."""
FOREIGN_FILE: Final = 32 * _MIB
"""A file of another tool's results."""
FOREIGN_FILES: Final = 1024 * _MIB
"""All files of an import together."""
FOREIGN_LOG: Final = 256 * 1024
"""The beginning of a log of pgbench that is read for an import."""
PLAN_TEXT: Final = 16 * _MIB
"""Scripts and options in a plan, in characters, counted in each cell and environment that has them."""
FLOOR_FILE: Final = _MIB
"""A noise floor that was kept: some kilobytes."""
FINGERPRINT_FILE: Final = 64 * _MIB
PLAN_FILE: Final = 128 * _MIB
EVIDENCE: Final = 256 * _MIB
"""All files of one run together, packed ones as they are."""
UNPACKED: Final = 512 * _MIB
"""A packed file of a run: an hour of samples has 70 to 360 MB."""
UNPACKED_AT_LEAST: Final = 32 * _MIB
UNPACKED_RATIO: Final = 100
"""Above `UNPACKED_AT_LEAST` it may be so many times as large as it is packed; samples are 7 to 16 times as large."""
HOST_ANSWER: Final = 512 * _MIB
"""A file that is read on a host, or what a command says there: an hour of samples has 70 to 360 MB, a commit of
PostgreSQL, packed, 40 MB."""
PROGRAM: Final = 8 << 30
"""Memory that a process may reserve where it is neither measured nor the load; linking with all optimisations takes
less than half."""
JAVA_HEAP: Final = 512 * _MIB
JAVA_CLASSES: Final = 256 * _MIB
"""Memory of a Java program for its objects and for its classes. Java is told of them and has no limit of `PROGRAM`: the
address space that it reserves grows with the machine, whatever it uses."""
KERNEL_CONFIG: Final = 4 * _MIB
"""The configuration of a kernel: 300 KB where everything is chosen."""
KERNEL_PACKAGE: Final = 512 * _MIB
"""A package of a kernel: 10 to 150 MB."""
KERNEL_MODULE: Final = 64 * _MIB
"""A module of a kernel, unpacked: the largest that are read have 2 MB."""
MARKER: Final = _MIB
LOCK_FILE: Final = 64 * 1024
SKIPPED_FILE: Final = _MIB
"""The levels that a search skipped."""
BUNDLE_MANIFEST: Final = 64 * _MIB
BUNDLE_FILES: Final = 400_000
"""Files of a study in a bundle: a run has about 25."""
BUNDLE_UNPACKED: Final = 16 << 30
"""All files of a bundle together, as they are unpacked."""
BUNDLE_PACKED: Final = BUNDLE_UNPACKED
"""A bundle itself."""
BUNDLE_SIGNATURE: Final = 64 * 1024
BUNDLE_DICTIONARY: Final = 128 * _MIB
"""Memory for unpacking a bundle: one that pgstrata wrote takes 5 MiB."""

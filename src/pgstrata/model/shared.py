"""What a server's host and the client's may have in common although one reaches the other through a network; pure."""

from enum import StrEnum


class SharedResources(StrEnum):
    """What two hosts have in common.

    NOTHING: they are two machines. KERNEL: they are one, as containers with processes of their own are; one capture of
    /proc holds the busy time of both. PROCESSES: they also have one table of processes, so pids mean the same in both.
    """

    NOTHING = ""
    KERNEL = "kernel"
    PROCESSES = "processes"

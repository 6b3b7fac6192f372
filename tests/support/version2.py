"""A host with control groups of version 2 of which only files are known."""

from types import MappingProxyType, SimpleNamespace


class Version2:
    """`own` are files of every host of a test module, `files` those of one of them."""

    name = "remote"
    user = "postgres"
    transport_pids = (77,)
    own = MappingProxyType({})

    def __init__(self, **files):
        self.files = {
            "/proc/self/mountinfo": "27 23 0:24 / /sys/fs/cgroup rw shared:9 - cgroup2 cgroup2 rw\n",
            "/sys/fs/cgroup/cgroup.controllers": "cpuset cpu io memory hugetlb pids rdma misc\n",
            **self.own,
            **files,
        }
        self.ran = []

    def read(self, path):
        return self.files[path].encode()

    def read_files(self, paths):
        return {path: self.files[path].encode() for path in paths if path in self.files}

    def read_matching(self, pattern):
        return b"".join(text.encode() for path, text in self.files.items() if path.endswith(pattern.rpartition("*")[2]))

    def exists(self, path):
        return path in self.files

    def run(self, command, *, check=True):
        self.ran.append(command.argv)
        return SimpleNamespace(code=0, text=self.answer(command.argv), stderr=b"")

    def answer(self, argv):
        """What a command prints."""
        raise NotImplementedError

"""What a host is: kernel, CPU, memory, mounts, block devices; taken once, kept with every run."""

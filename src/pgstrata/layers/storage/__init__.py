"""Storage as a layer: file systems for parts of a server, I/O scheduler and read-ahead, and the devices below."""

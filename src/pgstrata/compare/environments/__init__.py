"""What was seen of hosts, servers and their environments, where that puts a comparison in doubt."""

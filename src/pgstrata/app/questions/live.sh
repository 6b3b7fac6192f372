# Why was a server that is in use slow? No experiment: commands that only read.
#
# Read them, and enter them one by one. Replace "service=prod" by your server: a service of ~/.pg_service.conf, or a
# connection string such as postgresql://watcher@db1/shop. The role must be a member of pg_monitor.

# Record what its sessions do, each second, into the folder prod. Ctrl-C ends it; the same command continues it.
pgstrata watch "service=prod" --archive prod

# Meanwhile, or later: was it slower in these minutes than before, or only busier? Where is the extra load?
pgstrata explain prod --from 10:00 --to 10:15

# Compare with a time that you choose, not with the time before, and write a page with charts.
pgstrata explain prod --from 10:00 --to 10:15 --against 09:00..09:45 --report slow.html

# What did the server do in this hour? This compares nothing.
pgstrata window prod --from 09:00 --to 10:00

# When was it slower than usual? This searches the whole recording.
pgstrata incidents prod

# Which statements waited for this event?
pgstrata window prod --event LWLock/BufferMapping

# Try a change elsewhere first: this drafts a workload from the statements of the server (pg_stat_statements).
pgstrata workload draft "service=prod"

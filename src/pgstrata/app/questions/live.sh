# Why was a server that is in use slow? No experiment: commands that only read.
#
# Read them and give them one by one. "service=prod" stands for your server: a service of pg_service.conf, or
# postgresql://monitor@db1/postgres; a role that is a member of pg_monitor is enough.

# Record what its sessions do, each second, from now on. Ctrl-C ends it; the same command goes on.
pgstrata watch "service=prod" --archive prod

# Meanwhile, or later: was it slower in these minutes than before, or only busier? Where is the extra load?
pgstrata explain prod --from 10:00 --to 10:15

# The same against a window that you choose, as a page with charts.
pgstrata explain prod --from 10:00 --to 10:15 --against 09:00..09:45 --report slow.html

# What the server does in general, without a comparison.
pgstrata window prod --from 09:00 --to 10:00

# Which statements waited for an event?
pgstrata window prod --event LWLock/BufferMapping

# A change that you would make there can be tried elsewhere first: a workload like that of the server.
pgstrata workload draft "service=prod"

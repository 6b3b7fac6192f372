"""What pg_test_fsync and pg_test_timing say of a host: the cost of a flush and of a look at the clock."""

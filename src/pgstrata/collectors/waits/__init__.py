"""What a server itself sampled of its waits, by pg_wait_sampling: looked at now and then while a run is measured."""

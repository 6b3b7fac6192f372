"""What holds for all tests."""

from hypothesis import settings

# The same examples on every machine, so that a change and nothing else decides whether a submission passes;
# --hypothesis-profile=explore looks for new ones.
settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None, max_examples=400)
settings.load_profile("same")

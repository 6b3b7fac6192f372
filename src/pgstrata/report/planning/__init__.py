"""What a plan says before the first run, from the noise floors that are known."""

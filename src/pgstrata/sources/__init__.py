"""Where observations come from: the runs of an experiment, and tables of what others measured.

What belongs here: turning what a source holds into `pgstrata.model.observation`, and refusing what it cannot give.
What does not: reading files (`app`, `store`), and comparing (`pgstrata.compare`).
"""

"""A fixed piece of work of our own, timed before and after the measured window: how fast is the machine now?"""

"""What the adapters of TensorPrimat share: they train as one JSON file says, and write one line for each step.

Nothing here chooses a setting: every number comes from the experiment file, so that each framework trains the same.
"""

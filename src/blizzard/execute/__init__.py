"""Running the units of a batch and merging their outcomes."""

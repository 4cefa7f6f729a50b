"""Run the units of a batch and merge their outcomes."""

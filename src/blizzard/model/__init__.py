"""The values that travel between the stages."""

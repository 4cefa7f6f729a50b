"""The values that travel."""

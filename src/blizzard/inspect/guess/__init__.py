"""What files that nobody has described seem to be."""

"""Source files that are read to take the place of rows which are in the table."""

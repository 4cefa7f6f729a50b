"""Bad lines: written beside the table, and read again."""

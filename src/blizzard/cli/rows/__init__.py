"""Commands that rewrite rows which are in the table."""

"""Commands that rewrite rows of the table: select files, rewrite them, append an entry."""

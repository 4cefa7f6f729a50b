"""Commands that repair a journal or a table directory without rewriting rows."""

"""Commands that set a journal or a table directory right, without rewriting rows."""

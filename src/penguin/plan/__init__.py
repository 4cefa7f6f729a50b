"""Planning a commit: adds, transactions, schema changes, statistics."""

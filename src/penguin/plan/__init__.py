"""What a commit does: adds, transactions, schema changes, statistics."""

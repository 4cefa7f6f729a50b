"""The audit: prove from metadata that a table holds what its journals say."""

"""Read-only inspection: the audit, schema inference and columns."""

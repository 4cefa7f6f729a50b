"""The Delta log; `library`, `snapshot` and `table` are the only door to deltalake."""

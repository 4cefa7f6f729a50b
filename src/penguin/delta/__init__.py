"""The Delta log; its module `table` is the only door to deltalake."""

"""Which source files there are, and which of them are due."""

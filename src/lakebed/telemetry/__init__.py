"""Events, logs, metrics and the health page."""

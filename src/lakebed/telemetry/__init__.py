"""Events, logs, metrics and health."""

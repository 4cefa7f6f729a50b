"""Code says what happened; telemetry decides how it is shown."""

"""What holds for all tests."""

from hypothesis import HealthCheck, settings

# Machines are shared: no test may fail because something else was running.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

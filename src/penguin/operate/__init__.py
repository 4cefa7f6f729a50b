"""An operator's orders: release, discard, replay, forget."""

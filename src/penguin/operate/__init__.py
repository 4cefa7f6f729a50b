"""An operator's commands: release, discard, replay, forget."""

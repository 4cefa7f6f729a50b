"""Read-only views."""

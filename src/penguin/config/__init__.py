"""YAML to settings."""

"""Guess the form and schema of undescribed files."""

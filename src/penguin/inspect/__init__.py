"""Looks, never touches."""

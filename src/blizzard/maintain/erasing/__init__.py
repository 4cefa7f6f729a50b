"""Rows erased by what they hold, and who holds them still."""

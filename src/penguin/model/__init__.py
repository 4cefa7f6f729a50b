"""Plain values that the stages exchange."""

"""A source file: which one, which bytes of it, how it is written."""

"""The commands that look at a table directory or mend it: each reads its arguments and prints."""

"""Small data files, made into fewer."""

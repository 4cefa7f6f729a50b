"""Columns: declared fields, their types in Arrow and Delta, their names and ids in files."""

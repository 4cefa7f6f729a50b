"""Looks at pipelines and tables: what was read once is kept, and a look costs what is new."""

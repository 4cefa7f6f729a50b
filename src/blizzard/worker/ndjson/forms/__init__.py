"""Forms of source files other than lines: documents made into lines, and records left out."""

"""Arguments, wiring, exit codes, and what a person sees."""

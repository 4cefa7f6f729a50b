"""Arguments, wiring, exit codes and output."""

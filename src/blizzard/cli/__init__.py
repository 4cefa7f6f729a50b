"""The command line: arguments, wiring, exit codes and output."""

"""The command line of both programs: options, exit codes, reports as text or JSON, progress."""

"""The run itself and the dry run, with their output."""

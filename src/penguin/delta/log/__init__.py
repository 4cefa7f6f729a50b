"""The objects of a Delta log as they are stored, read without the library."""

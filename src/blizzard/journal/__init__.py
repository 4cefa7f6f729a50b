"""The journal: reading it, appending to it, and who may."""

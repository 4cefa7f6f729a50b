"""YAML files to checked values, shared by both programs."""

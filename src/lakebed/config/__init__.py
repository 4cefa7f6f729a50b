"""The configuration: from YAML files to validated values, shared by both programs."""

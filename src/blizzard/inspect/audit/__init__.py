"""Whether a table holds what its journals say, proved from metadata: views in, differences out."""

"""Export of traces and lineage during a run."""

"""Read-only views: what there is to do, what was done."""

"""Values that pass between the stages."""

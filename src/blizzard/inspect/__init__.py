"""Looks, never touches: what there is to do, what was done."""

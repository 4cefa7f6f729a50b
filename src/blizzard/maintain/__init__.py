"""An operator's orders that write: gc, redo, a new journal."""

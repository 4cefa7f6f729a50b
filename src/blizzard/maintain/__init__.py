"""An operator's commands that write: gc, redo, a new journal."""

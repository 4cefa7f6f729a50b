"""The run itself: every pipeline, the dry run, and what a person sees of both."""

"""How a long list of paths is shown: the first of them by name, the others counted."""

FEW = 10
"""How many of a long list are named."""


def first_of(paths: tuple[str, ...]) -> str:
    """Return the first paths of many, and how many more there are."""
    more = f" and {len(paths) - FEW} more" if len(paths) > FEW else ""
    return f"{', '.join(paths[:FEW])}{more}"

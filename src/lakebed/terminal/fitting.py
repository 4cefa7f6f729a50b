"""Texts that fit into a number of a terminal's cells. Pure."""

from rich.cells import cell_len, set_cell_size


def shortened(text: str, room: int) -> str:
    """Return a text that fits; the middle of a long one is left out: names differ at the end."""
    if cell_len(text) <= room:
        return text
    front = (room - 1) // 2
    back = ""
    for letter in reversed(text):
        if cell_len(letter + back) > room - 1 - front:
            break
        back = letter + back
    return set_cell_size(text, front).rstrip() + "…" + back

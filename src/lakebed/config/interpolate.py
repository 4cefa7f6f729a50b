"""`${VAR}` and `${VAR:-default}` in a text that YAML has already parsed. Pure.

What a variable holds is only ever text: it can neither add keys nor change the shape of a document,
and it is not looked into again.
"""

import re
from collections.abc import Mapping

OPENING = re.compile(
    r"(?P<escape>\$\$\{)|\$\{(?:(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^}]*))?\})?"
)


def interpolate(text: str, environment: Mapping[str, str]) -> str:
    """Fill in the variables of a text; a ValueError says which one is wrong, never its value.

    As in a shell, `:-` gives its default to a variable that is unset or empty. `$${` stands for
    `${` itself.
    """

    def fill(found: re.Match[str]) -> str:
        if found["escape"]:
            return "${"
        name, default = found["name"], found["default"]
        if name is None:
            raise ValueError(
                "`${` does not start a variable; write ${NAME}, ${NAME:-default} or $${"
            )
        value = environment.get(name)
        if default is not None:
            return value or default
        if value is None:
            raise ValueError(f"the environment variable {name} is not set, and has no default")
        return value

    return OPENING.sub(fill, text)

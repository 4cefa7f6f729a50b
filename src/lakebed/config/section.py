"""What every section of a configuration is made of."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, model_validator

from lakebed.units import mebibytes

Settings = TypeVar("Settings")


def _boolean(value: object) -> object:
    """Take true and false, also as text; nothing else."""
    known = {"true": True, "false": False}
    if str(value).lower() not in known:
        raise ValueError("must be true or false")
    return known[str(value).lower()]


Text = Annotated[str, Field(min_length=1)]
Flag = Annotated[bool, BeforeValidator(_boolean)]


class Section(BaseModel):
    """A closed section: an unknown key is a fault. A key without a value counts as not given."""

    # Built with the first document that is read: a section that is part of others would otherwise
    # be built again for each of them.
    model_config = ConfigDict(
        extra="forbid", frozen=True, hide_input_in_errors=True, defer_build=True
    )

    located: ClassVar[tuple[str, str] | None] = None
    """Its key of storage options, and what has the location that they are for, if there are any."""

    @model_validator(mode="before")
    @classmethod
    def _drop_empty_keys(cls, value: Any) -> Any:  # noqa: ANN401 - any YAML value
        if not isinstance(value, Mapping):
            return value
        known = cls.attributes()
        return {key: item for key, item in value.items() if item is not None or key not in known}

    @classmethod
    def attributes(cls) -> dict[str, str]:
        """Return the attribute of each key, by the key as it is written in YAML."""
        return {field.alias or name: name for name, field in cls.model_fields.items()}


def settings_of(kind: type[Settings], section: Section, **given: Any) -> Settings:  # noqa: ANN401 - any field
    """Make settings of a section; a field that is not `given` takes the key of its name.

    `x_secs` and `x_bytes` are keys of the field `x`, too, and so is `x_mb`, which becomes bytes.
    Lists become tuples, and secrets plain.
    """
    for field in fields(kind):  # type: ignore[arg-type]
        for unit in ("", "_secs", "_bytes", "_mb"):
            key = f"{field.name}{unit}"
            if field.name not in given and key in type(section).model_fields:
                value = getattr(section, key)
                given[field.name] = mebibytes(value) if unit == "_mb" else _plain(value)
    return kind(**given)


def _plain(value: Any) -> Any:  # noqa: ANN401 - any value of a section
    match value:
        case SecretStr():
            return value.get_secret_value()
        case dict():
            return {name: _plain(each) for name, each in value.items()}
        case list():
            return tuple(value)
    return value

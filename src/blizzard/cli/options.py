"""The options that the commands share, without anything that a list of commands does not need."""

from typing import Annotated

import typer

from lakebed.terminal.completion import names_in

One = Annotated[
    str | None,
    typer.Option(
        "-p",
        "--pipeline",
        metavar="NAME",
        help="Only this pipeline.",
        autocompletion=names_in("pipelines"),
    ),
]

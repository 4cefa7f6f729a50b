"""The program: `penguin`, or `python -m penguin`."""

import gc


def main() -> None:
    """Run the program."""
    gc.disable()  # Nothing that is imported is garbage; `run_program` enables it again.
    from penguin.cli.app import main as run  # noqa: PLC0415

    run()


if __name__ == "__main__":
    main()

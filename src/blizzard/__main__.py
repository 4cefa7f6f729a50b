"""The program: `blizzard`, or `python -m blizzard`."""

import gc


def main() -> None:
    """Run the program."""
    gc.disable()  # Nothing that is imported is garbage; `run_program` enables it again.
    from blizzard.cli.app import main as run  # noqa: PLC0415

    run()


if __name__ == "__main__":
    main()

"""The `dragoman` command."""


def main() -> None:
    """What the console script calls. Imports late, so that `import dragoman.cli` costs nothing."""
    from dragoman.cli.command import dragoman

    dragoman(prog_name="dragoman")

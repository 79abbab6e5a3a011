"""`dragoman` and its subcommands. Each subcommand is imported when it runs, so that none pays for the others."""

from importlib import import_module

import click

from dragoman import __version__

SUBCOMMANDS = {
    "auth": ("dragoman.cli.auth", "Make tokens for callers, and the hashes their file holds."),
    "card": ("dragoman.cli.card", "Make keys, sign agent cards and check their signatures."),
    "config": ("dragoman.cli.config", "Show the settings in effect and where each came from."),
    "push": ("dragoman.cli.push", "Webhooks that could not be delivered: list, show, resend."),
    "serve": ("dragoman.cli.serve", "Serve an agent: module:attribute, file.py or file.py:attribute."),
}


class Subcommands(click.Group):
    """Knows its commands by name and one line; loads the one that is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(SUBCOMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in SUBCOMMANDS:
            return None
        command: click.Command = import_module(SUBCOMMANDS[cmd_name][0]).command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, SUBCOMMANDS[name][1]) for name in self.list_commands(ctx)])


@click.command(cls=Subcommands, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="dragoman", message="%(prog)s %(version)s")
@click.pass_context
def dragoman(ctx: click.Context) -> None:
    """Serve agents over the Agent2Agent protocol: any client, any dialect of A2A, nothing lost.

    Alone, it starts the demo agent and prints what to try.
    """
    if ctx.invoked_subcommand is None:
        serve = Subcommands.get_command(ctx.command, ctx, "serve")  # pyright: ignore[reportArgumentType]
        assert serve is not None
        ctx.invoke(serve)

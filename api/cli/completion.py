"""The command that prints a completion script for a shell, made from the tree of commands."""

from typing import Literal

from api.cli.main import app
from api.cli.plain import write

Shell = Literal["bash", "zsh", "fish"]


def completion(shell: Shell, /) -> None:
    """
    Parameters
    ----------
    shell
        The shell that completes.
    """
    write(app.generate_completion(shell=shell))

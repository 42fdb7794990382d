"""``./tfb completion SHELL``: what makes a shell complete verbs, flags, and names by asking ./tfb itself."""

from typing import Annotated, Literal

from cyclopts import Parameter

from harness.errors import Exit


def command(shell: Annotated[Literal["bash", "zsh", "fish"], Parameter(help="whose function is printed")], /) -> int:
    """Print the shell's function, for ./tfb and for tfb on PATH.

    bash: eval "$(./tfb completion bash)" in ~/.bashrc; zsh: the same with zsh, after compinit;
    fish: ./tfb completion fish > ~/.config/fish/conf.d/tfb.fish
    """
    from harness.cli.verbs import application

    print(application().generate_completion(prog_name="tfb", shell=shell))
    return Exit.OK

"""What a shell completes: names that come with benchctl, runs, and files beside them.

click knows the shells; bash and fish get scripts of our own, because click's for bash forgets the
names where there are files too, and its for fish cuts a description at its first comma.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    add_completion_class,
    get_completion_class,
)

VARIABLE = "_BENCHCTL_COMPLETE"
_PROGRAM = "benchctl"


@add_completion_class
class _Bash(BashComplete):
    source_template = """\
%(complete_func)s() {
    local IFS=$'\\n' type value word=${COMP_WORDS[COMP_CWORD]}
    COMPREPLY=()
    while IFS=, read -r type value; do
        case $type in
            plain) COMPREPLY+=("$value") ;;
            file)
                ((${#COMPREPLY[@]})) || compopt -o filenames
                mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- "$word") ;;
        esac
    done < <(COMP_WORDS="${COMP_WORDS[*]}" COMP_CWORD=$COMP_CWORD \\
        %(complete_var)s=bash_complete "$1")
}
complete -o nosort -F %(complete_func)s %(prog_name)s
"""


@add_completion_class
class _Fish(FishComplete):
    source_template = """\
function %(complete_func)s
    for line in (COMP_WORDS=(commandline -cp | string collect) COMP_CWORD=(commandline -t) \\
            %(complete_var)s=fish_complete %(prog_name)s)
        set -l found (string split --max 1 , -- $line)
        switch $found[1]
            case file
                __fish_complete_path $found[2]
            case plain
                echo $found[2]
        end
    end
end
complete --no-files --command %(prog_name)s --arguments '(%(complete_func)s)'
"""


def script(command: click.Command, shell: str) -> str:
    """Return what lets a shell complete the command."""
    completion = get_completion_class(shell)
    assert completion is not None
    return completion(command, {}, _PROGRAM, VARIABLE).source()


def profiles(_: click.Context, __: click.Parameter, word: str) -> list[CompletionItem[str]]:
    """Return the profiles that come with benchctl, and files."""
    from benchctl.profile.load import shipped_profiles

    return _names_and_files(shipped_profiles(), word)


def topologies(_: click.Context, __: click.Parameter, word: str) -> list[CompletionItem[str]]:
    """Return the topologies that come with benchctl, and files."""
    from benchctl.profile.load import shipped_topologies

    return _names_and_files(shipped_topologies(), word)


def runs(_: click.Context, __: click.Parameter, word: str) -> list[str]:
    """Return the names of the runs of the store."""
    from benchctl.store.database import default_path
    from benchctl.store.read import Reader

    path = default_path()
    if not path.exists():
        return []
    with closing(Reader(path)) as reader:
        return [run.name for run in reader.runs() if run.name.startswith(word)]


def _names_and_files(names: Iterable[str], word: str) -> list[CompletionItem[str]]:
    found = [CompletionItem(name) for name in names if name.startswith(word)]
    return [*found, CompletionItem(word, type="file")]

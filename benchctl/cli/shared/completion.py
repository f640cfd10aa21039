"""Shell completion: bundled names, runs, and files.

typer finds the words. The scripts are ours, because typer's drop the names if there are files too.
All three read typer's answers for bash, one per line: a word, or a word, a tab and its description.
A slash as the description stands for the files whose names start with the word.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any

from typer import Context
from typer.completion import get_completion_inspect_parameters

from benchctl.errors import BenchctlError

if TYPE_CHECKING:
    from benchctl.profile.load import Document
    from benchctl.run.record import Run
    from benchctl.store.read import Reader

_BASH = """\
_benchctl_completion() {
    local IFS=$'\\n' line word=${COMP_WORDS[COMP_CWORD]} part joined before
    local -a words
    COMPREPLY=()
    # bash takes KEY=VALUE, and what has a colon, for several words.
    for part in "${COMP_WORDS[@]:0:COMP_CWORD+1}"; do
        if ((${#words[@]})) && [[ $joined || $part == [=:]* ]]; then
            words[-1]+=$part
        else
            words+=("$part")
        fi
        [[ $part == *[=:] ]] && joined=1 || joined=
    done
    before=${words[-1]%"${words[-1]##*[=:]}"}
    while read -r line; do
        case $line in
            *$'\\t/')
                ((${#COMPREPLY[@]})) || compopt -o filenames
                mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- "$word") ;;
            ?*) line=${line%%$'\\t'*} COMPREPLY+=("${line#"$before"}") ;;
        esac
    done < <(COMP_WORDS="${words[*]}" COMP_CWORD=$((${#words[@]} - 1)) \\
        _BENCHCTL_COMPLETE=complete_bash "$1")
}
complete -o nosort -F _benchctl_completion benchctl
"""
_ZSH = """\
#compdef benchctl

_benchctl_completion() {
    local line
    local -a plain described
    while IFS= read -r line; do
        case $line in
            *$'\\t/') _path_files -f ;;
            *$'\\t'*) described+=("${${line%%$'\\t'*}//:/\\\\:}:${line#*$'\\t'}") ;;
            ?*) plain+=("$line") ;;
        esac
    done < <(COMP_WORDS="${words[*]}" COMP_CWORD=$((CURRENT - 1)) \\
        _BENCHCTL_COMPLETE=complete_bash $words[1])
    (($#described)) && _describe -V unsorted described -U
    (($#plain)) && compadd -U -V unsorted -a plain
}

if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    _benchctl_completion "$@"
else
    compdef _benchctl_completion benchctl
fi
"""
_FISH = """\
function _benchctl_completion
    for line in (COMP_WORDS=(commandline -cp | string collect) \\
            COMP_CWORD=(count (commandline -opc)) _BENCHCTL_COMPLETE=complete_bash benchctl)
        set -l found (string split --max 1 \\t -- $line)
        if test "$found[2]" = /
            __fish_complete_path $found[1]
        else if test -n "$line"
            echo $line
        end
    end
end
complete --no-files --command benchctl --arguments '(_benchctl_completion)'
"""
SCRIPTS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}


def prepare() -> None:
    """Let typer answer the shells, which it does only if its own options for that exist."""
    get_completion_inspect_parameters()


def describe(items: list[Any]) -> list[Any]:
    """Put the descriptions of typer's items beside their words, where every shell finds them."""
    for item in items:
        item.value = f"{item.value}\t{item.help}"
    return items


def files(incomplete: str) -> list[str]:
    """Return the placeholder for files."""
    return [f"{incomplete}\t/"]


def profiles(incomplete: str) -> list[str]:
    """Return the bundled profiles, and files."""
    from benchctl.profile.find import shipped_profiles

    return [*shipped_profiles(), *files(incomplete)]


def topologies(incomplete: str) -> list[str]:
    """Return the bundled topologies, and files."""
    from benchctl.profile.find import shipped_topologies

    return [*shipped_topologies(), *files(incomplete)]


def labs(incomplete: str) -> list[str]:
    """Return what ``--lab`` takes: topologies, and none."""
    from benchctl.profile.find import NO_LAB

    return [NO_LAB, *topologies(incomplete)]


def hosts(context: Context) -> list[str]:
    """Return the hosts of the topology that was named before."""
    from benchctl.lab.topology.topology import load_topology
    from benchctl.plan.network import names_of
    from benchctl.profile.find import find_topology

    with suppress(BenchctlError):
        return sorted(names_of(load_topology(find_topology(context.params["topology"]))))
    return []


def values(context: Context) -> list[str]:
    """Return the values of the axes of the profile that was named before: ``pair=paris:tokyo``."""
    return _of_profile(context, _values_of)


def settings_of_profile(context: Context) -> list[str]:
    """Return what --set takes that is known: values of the axes, and ends of the flows."""
    return _of_profile(context, lambda document: [*_values_of(document), *_ends_of(document)])


def _values_of(document: Document) -> list[str]:
    from benchctl.plan.matrix import build_matrix
    from benchctl.profile.values import as_text

    found = (f"{value.axis}={as_text(value.shown)}" for value in build_matrix(document).values())
    return [*dict.fromkeys(found)]


def _ends_of(document: Document) -> list[str]:
    from benchctl.run.planned import LOCAL

    model = document.model
    hosts = [*dict.fromkeys((LOCAL.name, *model.hosts))]
    ends = {"from": hosts, "to": [*model.servers, *hosts]}
    flows = (f"flows.{flow}" for flow in model.flows)
    return [
        f"{flow}.{end}={name}" for flow in flows for end, names in ends.items() for name in names
    ]


def _of_profile(context: Context, offered: Callable[[Document], list[str]]) -> list[str]:
    from benchctl.profile.load import load_profile

    # Beside an option that still lacks its value, arguments are not told apart.
    profile = context.params.get("profile") or next(iter(context.args), "")
    if profile and profile != "-":  # what comes from stdin was not typed yet
        with suppress(BenchctlError):
            return offered(load_profile(profile))
    return []


def emulators() -> list[str]:
    """Return what may emulate links."""
    from benchctl.lab.topology.model import Emulator

    return [*Emulator]


def screens() -> list[str]:
    """Return the names of the screens."""
    from benchctl.tui.registry import SCREENS

    return [*SCREENS]


def themes() -> list[str]:
    """Return the names of the screens' themes."""
    from benchctl.tui.preferences import themes

    return themes()


def backends() -> list[str]:
    """Return the names of all backends."""
    from benchctl.backends import installed

    return sorted(installed().candidates)


def formats() -> list[str]:
    """Return the formats that a run is written in."""
    from benchctl.report.output.formats import names

    return names()


def kinds() -> list[str]:
    """Return the kinds of files that can be imported."""
    from benchctl.imports.kinds import find_kinds
    from benchctl.imports.stores import STORE

    return [*find_kinds().known, STORE]


def servers() -> list[str]:
    """Return the backends whose servers benchctl can start."""
    from benchctl.backends import installed

    found, registry = [], installed()
    for name in sorted(registry.candidates):
        with suppress(BenchctlError):  # one that cannot be imported is left out
            found += [name] * registry.load(name).capabilities.needs_server
    return found


def metrics() -> list[str]:
    """Return the metrics that all backends share."""
    from benchctl.metrics import METRICS, OF_TRIALS

    return [*METRICS, *OF_TRIALS]


def runs() -> list[str]:
    """Return the names of the runs of the store, and their tags."""
    return [*_stored(lambda reader: [*reader.names()]), *tags()]


def axes_of_run(context: Context) -> list[str]:
    """Return the axes of the run that the command line names, and repeat."""
    return _of_run(context, lambda _, run: [*run.values, "repeat"])


def x_of_run(context: Context) -> list[str]:
    """Return what can be the x-axis of a figure of the run that the command line names."""
    return _of_run(context, lambda _, run: [*run.values, "time"])


def metrics_of_run(context: Context) -> list[str]:
    """Return the metrics that were measured in the run that the command line names."""
    from benchctl.report.report import read_report

    def measured(reader: Reader, run: Run) -> list[str]:
        return [*dict.fromkeys(row.metric for row in read_report(reader, run).summary)]

    return _of_run(context, measured)


def _of_run(context: Context, offered: Callable[[Reader, Run], list[str]]) -> list[str]:
    """Return what is told of the run of a command; nothing of one that is not there."""
    name = context.params.get("name") or "last"
    with suppress(BenchctlError):
        return _stored(lambda reader: offered(reader, reader.find(name)))
    return []


def profiles_and_runs(incomplete: str) -> list[str]:
    """Return what the screens show: profiles, runs, and files."""
    return [*runs(), *profiles(incomplete)]


def measured_profiles() -> list[str]:
    """Return the profiles that runs of the store have."""
    return _stored(lambda reader: sorted({run.profile for run in reader.outlines()}))


def tags() -> list[str]:
    """Return the tags of the runs of the store."""
    return _stored(lambda reader: sorted({tag for run in reader.outlines() for tag in run.tags}))


def schedules() -> list[str]:
    """Return the names of the store's schedules."""
    from benchctl.schedule.book import Book
    from benchctl.settings import settings

    return [*Book(settings()["store"]).schedules()]


def _stored(names: Callable[[Reader], list[str]]) -> list[str]:
    from benchctl.settings import settings
    from benchctl.store.read import Reader

    path = settings()["store"]
    if not path.exists():
        return []
    with closing(Reader(path)) as reader:
        return names(reader)

"""What the plain shells on a host without Python run: one answers us, each other runs a command.

They need a POSIX shell: tried with dash, bash and that of BusyBox. Each ends its process group when
its input closes, and when nothing came for the patience of its host: a second process counts the
time, and starts again at each word of ours.
"""

from __future__ import annotations

import math
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchctl.hosts.sent import port_check as door
from benchctl.hosts.sent.frames import HELLO
from benchctl.hosts.ssh.programs import as_sent
from benchctl.hosts.ssh.remote import NOT_STARTED

# A shell counts the time by programs that sleep, each a process.
_TICK_S = 2
_NEEDED = ("date", "grep", "ln", "ls", "rm", "sleep")
# What benchctl itself starts there, for people.
_OURS = {Path(str(door.__file__)).name: "a try of ports"}
_HELLO = HELLO.decode().replace("\0", r"\000").replace("\n", r"\n")

# The shell outlives the signals to its group, which are for the tool: in that, what was trapped is
# not. $t is the process that counts the time; $leave is what it does before the end.
_WATCH = rf"""
exec 3<&0 </dev/null 2>/dev/null
trap : HUP INT QUIT TERM
(
trap "" HUP INT QUIT TERM
trap ticks=0 USR1
printf "$hello"
exec 3<&- 4>&- >/dev/null
ticks=0
while [ $ticks -lt $most_ticks ]; do sleep {_TICK_S}; ticks=$((ticks+1)); done
$leave
kill -KILL -$$
) & t=$!
"""

# The lock is a link that leads nowhere, "PID:WHO", so it is there at once, with its content. One
# whose process has ended is removed.
_KEEPER = rf"""
hello="{_HELLO}" leave=leave
for program in {" ".join(_NEEDED)}; do
command -v $program >/dev/null || {{ echo "it has no program $program in its PATH" >&2; exit 1; }}
done
holder() {{ held=$(ls -l "$lock"); held=${{held#* -> }}; }}
leave() {{ holder; case $held in $$:*) rm -f "$lock";; esac; }}
take() {{
for try in 1 2 3; do
[ -d "$lock" ] || {{ ln -s "$$:$1" "$lock" && return; }}
holder
case $held in
$$:*) return;;
[0-9]*:*)
case $(kill -0 ${{held%%:*}} 2>&1) in
*[Nn]"o such process"*) rm -f "$lock";;
*) echo "${{held#*:}}"; return;;
esac
esac
done
[ -e "$lock" ] || [ -L "$lock" ] || {{ echo "nothing can be written in ${{lock%/*}}"; return 1; }}
echo "another run, or one that was killed and left $lock"
}}
{_WATCH}
while read -r tag question <&3; do
kill -USR1 $t
said=$(eval "$question")
printf "%s %s\n%s\000" "$tag" $? "$said"
done
leave
kill -KILL -$$
"""

_GATE = rf"""
printf "{_HELLO}" >&2
exec 4>&2
hello="{_HELLO}$$\n" leave=
{_WATCH}
while :; do
read -r word <&3 || kill -KILL -$$
case $word in go) break;; beat) kill -USR1 $t;; *) kill -KILL -$$;; esac
done
(
trap "" HUP INT QUIT TERM
exec >/dev/null 4>&-
while read -r word <&3; do
case $word in beat) kill -USR1 $t;; *) kill -$word -$$;; esac
done
kill -KILL -$$
) & w=$!
"""

# What still holds the output of a tool that has ended is given as long as elsewhere (DRAIN_S).
_END = r"""
code=$?
(trap "" HUP INT QUIT TERM; sleep 1; kill -KILL -$$) 3<&- 4>&- >/dev/null &
kill -KILL $w $t
exit $code
"""


def _line(script: str) -> bytes:
    """Return a script as one line that ``sh`` evaluates."""
    quoted = shlex.quote(script).replace("\n", "'\"$n\"'")
    return f"n=$(printf '\\nx'); n=${{n%x}}; eval {quoted}\n".encode()


def _ticks(patience_s: float) -> str:
    return f"most_ticks={math.ceil(patience_s / _TICK_S)}\n"


def gated(argv: Sequence[str], env: Mapping[str, str], patience_s: float) -> bytes:
    """Return what brings a command to its gate; it ends after a silence of ``patience_s``."""
    missing = ""
    if argv[0] == sys.executable:
        words = (word for word in as_sent(argv)[1:] if not word.startswith("-"))
        name = next(words, "this")
        missing = (
            f"{_OURS.get(name, name)} needs Python 3.9 or newer there, which this host does not "
            "have"
        )
        if name not in _OURS:
            missing += "; a program that is installed there needs none, as iperf3"
    known = "false" if missing else f"command -v {shlex.quote(argv[0])} >/dev/null"
    missing = shlex.quote(missing or f"no program {argv[0]} in the PATH")
    exports = (f"export {name}={shlex.quote(value)}\n" for name, value in env.items())
    return _line(
        f"{_ticks(patience_s)}{_GATE}export LC_ALL=C\n{''.join(exports)}"
        f"if {known}; then {shlex.join(argv)} 2>&4 3<&- 4>&-\n"
        f"else echo {missing} >&4; (exit {NOT_STARTED}); fi{_END}"
    )


def keeper(lock: str, patience_s: float) -> bytes:
    """Return what makes a shell answer our questions; ``lock`` names the lock of the host.

    It ends after a silence of ``patience_s``.
    """
    return _line(f"{_ticks(patience_s)}lock=/tmp/{lock}.lock\n{_KEEPER}")

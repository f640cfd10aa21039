"""``benchctl backends``: what can be used here, and the commands for those who write a backend."""

from benchctl.cli.commands.backends.check import check
from benchctl.cli.commands.backends.listing import list_backends
from benchctl.cli.commands.backends.new import new
from benchctl.cli.commands.backends.record import record
from benchctl.cli.shared.command import PlainCommand, group

backends = group(
    "List the backends; for those that cannot be used here, say why.\n\n"
    "Its commands are for authors of backends.",
    list_backends,
)
for command in (new, check, record):
    backends.command(cls=PlainCommand)(command)

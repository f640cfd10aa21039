"""Connections to agents over a plain pipe, as they are over SSH."""

import asyncio
import os
import select
import sys

from waiting import COMMAND_S, DEADLINE_S

from benchctl.hosts.ssh import ssh
from benchctl.hosts.ssh.remote import RemoteHost
from benchctl.run.planned import SshTarget

REACH = SshTarget("far")


def booted(python=sys.executable):
    """Return the command that a host would run."""
    return (python, "-I", "-S", "-c", ssh.BOOT)


def linked(main, python=sys.executable, argv=None, lock=None, **settings):
    """Run ``main(link)`` on an open connection; returns what it returns."""
    settings["lock"] = lock or f"benchctl-test-{os.getpid()}"
    # Its end would be that of a machine that stands still.
    settings.setdefault("patience_s", DEADLINE_S)

    async def wrapped():
        link = RemoteHost("far", argv or booted(python), REACH, settings)
        try:
            async with asyncio.timeout(COMMAND_S):
                await link.open()
                return await main(link)
        finally:
            await link.close()

    return asyncio.run(wrapped())


async def started(link, *argv, env=None, at=None):
    """Start a command and open its gate; returns it and its output."""
    output = []
    process = await link.start(
        argv, env or {}, lambda channel, data: output.append((channel, data))
    )
    process.begin(at)
    return process, output


def has_ended(pid):
    """Wait until a process that need not be our child has ended; False if it does not."""
    try:
        watch = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        poll = select.poll()
        poll.register(watch)
        return bool(poll.poll(1000 * DEADLINE_S))
    finally:
        os.close(watch)

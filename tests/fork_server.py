"""Runs benchctl's command line again and again, each time in a fork of one process.

Importing everything takes most of a short command's time; here it is done once. As a program it
takes requests from the socket that is its stdin. With each come the streams of a command, and a
socket that hears of its process and of its end. A runner that a command starts is a fork, too.
"""

import atexit
import gc
import json
import os
import select
import selectors
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import traceback
from contextlib import suppress
from importlib.metadata import entry_points
from pathlib import Path

from waiting import COMMAND_S, LOOK_S

_MOST_BYTES = 1 << 17
_UCRED = struct.Struct("iII")  # unix(7)


class ForkServer:
    """The program, seen from the tests; a context manager.

    ``words`` come before it, such as those that enter a host of a lab.
    """

    def __init__(self, words=()):
        self._words = words

    def __enter__(self):
        self._requests, theirs = _pair()
        with theirs:
            self._process = subprocess.Popen(
                [*self._words, sys.executable, __file__], stdin=theirs, start_new_session=True
            )
        self.pids = self._process.pid, _sender(self._requests)
        return self

    def __exit__(self, *exception):
        self._requests.close()
        self._process.wait()

    def start(self, argv, directory, environment, *, stdin="", merged=False):
        """Start a command in a session of its own; ``stdin`` is what it reads.

        Returns its `Forked`. With ``merged``, stdout and stderr are both in the former.
        """
        request = {"argv": argv, "directory": str(directory), "environment": environment}
        told, telling = _pair()
        (given, to_give), (out, to_out), (err, to_err) = (os.pipe() for _ in range(3))
        os.write(to_give, stdin.encode())  # a pipe has room for it
        os.close(to_give)
        streams = given, to_out, to_out if merged else to_err
        with telling:
            words = json.dumps(request).encode()
            socket.send_fds(self._requests, [words], [*streams, telling.fileno()])
        for end in (given, to_out, to_err):
            os.close(end)
        return Forked(told, os.fdopen(out), os.fdopen(err))

    def run(self, argv, directory, environment, **options):
        """Run a command to its end, which is forced after some minutes; for options see `start`.

        Returns a ``CompletedProcess``.
        """
        with self.start(argv, directory, environment, **options) as process:
            texts = process.communicate()
            return subprocess.CompletedProcess(argv, process.wait(), *texts)


class Forked:
    """A command that was started, as a Popen; a context manager that kills it at the end."""

    def __init__(self, told, stdout, stderr):
        self._told, self.stdout, self.stderr, self.returncode = told, stdout, stderr, None
        self.pid = _sender(told)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.kill()
        self.wait()
        self._told.close()
        self.stdout.close()
        self.stderr.close()

    def poll(self):
        if self.returncode is None and select.select([self._told], [], [], 0)[0]:
            self.wait()
        return self.returncode

    def wait(self):
        if self.returncode is None:
            # Nothing comes if the server was killed with all that it has started.
            self.returncode = int(self._told.recv(16) or -signal.SIGKILL)
        return self.returncode

    def send_signal(self, number):
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self):
        self.send_signal(signal.SIGKILL)

    def communicate(self):
        """Return all that it prints, on stdout and on stderr; after some minutes it is killed."""
        end_s = time.monotonic() + COMMAND_S
        texts = dict.fromkeys((self.stdout, self.stderr), b"")
        with selectors.DefaultSelector() as selector:
            for pipe in texts:
                selector.register(pipe, selectors.EVENT_READ)
            while selector.get_map():
                ready = selector.select(max(0.0, end_s - time.monotonic()))
                if not ready:
                    self.kill()
                    break
                for key, _ in ready:
                    if data := os.read(key.fd, 1 << 16):
                        texts[key.fileobj] += data
                    else:
                        selector.unregister(key.fileobj)
        return [text.decode("utf-8", "replace") for text in texts.values()]


def _pair():
    """Return two ends of a connection, of which the first hears who sends."""
    ends = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ends[0].setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
    return ends


def _sender(end):
    """Return the process that sends a message, also one that has another number where it runs."""
    _, [(_, _, sender)], *_ = end.recvmsg(1, socket.CMSG_SPACE(_UCRED.size))
    return _UCRED.unpack(sender)[0]


# Commands that start a runner.
MEASURING = {"quick", "resume", "run"}


class _Spare:
    """A process that waits to be the runner of a command, whose child it is.

    It is made before the command opens a store: what SQLite knows of locks must not be forked.
    """

    def __init__(self):
        from benchctl.engine.runner.signals import SIGNALS

        self._out, requests = socket.socketpair()
        self._pid = os.fork()
        if not self._pid:
            signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
            self._out.close()
            try:
                code = _measure(requests)
            except BaseException:
                traceback.print_exc()
                code = 70
            os._exit(code)
        requests.close()

    def take_the_place_of_runners(self):
        """Let this process measure where the command would start another interpreter."""
        import benchctl.engine.runner.launch

        benchctl.engine.runner.launch._start = self._start

    def _start(self, store, run_id, stdin, stderr, no_wait):
        ours = None
        with Path(os.devnull).open("r+b") as nothing:
            given = nothing.fileno()
            if stdin == subprocess.PIPE:
                given, ours = os.pipe()
            told = nothing if stderr == subprocess.DEVNULL else stderr
            socket.send_fds(self._out, [b" "], [given, nothing.fileno(), told.fileno()])
        if ours is not None:
            os.close(given)
        words = [os.fspath(store.resolve()), str(run_id), *["--no-wait"] * no_wait]
        request = {"words": words, "environment": dict(os.environ)}
        self._out.sendall(json.dumps(request).encode())
        self._out.close()
        return _Started(self._pid, None if ours is None else os.fdopen(ours, "wb"))


class _Started:
    """What `benchctl.engine.runner.launch` needs of the Popen of a process that was forked."""

    def __init__(self, pid, stdin):
        self.pid, self.stdin, self.returncode = pid, stdin, None

    def poll(self):
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.returncode = os.waitstatus_to_exitcode(status) if pid else None
        return self.returncode

    def wait(self, timeout=COMMAND_S):
        end_s = time.monotonic() + timeout
        while self.poll() is None:
            if time.monotonic() >= end_s:
                raise subprocess.TimeoutExpired("runner", timeout)
            time.sleep(LOOK_S)
        return self.returncode

    def send_signal(self, number):
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self):
        self.send_signal(signal.SIGKILL)


def _measure(requests):
    """Wait for the request to be a runner, and be it; returns its exit code."""
    from benchctl.engine.__main__ import main

    data, files, *_ = socket.recv_fds(requests, 1, 3)
    if not data:
        return 0  # the command needed none
    with requests, requests.makefile() as file:
        request = json.load(file)
    os.setsid()
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.argv[1:] = request["words"]
    code = main()
    sys.stderr.flush()
    return code


def _fork(main, request, files):
    """Start a command, on its streams; returns its process."""
    if pid := os.fork():
        return pid
    os.setsid()
    *streams, telling = files
    os.write(telling, b" ")
    for number, file in enumerate(streams):
        os.dup2(file, number)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    os.chdir(request["directory"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.argv = request["argv"]
    if MEASURING.intersection(sys.argv):
        _Spare().take_the_place_of_runners()
    _be(main)
    return None


def _be(main):
    """Be a command, and end as an interpreter does, but forget nothing that is imported.

    That takes longer than most commands: a fork would have to copy it first.
    """
    code = 1
    try:
        main()
        code = 0
    except SystemExit as end:
        code = end.code
    except BaseException:
        traceback.print_exc()
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _serve():
    requests = socket.socket(fileno=0)
    requests.send(b" ")
    os.environ["PYDANTIC_DISABLE_PLUGINS"] = "__all__"
    # What the commands import only when they run.
    import benchctl.cli.commands.run
    import benchctl.cli.main
    import benchctl.cli.shared.watch
    import benchctl.engine.__main__
    import benchctl.engine.prepare.planning
    import benchctl.engine.runner.runner
    import benchctl.report.comparison.comparison
    import benchctl.report.exports.json
    import benchctl.tui.app  # noqa: F401
    from benchctl.__main__ import main
    from benchctl.plugins import PluginKind

    for backend in entry_points(group=PluginKind.BACKEND.group):
        backend.load()

    # A fork that collects garbage would write to, and so copy, all that is imported.
    gc.freeze()
    with selectors.PollSelector() as selector:
        selector.register(requests, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fileobj is not requests:
                    selector.unregister(key.fd)
                    _tell_the_end(key.fd, *key.data)
                    continue
                request, files, *_ = socket.recv_fds(requests, _MOST_BYTES, 4)
                if not request:
                    return
                pid = _fork(main, json.loads(request), files)
                for file in files[:3]:
                    os.close(file)
                selector.register(os.pidfd_open(pid), selectors.EVENT_READ, (pid, files[3]))


def _tell_the_end(watched, pid, telling):
    _, status = os.waitpid(pid, 0)
    with suppress(BrokenPipeError):  # nobody may want to know
        os.write(telling, b"%d" % os.waitstatus_to_exitcode(status))
    os.close(watched)
    os.close(telling)


if __name__ == "__main__":
    _serve()

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
from contextlib import ExitStack, suppress
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from pkgutil import walk_packages

from waiting import COMMAND_S, LOOK_S

_MOST_BYTES = 1 << 17
_UCRED = struct.Struct("iII")  # unix(7)


class Forked:
    """What is needed of the Popen of a process that was forked."""

    def __init__(self, pid, stdin):
        self.pid, self.stdin, self.returncode = pid, stdin, None

    def poll(self):
        if self.returncode is None:
            self.returncode = self._end()
        return self.returncode

    def wait(self, timeout=COMMAND_S):
        end_s = time.monotonic() + timeout
        while self.poll() is None:
            if time.monotonic() >= end_s:
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout)
            time.sleep(LOOK_S)
        return self.returncode

    def send_signal(self, number):
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self):
        self.send_signal(signal.SIGTERM)

    def kill(self):
        self.send_signal(signal.SIGKILL)

    def _end(self):
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        return os.waitstatus_to_exitcode(status) if pid else None


class Command(Forked):
    """A command that was started by the server; a context manager, as a Popen."""

    def __init__(self, heard, stdin, stdout, stderr):
        super().__init__(_sender(heard), stdin)
        self._heard, self.stdout, self.stderr = heard, stdout, stderr

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.communicate()

    def wait(self, timeout=COMMAND_S):
        if self.returncode is None:
            select.select([self._heard], [], [], timeout)
        return super().wait(0)

    def communicate(self, stdin="", timeout=COMMAND_S):
        """Wait for its end, which is forced after ``timeout``; returns all that is left to read."""
        late = threading.Timer(timeout, self.kill)
        late.start()
        try:
            if self.stdin is not None and not self.stdin.closed:
                with suppress(BrokenPipeError), self.stdin:
                    self.stdin.write(stdin)
            said = []
            reader = threading.Thread(target=lambda: said.append(_rest_of(self.stderr)))
            reader.start()
            stdout = _rest_of(self.stdout)
            reader.join()
            self.wait()
        finally:
            late.cancel()
        return stdout, *said

    def _end(self):
        if not select.select([self._heard], [], [], 0)[0]:
            return None
        with self._heard:
            # Nothing comes if the server was killed with all that it has started.
            return int(self._heard.recv(16) or -signal.SIGKILL)


def _rest_of(file):
    if file is None or file.closed:
        return None
    with file:
        return file.read()


# Whose modules are imported only when a command runs.
PACKAGES = (
    "cli", "engine", "imports", "lab", "report", "schedule", "store", "testing", "tui",
)  # fmt: skip


class ForkServer:
    """The program, seen from the tests; a context manager.

    ``words`` come before it, such as those that enter a host of a lab. ``packages`` are those of
    which it imports all modules.
    """

    def __init__(self, words=(), packages=PACKAGES):
        self._argv = [*words, sys.executable, __file__, *packages]

    def __enter__(self):
        self._requests, theirs = _pair()
        with theirs:
            self._process = subprocess.Popen(self._argv, stdin=theirs, start_new_session=True)
        self.pids = self._process.pid, _sender(self._requests)
        return self

    def __exit__(self, *exception):
        self._requests.close()
        self._process.wait()

    def start(
        self, argv, directory, environment, *,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ):  # fmt: skip
        """Start a command in a session of its own, as Popen does with text; returns a `Command`."""
        request = {"argv": argv, "directory": str(directory), "environment": environment}
        ours, theirs = [], []
        heard, telling = _pair()
        with ExitStack() as opened, telling:
            for given, mode in ((stdin, "w"), (stdout, "r"), (stderr, "r")):
                end = None
                if given == subprocess.PIPE:
                    end, given = os.pipe() if mode == "r" else os.pipe()[::-1]
                    end = os.fdopen(end, mode, encoding="utf-8", errors="replace", newline="\n")
                    opened.callback(os.close, given)
                elif given == subprocess.DEVNULL:
                    given = os.open(os.devnull, os.O_RDWR)
                    opened.callback(os.close, given)
                elif given == subprocess.STDOUT:
                    given = theirs[1]
                ours.append(end)
                theirs.append(given if isinstance(given, int) else given.fileno())
            words = json.dumps(request).encode()
            socket.send_fds(self._requests, [words], [*theirs, telling.fileno()])
        return Command(heard, *ours)

    def run(self, argv, directory, environment, *, stdin="", merged=False):
        """Run a command to its end, which is forced after some minutes; ``stdin`` is what it reads.

        Returns a ``CompletedProcess``; with ``merged``, stdout and stderr are both in the former.
        """
        stderr = subprocess.STDOUT if merged else subprocess.PIPE
        with self.start(
            argv, directory, environment, stdin=subprocess.PIPE, stderr=stderr
        ) as command:
            texts = command.communicate(stdin)
            return subprocess.CompletedProcess(argv, command.returncode, *texts)


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
MEASURING = {"again", "quick", "resume", "run"}


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
        return Forked(self._pid, None if ours is None else os.fdopen(ours, "wb"))


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


def _be(main, argv):
    """Be a command, and end as an interpreter does, but forget nothing that is imported.

    That takes longer than most commands: a fork would have to copy it first.
    """
    sys.argv = argv
    code = 1
    try:
        if MEASURING.intersection(argv):
            _Spare().take_the_place_of_runners()
        main()
        code = 0
    except SystemExit as end:
        code = end.code
    except BaseException:
        traceback.print_exc()
    try:
        threading._shutdown()
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        traceback.print_exc()
        code = 120
    os._exit(code)


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
    _be(main, request["argv"])
    return None


def _import(packages):
    for name in packages:
        package = import_module(f"benchctl.{name}")
        for module in walk_packages(package.__path__, f"{package.__name__}."):
            import_module(module.name)
    for kind in ("backends", "exporters", "importers"):
        for plugin in entry_points(group=f"benchctl.{kind}"):
            plugin.load()


def _serve(packages):
    requests = socket.socket(fileno=0)
    requests.send(b" ")
    os.environ["PYDANTIC_DISABLE_PLUGINS"] = "__all__"
    _import(packages)
    from benchctl.__main__ import main
    from benchctl.report.figures.paper import library

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
                words, files, *_ = socket.recv_fds(requests, _MOST_BYTES, 4)
                if not words:
                    return
                request = json.loads(words)
                # It takes as long as all the rest, and few commands draw.
                if "plot" in request["argv"] and "matplotlib" not in sys.modules:
                    library.load()
                    gc.freeze()
                pid = _fork(main, request, files)
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
    _serve(sys.argv[1:])

"""Runs benchctl's command line again and again, each time in a fork of one process.

Importing everything takes most of a short command's time; here it is done once. As a program it
takes requests from a socket, which is its argument: to start a command with the given stdin, stdout
and stderr, and to wait for one. A runner that a command starts is a fork, too.
"""

import atexit
import gc
import json
import os
import signal
import socket
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


class Forked:
    """What is needed of the Popen of a process that was forked."""

    def __init__(self, pid, stdin):
        self.pid, self.stdin, self.returncode = pid, stdin, None

    def poll(self):
        return self._look(os.WNOHANG)

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

    def _look(self, flags):
        if self.returncode is None:
            self.returncode = self._end(flags)
        return self.returncode

    def _end(self, flags):
        return _end_of(self.pid, flags)


def _end_of(pid, flags):
    """Wait for a child; returns its exit code, or None if it is not to be waited for."""
    ended, status = os.waitpid(pid, flags)
    return os.waitstatus_to_exitcode(status) if ended else None


class Command(Forked):
    """A command that was started by the server; a context manager, as a Popen."""

    def __init__(self, server, pid, stdin, stdout, stderr):
        super().__init__(pid, stdin)
        self._server, self.stdout, self.stderr = server, stdout, stderr

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.communicate()

    def communicate(self, stdin="", timeout=COMMAND_S):
        """Wait for its end, which is forced after ``timeout``; returns all that is left to read."""
        late = threading.Timer(timeout, os.kill, [self.pid, signal.SIGKILL])
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
            self._look(0)
        finally:
            late.cancel()
        return stdout, *said

    def _end(self, flags):
        return self._server.ask({"pid": self.pid, "flags": flags})


def _rest_of(file):
    if file is None or file.closed:
        return None
    with file:
        return file.read()


class ForkServer:
    """The program, seen from the tests; a context manager."""

    def __enter__(self):
        self._socket, theirs = socket.socketpair()
        with theirs:
            there = theirs.fileno()
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(there)], pass_fds=[there]
            )
        self._answers = self._socket.makefile()
        return self

    def __exit__(self, *exception):
        self._answers.close()
        self._socket.close()
        self._process.wait()

    def ask(self, request, files=()):
        """Return the answer to a request; ``files`` are stdin, stdout and stderr of a command."""
        socket.send_fds(self._socket, [b" "], files)
        self._socket.sendall(json.dumps(request).encode() + b"\n")
        return json.loads(self._answers.readline())

    def start(
        self, argv, directory, environment, *,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ):  # fmt: skip
        """Start a command as Popen does with text; returns a `Command`."""
        request = {"argv": argv, "directory": str(directory), "environment": environment}
        ours, theirs = [], []
        with ExitStack() as opened:
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
            pid = self.ask(request, theirs)
        return Command(self, pid, *ours)

    def run(self, argv, directory, environment, *, stdin="", merged=False):
        """Run a command to its end, which is forced after some minutes; ``stdin`` is what it reads.

        Returns a ``CompletedProcess``; with ``merged``, stdout and stderr are both in the former.
        """
        stderr = subprocess.STDOUT if merged else subprocess.PIPE
        command = self.start(argv, directory, environment, stdin=subprocess.PIPE, stderr=stderr)
        texts = command.communicate(stdin)
        return subprocess.CompletedProcess(argv, command.returncode, *texts)


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


def _start(main, requests, files, argv, directory, environment):
    """Start a command; returns its process id."""
    pid = os.fork()
    if not pid:
        os.chdir(directory)
        os.environ.clear()
        os.environ.update(environment)
        for number, file in enumerate(files):
            os.dup2(file, number)
        os.closerange(3, max(requests.fileno(), *files) + 1)
        _be(main, argv)
    for file in files:
        os.close(file)
    return pid


# Whose modules are imported only when a command runs.
PACKAGES = (
    "cli", "engine", "imports", "lab", "report", "schedule", "store", "testing", "tui",
)  # fmt: skip


def _import():
    for name in PACKAGES:
        package = import_module(f"benchctl.{name}")
        for module in walk_packages(package.__path__, f"{package.__name__}."):
            import_module(module.name)
    for kind in ("backends", "exporters", "importers"):
        for plugin in entry_points(group=f"benchctl.{kind}"):
            plugin.load()


def _serve(requests):
    os.environ["PYDANTIC_DISABLE_PLUGINS"] = "__all__"
    _import()
    from benchctl.__main__ import main
    from benchctl.report.figures.paper import library

    # A fork that collects garbage would write to, and so copy, all that is imported.
    gc.freeze()
    with requests.makefile("rw") as lines:
        while True:
            mark, files, *_ = socket.recv_fds(requests, 1, 3)
            if not mark:
                return
            request = json.loads(lines.readline())
            # It takes as long as all the rest, and few commands draw.
            if "plot" in request.get("argv", ()) and "matplotlib" not in sys.modules:
                library.load()
                gc.freeze()
            answer = _start(main, requests, files, **request) if files else _end_of(**request)
            print(json.dumps(answer), file=lines, flush=True)


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as requests:
        _serve(requests)

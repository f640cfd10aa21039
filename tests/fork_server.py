"""Runs benchctl's command line again and again, each time in a fork of one process.

Importing everything takes most of a short command's time; here it is done once. As a program it
reads requests from stdin, one line of JSON each, and answers each with the exit code, stdout and
stderr. A runner that a command starts is a fork, too.
"""

import atexit
import gc
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from pathlib import Path

from waiting import COMMAND_S, LOOK_S


class ForkServer:
    """The program, seen from the tests; a context manager."""

    def __enter__(self):
        self._process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        return self

    def __exit__(self, *exception):
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()

    def run(self, argv, directory, environment, *, stdin="", merged=False):
        """Run a command to its end, which is forced after some minutes; ``stdin`` is what it reads.

        Returns a ``CompletedProcess``; with ``merged``, stdout and stderr are both in the former.
        """
        request = {
            "argv": argv, "directory": str(directory), "environment": environment, "stdin": stdin,
            "merged": merged,
        }  # fmt: skip
        print(json.dumps(request), file=self._process.stdin, flush=True)
        answer = json.loads(self._process.stdout.readline())
        return subprocess.CompletedProcess(argv, *answer)


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


def _run(main, argv, directory, environment, stdin, merged):
    (given, to_give), out, err = os.pipe(), os.pipe(), os.pipe()
    os.write(to_give, stdin.encode())  # a pipe has room for it
    os.close(to_give)
    pid = os.fork()
    if not pid:
        os.chdir(directory)
        os.environ.clear()
        os.environ.update(environment)
        os.dup2(given, 0)
        os.dup2(out[1], 1)
        os.dup2(out[1] if merged else err[1], 2)
        os.closerange(3, max(given, *out, *err) + 1)
        sys.argv = argv
        if MEASURING.intersection(argv):
            _Spare().take_the_place_of_runners()
        _be(main)
    for end in (given, out[1], err[1]):
        os.close(end)
    texts = _read(pid, out[0], err[0])
    return (os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), *texts)


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


def _read(pid, *pipes):
    """Return what comes from each pipe until it is closed."""
    end_s = time.monotonic() + COMMAND_S
    texts = dict.fromkeys(pipes, b"")
    with selectors.DefaultSelector() as selector:
        for pipe in pipes:
            selector.register(pipe, selectors.EVENT_READ)
        while selector.get_map():
            ready = selector.select(max(0.0, end_s - time.monotonic()))
            if not ready:
                os.kill(pid, signal.SIGKILL)
                break
            for key, _ in ready:
                if data := os.read(key.fd, 1 << 16):
                    texts[key.fd] += data
                else:
                    selector.unregister(key.fd)
    for pipe in pipes:
        os.close(pipe)
    return [text.decode("utf-8", "replace") for text in texts.values()]


def _serve():
    os.environ["PYDANTIC_DISABLE_PLUGINS"] = "__all__"
    # What the commands import only when they run.
    import benchctl.cli.main
    import benchctl.cli.shared.watch
    import benchctl.engine.__main__
    import benchctl.engine.prepare.planning
    import benchctl.engine.runner.runner
    import benchctl.report.comparison.comparison
    import benchctl.tui.app  # noqa: F401
    from benchctl.__main__ import main

    # A fork that collects garbage would write to, and so copy, all that is imported.
    gc.freeze()
    for line in sys.stdin:
        print(json.dumps(_run(main, **json.loads(line))), flush=True)


if __name__ == "__main__":
    _serve()

"""Runs benchctl's command line again and again, each time in a fork of one process.

Importing everything takes most of a short command's time; here it is done once. As a program it
reads requests from stdin, one line of JSON each, and answers each with the exit code, stdout and
stderr.
"""

import gc
import json
import os
import selectors
import signal
import subprocess
import sys
import time

from waiting import COMMAND_S


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
        main()
        sys.exit()
    for end in (given, out[1], err[1]):
        os.close(end)
    texts = _read(pid, out[0], err[0])
    return (os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), *texts)


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
    import benchctl.cli.watch
    import benchctl.engine.planning
    import benchctl.report.comparison
    import benchctl.tui.app  # noqa: F401
    from benchctl.__main__ import main

    # A fork that collects garbage would write to, and so copy, all that is imported.
    gc.freeze()
    for line in sys.stdin:
        print(json.dumps(_run(main, **json.loads(line))), flush=True)


if __name__ == "__main__":
    _serve()

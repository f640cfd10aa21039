"""Runs benchctl's command line again and again, each time in a fork of one process.

Importing everything takes most of a short command's time; here it is done once. As a program it
reads requests from stdin, one line of JSON each (argv, directory, environment), and answers each
with the output, stdout and stderr together, and the exit code.
"""

import json
import os
import subprocess
import sys
import traceback


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

    def run(self, argv, directory, environment):
        request = {"argv": argv, "directory": str(directory), "environment": environment}
        print(json.dumps(request), file=self._process.stdin, flush=True)
        return tuple(json.loads(self._process.stdout.readline()))


def _run(main, argv, directory, environment):
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        os.chdir(directory)
        os.environ.clear()
        os.environ.update(environment)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(writing, 1)
        os.dup2(writing, 2)
        sys.argv = argv
        code = 0
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
        except BaseException:
            traceback.print_exc()
            code = 1
        sys.stdout.flush()
        os._exit(code)
    os.close(writing)
    with os.fdopen(reading) as output:
        text = output.read()
    return text, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _serve():
    # What the commands import only when they run.
    import benchctl.cli.main
    import benchctl.cli.watch
    import benchctl.engine.planning
    import benchctl.report.comparison
    import benchctl.tui.app  # noqa: F401
    from benchctl.__main__ import main

    for line in sys.stdin:
        print(json.dumps(_run(main, **json.loads(line))), flush=True)


if __name__ == "__main__":
    _serve()

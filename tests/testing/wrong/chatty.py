"""A backend whose import does everything that it must not do, but not in the tests themselves."""

import sys

from testing.sound import Sound

if "pytest" not in sys.modules:
    import subprocess
    import threading

    import rich.table  # noqa: F401

    import benchctl.engine.checks.tools  # noqa: F401

    print("hello from chatty")
    subprocess.run(["/bin/true"], check=True)
    threading.Thread(target=threading.Event().wait, name="chat", daemon=True).start()


class Chatty(Sound):
    name = "chatty"


BACKEND = Chatty()

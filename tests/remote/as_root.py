"""Logins of root, for a lab in which sshd cannot give them.

``as_root.py serve SOCKET WORD ...`` runs on a host as its root. It starts, by these words, what
``as_root.py SOCKET COMMAND`` asks for, which sshd has started.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import threading


def serve(path, words):
    """Start commands on the streams that come with each of them, until the host ends."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        print("ready", flush=True)
        while True:
            threading.Thread(target=run, args=(listener.accept()[0], words), daemon=True).start()


def run(asking, words):
    with asking:
        text, streams, _, _ = socket.recv_fds(asking, 1 << 16, 3)
        command, connection = json.loads(text)
        process = subprocess.Popen(
            [*words, command], stdin=streams[0], stdout=streams[1], stderr=streams[2],
            env={**os.environ, "SSH_CONNECTION": connection}, start_new_session=True,
        )  # fmt: skip
        for stream in streams:
            os.close(stream)
        asking.sendall(b"%d" % (process.wait() & 0xFF))


def ask(path, command):
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    with socket.socket(socket.AF_UNIX) as root:
        root.connect(path)
        words = json.dumps([command, os.environ["SSH_CONNECTION"]]).encode()
        socket.send_fds(root, [words], [0, 1, 2])
        for stream in (0, 1, 2):
            os.close(stream)
        os._exit(int(root.recv(16) or 255))


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(sys.argv[2], sys.argv[3:])
    ask(*sys.argv[1:])

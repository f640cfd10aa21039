"""A tool gets a secret in its environment, and nothing that benchctl writes has it."""

import hashlib

SECRET = "Zx9-not-to-be-written"
PLUGIN = """
from benchctl.api import Backend, Capabilities, Command, Direction, Field, LineParser, Parameters
from benchctl.api import Probe, Summary, Tool

class Keeper(Parameters):
    file: str = Field("", description="file with the secret")

class Told(LineParser):
    def line(self, text, channel):
        if text:
            yield Summary({"throughput_bps": float(int(text.split()[0][:8], 16))}, Direction.SEND)

class Guarded(Backend[Keeper]):
    name = "guarded"
    summary = "sends what it was told"
    parameters = Keeper
    capabilities = Capabilities(directions=(Direction.SEND,))

    def probe(self, role):
        return Probe(("sh", "-c", ""), "install a shell")

    def read_probe(self, role, exit_code, output):
        return Tool("1")

    def client(self, flow):
        script = "printf %s $KEY | sha256sum"
        return Command(("sh", "-c", script), Told(), secrets={"KEY": flow.params.file})

    def duration_s(self, params):
        return 0.1

BACKEND = Guarded()
"""


def test_a_secret_reaches_the_tool_and_nothing_that_is_written(benchctl):
    (benchctl.directory / "guarded.py").write_text(PLUGIN)
    benchctl.environment["BENCHCTL_PLUGINS"] = str(benchctl.directory / "guarded.py")
    secret = benchctl.directory / "secret"
    secret.touch(mode=0o600)
    secret.write_text(SECRET)
    name = benchctl.profile(f"""[flows.main]\nbackend = "guarded"\nfile = "{secret}"\n""")
    planned = benchctl("plan", name)
    done = benchctl("run", "-v", "--log", "log.txt", "--format", "json", name)
    assert done.returncode == 0, done.stderr
    digest = int(hashlib.sha256(SECRET.encode()).hexdigest()[:8], 16)
    assert f"{digest}" in done.stdout  # it had the secret
    written = [planned.stdout, planned.stderr, done.stdout, done.stderr]
    assert not [text for text in written if SECRET in text]
    files = [path for path in benchctl.directory.rglob("*") if path.is_file() and path != secret]
    assert {"log.txt", "runs.sqlite"} <= {path.name for path in files}
    assert not [path for path in files if SECRET.encode() in path.read_bytes()]


def test_a_secret_that_cannot_be_read_is_refused_before_anything_runs(benchctl):
    (benchctl.directory / "guarded.py").write_text(PLUGIN)
    benchctl.environment["BENCHCTL_PLUGINS"] = str(benchctl.directory / "guarded.py")
    name = benchctl.profile("""[flows.main]\nbackend = "guarded"\nfile = "/no/such/file"\n""")
    done = benchctl("run", name)
    assert done.returncode == 2
    why = "file: /no/such/file cannot be read: No such file or directory"
    assert f":3: flows.main.file: guarded: {why}" in done.stderr
    assert not benchctl.store.exists()

"""docs/lab.md: its files are read, its keys are those of the schema, its sessions run."""

import pytest
from docs.documents import blocks_of, filled, write_files

from benchctl.engine.prepare.planning import planned
from benchctl.lab.topology import schema
from benchctl.lab.topology.model import LinkSettings
from benchctl.lab.topology.topology import load_topology
from benchctl.units import format_duration, format_rate, format_ratio

DOCUMENT = "lab.md"
TABLES = {
    "topology": schema.TopologyFile,
    "host": schema.TopologyHostTable,
    "service": schema.ServiceTable,
    "router": schema.RouterTable,
    "route": schema.RouteTable,
    "link": schema.LinkTable,
}
WRITTEN = {
    "10s": '`"10ms"`', "5201-5210": '`5201` or `"5201-5210"`',
    "string": "string", "object": "table", "array": "list", "integer": "number",
    "boolean": "boolean",
}  # fmt: skip
# What a link does where its file says nothing.
UNSET = {
    "rate": format_rate(LinkSettings().rate_bps),
    "delay": format_duration(LinkSettings().delay_s),
    "jitter": format_duration(LinkSettings().jitter_s),
    "loss": format_ratio(LinkSettings().loss_ratio),
    "queue": LinkSettings().queue_packets,
}
# Another session on the page verifies the lab.
UNVERIFIED = ('topology = "office.toml"\n', 'topology = "office.toml"\nverify = false\n')
SESSIONS = blocks_of(DOCUMENT, "console")
BUILDING = [block for block in SESSIONS if "lab show" not in block.text]


@pytest.fixture(scope="module")
def shell(tmp_path_factory, shell_in):
    shell = shell_in(tmp_path_factory.mktemp("lab"))
    write_files(DOCUMENT, shell.directory)
    sweep = shell.directory / "sweep.toml"
    assert UNVERIFIED[0] in sweep.read_text()
    sweep.write_text(sweep.read_text().replace(*UNVERIFIED))
    return shell


@pytest.mark.parametrize("block", blocks_of(DOCUMENT, "toml"), ids=lambda block: block.file)
def test_every_file_is_read_and_every_profile_can_be_planned(shell, block):
    path = shell.directory / block.file
    if "[flows" in block.text:
        assert len(planned(str(path), None, None, None, False).plan) > 0
    else:
        assert load_topology(path).hosts


@pytest.mark.parametrize("table_name", TABLES)
def test_the_tables_are_those_of_the_schema(table_name, request):
    lines = ["| key | type | default | meaning |", "|---|---|---|---|"]
    lines += _described(TABLES[table_name])
    filled(DOCUMENT, table_name, lines, request.config.getoption("--update-golden"))


def _described(model):
    described = model.model_json_schema()
    for name, key in described["properties"].items():
        kinds = [kind for kind in key.get("anyOf", [key]) if kind.get("type") != "null"]
        examples = [example for kind in kinds for example in kind.get("examples", ())]
        kind = kinds[0].get("type", "string")
        written = WRITTEN.get(examples[0], f'`"{examples[0]}"`') if examples else WRITTEN[kind]
        default = "required" if name in described.get("required", ()) else key.get("default")
        shown = UNSET.get(name, "") if default in (None, {}, [], "") else default
        shown = str(shown).lower() if isinstance(shown, bool) else shown
        yield f"| `{name}` | {written} | {shown} | {key['description']} |"


def test_one_example_has_every_key(shell):
    text = (shell.directory / "everything.toml").read_text()
    keys = {name for model in TABLES.values() for name in model.model_fields}
    assert {key for key in keys if key not in text} == set()


def test_the_map_is_shown_as_printed(shell):
    for block in SESSIONS:
        if block not in BUILDING:
            shell.check(block)


@pytest.mark.netns
@pytest.mark.tool("ping")
@pytest.mark.parametrize("block", BUILDING, ids=lambda block: f"line {block.line}")
def test_what_needs_a_lab_runs_as_shown(shell, block):
    shell.check(block)


@pytest.mark.netns
@pytest.mark.tool("iperf3")
@pytest.mark.tool("ping")
def test_the_example_of_everything_can_be_built(shell):
    ((output, code),) = shell.run(
        ["benchctl lab exec --trust everything.toml laptop -- ping -c 1 mirror"]
    )
    assert (code, "1 received" in output) == (0, True), output

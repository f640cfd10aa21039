"""``benchctl plot``: figures to files, to a pipe, to the terminal; and what cannot be drawn."""

from io import StringIO

import pytest
from console_font import CP437
from report.pictured_run import pictured_run
from report.traced_run import traced_run

from benchctl.cli.main import app
from benchctl.cli.shared import completion
from benchctl.errors import BenchctlError

# Row D of the experiments: windows of both ends, and streams, both directions.
D1 = {
    "direction": ("send", "receive"),
    "server_window": ("default", "4x2 MB", "8x2 MB", "16x2 MB"),
    "client_window": ("default", "4096x2 KB", "8192x2 KB", "16384x2 KB"),
}
D2 = {**D1, "streams": (1, 2, 4, 8)}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("figures") / "runs.sqlite"
    pictured_run(path)
    return path


def plot(store, *words):
    app.main(["plot", "--store", str(store), *map(str, words)], prog_name="benchctl",
             standalone_mode=False)  # fmt: skip


@pytest.mark.parametrize(("name", "begin"), [("f.svg", b"<?xml"), ("f.PNG", b"\x89PNG"),
                                             ("f.pdf", b"%PDF")])  # fmt: skip
def test_the_extension_decides_the_format(store, tmp_path, name, begin):
    plot(store, "-o", tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(begin)
    assert [one.name for one in tmp_path.iterdir()] == [name]


def test_a_pipe_gets_svg(store, capfdbinary):
    plot(store)
    assert capfdbinary.readouterr().out.startswith(b"<?xml")


def test_a_terminal_gets_text(store, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("NO_COLOR", "1")
    plot(store, "--kind", "bars")
    assert "█" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("values", "repeats", "count"), [(D1, 2, 16), (D2, 1, 32)], ids=["D1", "D2"]
)
def test_all_figures_of_row_d_are_one_command(tmp_path, values, repeats, count, monkeypatch):
    drawn = []

    def draw(sheet, matplotlib, figure, form):
        drawn.append(figure)
        sheet.save = lambda: b"drawn"

    monkeypatch.setattr("benchctl.report.figures.paper.printed._Sheet.__init__", draw)
    pictured_run(tmp_path / "s", values=values, repeats=repeats, sampled_s=5.0)
    plot(tmp_path / "s", "--kind", "time", "--all", "--series", "client_window",
         "-o", tmp_path / "figs" / "d")  # fmt: skip
    assert len(list((tmp_path / "figs" / "d").iterdir())) == len(drawn) == count
    assert {figure.series for figure in drawn} == {"client window"}
    assert not any("left out" in note for figure in drawn for note in figure.notes)


def test_a_directory_gets_files_that_say_what_is_in_them(store, tmp_path, capsys):
    plot(store, "--kind", "bars", "--by", "streams", "--format", "png", "-o", tmp_path)
    names = ["bars-throughput_bps-streams=1.png", "bars-throughput_bps-streams=2.png"]
    assert sorted(one.name for one in tmp_path.iterdir()) == names
    assert capsys.readouterr().out.splitlines() == [str(tmp_path / name) for name in names]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-o", "f.gif"], "-o f.gif: no figure has the extension .gif"),
        (["-o", "nowhere/f.svg"], "-o nowhere/f.svg: No such file or directory"),
        (["--all", "-o", "f.svg"], "--all and --by write several files"),
        (["--by", "streams"], "--all and --by write several files"),
        (["--all", "-o", "/proc/none/f"], "-o /proc/none/f: "),
        (["--terminal", "-o", "f.svg"], "--terminal and -o exclude each other"),
        (["--only", "streams"], "--only streams: write AXIS=VALUE"),
        (["--x", "strems"], 'has no axis "strems"'),
        (["--y", "throughput"], 'no metric "throughput" was measured'),
        (["--style", "none.mplstyle"], 'no file and no style "none.mplstyle"'),
        (["nothing"], 'no run "nothing"'),
    ],
)
def test_what_cannot_be_drawn_is_one_line(store, tmp_path, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BenchctlError) as error:
        plot(store, *words)
    assert message in error.value.message
    assert "\n" not in error.value.message + error.value.hint
    assert [*tmp_path.iterdir()] == []


def test_a_terminal_of_few_characters_gets_ascii(store, monkeypatch):
    class Latin(StringIO):
        encoding = "iso-8859-1"

    monkeypatch.setattr("sys.stdout", Latin())
    plot(store, "--terminal")
    import sys

    assert "⠤" not in sys.stdout.getvalue()


@pytest.mark.parametrize("kind", ["time", "bars", "box", "heat"])
def test_the_linux_console_gets_what_its_font_has(store, monkeypatch, capsys, kind):
    monkeypatch.setenv("TERM", "linux")
    plot(store, "--terminal", "--kind", kind)
    assert not {*capsys.readouterr().out} - CP437


@pytest.mark.parametrize("kind", ["bars", "box", "heat"])
def test_what_ascii_lacks_is_replaced_by_what_looks_like_it(benchctl, store, kind):
    benchctl.environment["PYTHONIOENCODING"] = "ascii"
    words = ("plot", "--store", store, "--terminal", "--kind", kind)
    told, _ = benchctl.start_anew(*words).communicate()
    assert "throughput" in told
    assert told.isascii()
    assert "\\u" not in told


def test_axes_and_metrics_are_completed_from_the_run(store, monkeypatch):
    class Context:
        params = {"name": "last"}  # noqa: RUF012

    monkeypatch.setenv("BENCHCTL_STORE", str(store))
    assert completion.axes_of_run(Context) == ["window", "streams", "repeat"]
    assert completion.x_of_run(Context) == ["window", "streams", "time"]
    assert "throughput_bps" in completion.metrics_of_run(Context)
    Context.params = {"name": "nothing"}
    assert completion.axes_of_run(Context) == []


@pytest.fixture(scope="module")
def traced(tmp_path_factory):
    path = tmp_path_factory.mktemp("packets") / "runs.sqlite"
    traced_run(path)
    return path


def test_packets_are_drawn_for_each_host_of_a_time(traced, tmp_path, capsys):
    zoom = ("--kind", "time-sequence", "--from", "2.5s", "--to", "3700ms")
    plot(traced, *zoom, "--by", "host", "-o", tmp_path / "figures")
    files = capsys.readouterr().out.split()
    assert [file.rpartition("/")[2] for file in files] == [
        f"time-sequence-flow=main-host={host}-connection=1-from=10.0.0.2_80.svg" for host in "ab"
    ]
    plot(traced, *zoom, "--terminal", "--y", "flight_bytes")
    assert "marked: zero window 1, window probe 2" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--from", "5m"), "--from: .5m. could be minutes"),
        (("--from", "3s", "--to", "2s"), "the end is not after the beginning"),
        (("--kind", "bars", "--to", "2s"), "kind bars has no time"),
    ],
)
def test_a_time_that_cannot_be_shown_is_refused(traced, words, told):
    with pytest.raises(BenchctlError, match=told):
        plot(traced, *words)


def test_a_part_of_the_time_is_drawn(store, tmp_path, capsys):
    plot(store, "--terminal", "--kind", "time", "--from", "6s", "--to", "8s", "--only",
         "window=60000B", "--y", "throughput_bps")  # fmt: skip
    out = capsys.readouterr().out
    assert "6 s" in out
    assert "8 s" in out
    assert " 5.5 s" not in out


@pytest.mark.parametrize(
    ("args", "why"),
    [
        (("last", "--kind", "forest"), "--kind forest shows two runs"),
        (("last", "last", "--kind", "time"), "--kind time shows one run"),
        (("last", "last", "--by", "streams"), "--by"),
        (("last", "last", "--only", "streams=99"), '--only: axis streams has no value "99"'),
        (("last", "last", "--y", "throughput"), "no metric throughput was measured in both runs"),
        (("last", "nothing"), "nothing"),
    ],
)
def test_what_a_figure_of_two_runs_does_not_have_is_one_clear_line(store, args, why):
    with pytest.raises(BenchctlError, match=why):
        plot(store, *args)


def test_two_runs_are_a_forest_plot(store, capsys):
    plot(store, "last", "last", "--terminal", "--y", "throughput_bps")
    every = capsys.readouterr().out
    assert "0 % no difference seen" in every
    plot(store, "last", "last", "--terminal", "--y", "throughput_bps", "--only", "streams=2")
    some = capsys.readouterr().out
    assert 0 < some.count("no difference") < every.count("no difference")

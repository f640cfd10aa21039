"""``benchctl report``: a page or one clear line."""

import re
import subprocess
import sys

import pytest

OK = 'title = "Two plans"\n[flows.main]\nbackend = "toy"\n[axes]\nplan = ["ok", "lucky"]\n'
FAIL = '[flows.main]\nbackend = "toy"\n[axes]\nplan = ["fail"]\n[run]\nattempts = 1\n'


@pytest.fixture(scope="module")
def benchctl(tmp_path_factory, fork_server):
    from cli.conftest import Benchctl

    made = Benchctl(tmp_path_factory.mktemp("report"), server=fork_server)
    made("run", made.profile(OK), "-q", "--tag", "good")
    made("run", made.profile(FAIL, "fail.toml"), "-q", "--tag", "bad")
    return made


def test_a_report_is_one_file_with_the_run(benchctl):
    done = benchctl("report", "good", "-o", "page.html")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    page = (benchctl.directory / "page.html").read_text()
    assert page.startswith("<!DOCTYPE html>")
    assert "<title>Two plans</title>" in page
    assert not re.search(r'(?:src|href)="(?!#)', page)


def test_an_existing_file_is_replaced_when_the_page_is_complete(benchctl):
    file = benchctl.directory / "old.html"
    file.write_text("old")
    assert benchctl("report", "nowhere", "-o", "old.html").returncode == 2
    assert file.read_text() == "old"
    assert benchctl("report", "good", "-o", "old.html").returncode == 0
    assert file.read_text().startswith("<!DOCTYPE html>")
    assert not [*benchctl.directory.glob("*.part")]


def test_a_site_of_all_runs_is_written_and_updated(benchctl):
    done = benchctl("report", "--mesh", "-o", "site", "--since", "1d")
    assert (done.returncode, done.stderr) == (0, "")
    assert re.fullmatch(r"site/index.html: (\d+) of \1 files are new\n", done.stdout)
    index = (benchctl.directory / "site/index.html").read_text()
    assert "What failed in the newest runs" in index
    again = benchctl("report", "--mesh", "-o", "site", "--profile", "fail")
    assert again.returncode == 0
    assert "Two plans" not in (benchctl.directory / "site/index.html").read_text()


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (["--mesh"], 2, "--mesh needs a directory"),
        (["--mesh", "good", "-o", "site"], 2, "--mesh takes no names of runs"),
        (["--mesh", "-o", "fail.toml/site"], 2, "-o fail.toml/site"),
        (["--mesh", "-o", "."], 2, "-o .: holds other files"),
        (["--mesh", "-o", "site", "--until", "2020-01-01"], 2, "no run is from then"),
        (["--mesh", "-o", "site", "--until", "soon"], 2, '--until "soon"'),
        (["--until", "1d"], 2, "--until needs --mesh"),
        (["-o", "page.pdf"], 2, "-o page.pdf: no format has the extension .pdf"),
        (["-o", "gone/page.html"], 2, "-o gone/page.html: No such file or directory"),
        (["nowhere"], 2, 'no run "nowhere"'),
        (["none.sqlite"], 2, "none.sqlite"),
        (["good", "baseline"], 2, "no baseline"),
    ],
)
def test_what_cannot_be_is_one_clear_line(benchctl, args, code, said):
    done = benchctl("report", *args)
    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("args", [["-o", "-"], []])
def test_a_page_goes_to_stdout(benchctl, args):
    done = benchctl("report", "good", *args)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("<!DOCTYPE html>")
    assert not (benchctl.directory / "-").exists()


def test_markdown_by_name_or_by_ending(benchctl):
    by_name = benchctl("report", "good", "--format", "md").stdout
    assert by_name.startswith("# Two plans\n")
    benchctl("report", "good", "-o", "page.md")
    assert (benchctl.directory / "page.md").read_text() == by_name


def test_a_run_whose_trials_all_failed_is_a_page(benchctl):
    told = benchctl("report", "bad", "--format", "md").stdout
    assert "**0 of 1 trial measured, 1 failed. What failed: main: " in told
    assert "no trial was measured to its end" in told
    assert benchctl("report", "bad", "-o", "bad.html").returncode == 0


def test_several_runs_are_one_page_wherever_they_are_stored(benchctl):
    benchctl("export", "bad", "-o", "bad.sqlite")
    told = benchctl("report", "good", "bad.sqlite", "--format", "md").stdout
    assert told.startswith("# Two plans / fail\n\n## Comparison\n")
    assert "## B: fail" in told


def test_without_jinja_one_line_says_how_to_get_it(benchctl):
    script = "import sys; sys.modules['jinja2'] = None; from benchctl.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", script, "report", "good", "-o", "no.html"],
        cwd=benchctl.directory, env=benchctl.environment, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == (
        "benchctl: a report as HTML needs Jinja2, which is not installed\n"
        '  pip install "benchctl[report]", or use --format md\n'
    )
    assert not (benchctl.directory / "no.html").exists()


def test_matplotlib_is_not_needed(benchctl):
    script = (
        "import sys; sys.modules['matplotlib'] = None; from benchctl.cli.main import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, "report", "good", "-o", "page.html"],
        cwd=benchctl.directory, env=benchctl.environment, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


def test_the_options_of_a_run_are_in_its_record(benchctl):
    benchctl("run", "p.toml", "-q", "--only", "plan=ok", "--repeat", "2", "--tag", "one")
    told = benchctl("report", "one", "--format", "md").stdout
    assert re.search("benchctl run p.toml --only plan=ok --repeat 2 --set run.seed=[0-9]+", told)
    again = benchctl("compare", "one", "good").stdout
    assert "# --only plan=ok" in again

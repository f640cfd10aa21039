"""Whose word a file is: every directory and link on the way counts."""

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from benchctl.engine.prepare.trust import distrust, distrust_run
from benchctl.run.planned import LabSettings, Settings

STRANGER = 65534


@pytest.fixture
def here():
    """A directory of ours right below /tmp, where all may write and none remove another's."""
    directory = Path(tempfile.mkdtemp(dir="/tmp"))
    (directory / "sub").mkdir()
    (directory / "sub" / "lab.toml").write_text("")
    yield directory
    shutil.rmtree(directory)


def test_a_file_that_only_we_can_write_is_our_word(here):
    assert distrust(here / "sub" / "lab.toml") == ""
    assert distrust(here / "sub" / ".." / "sub" / "lab.toml") == ""


@pytest.mark.parametrize("mode", [0o664, 0o646])
def test_a_file_that_others_may_write_is_not(here, mode):
    file = here / "sub" / "lab.toml"
    file.chmod(mode)
    assert distrust(file) == f"{file} is writable by others than its owner"


@pytest.mark.parametrize("mode", [0o775, 0o757, 0o777])
@pytest.mark.parametrize("place", ["sub", "."])
def test_nor_is_one_whose_directory_others_may_write(here, mode, place):
    (here / place).chmod(mode)
    said = distrust(here / "sub" / "lab.toml")
    assert said == f"{here / place} is writable by others than its owner"


def test_in_a_sticky_directory_only_the_file_counts(here):
    (here / "sub").chmod(0o1777)
    assert distrust(here / "sub" / "lab.toml") == ""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("place", ["sub/lab.toml", "sub", "."])
def test_what_belongs_to_another_user_is_not_our_word(here, place):
    os.chown(here / place, STRANGER, STRANGER)
    assert distrust(here / "sub" / "lab.toml").startswith(f"{here / place} belongs to ")


def test_a_link_counts_with_its_own_directory(here):
    (here / "open").mkdir()
    link = here / "open" / "link.toml"
    link.symlink_to("../sub/lab.toml")
    assert distrust(link) == ""
    (here / "open").chmod(0o777)
    assert distrust(link) == f"{here / 'open'} is writable by others than its owner"


def test_a_link_counts_with_the_directory_that_it_leads_to(here):
    (here / "link").symlink_to(here / "sub")
    assert distrust(here / "link" / "lab.toml") == ""
    (here / "sub").chmod(0o777)
    said = distrust(here / "link" / "lab.toml")
    assert said == f"{here / 'sub'} is writable by others than its owner"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give links away")
def test_a_strangers_link_to_a_file_of_ours_is_not_our_word(here):
    link = here / "link.toml"
    link.symlink_to(here / "sub" / "lab.toml")
    os.chown(link, STRANGER, STRANGER, follow_symlinks=False)
    assert distrust(link).startswith(f"{link} belongs to ")


def test_links_that_go_round_end(here):
    (here / "a").symlink_to("b")
    (here / "b").symlink_to("a")
    assert distrust(here / "a").endswith("too many links")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_the_services_of_a_strangers_store_are_not_our_word(here):
    store = here / "sub" / "lab.toml"

    def settings(text):
        return Settings({}, "", (), lab=LabSettings("lab.toml", text, None, True))

    lab = settings("services = []")
    assert distrust_run(lab, store) == ""
    os.chown(store, STRANGER, STRANGER)
    assert distrust_run(lab, store).startswith("it belongs to ")
    assert distrust_run(settings("[hosts]"), store) == ""
    assert distrust_run(Settings({}, "", ()), store) == ""

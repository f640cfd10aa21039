"""Secrets come from files that only their owner reads."""

import os

import pytest

from benchctl.hosts.secrets import read_secrets


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "password"
    path.touch(mode=0o600)
    return path


@pytest.mark.parametrize("end", ["", "\n", "\r\n", "\nmore\n"])
def test_a_secret_is_the_first_line_of_its_file(file, end):
    file.write_bytes(f" two words {end}".encode())
    assert read_secrets({"PASSWORD": str(file)}) == {"PASSWORD": " two words "}


@pytest.mark.parametrize("content", [b"", b"\n", b"x" * 4097, b"a\0b"])
def test_a_file_without_such_a_line_is_refused(file, content):
    file.write_bytes(content)
    with pytest.raises(ValueError, match=r"first line of .* is empty, too long or no text"):
        read_secrets({"PASSWORD": str(file)})


def test_a_file_that_everybody_may_read_is_refused(file):
    file.write_text("secret")
    file.chmod(0o644)
    with pytest.raises(ValueError, match=r"is readable by everyone; restrict it with chmod 600"):
        read_secrets({"PASSWORD": str(file)})


def test_what_is_no_file_is_refused_at_once(tmp_path):
    with pytest.raises(ValueError, match=r"No such file"):
        read_secrets({"PASSWORD": str(tmp_path / "none")})
    os.mkfifo(tmp_path / "pipe", 0o600)
    for name in ("", "pipe"):
        with pytest.raises(ValueError, match=r"is not a file|Is a directory"):
            read_secrets({"PASSWORD": str(tmp_path / name)})

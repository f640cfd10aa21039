"""Certificates of a fleet, as Python's TLS and openssl judge them."""

import socket
import ssl
import subprocess
import threading

import pytest

from benchctl.fleet.trust.certificates import DAY_S, end_s, make_ca, make_server

NOW_S = 1_800_000_000.0


@pytest.fixture(scope="module")
def made():
    import time

    now_s = time.time()
    ca, ca_key = make_ca("lab", now_s)
    return now_s, ca, make_server(ca, ca_key, ["fleet.example", "127.0.0.1"], now_s)


def handshake(tmp_path, ca, server, name):
    certificate, key = server
    (tmp_path / "c.pem").write_bytes(certificate)
    (tmp_path / "k.pem").write_bytes(key)
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(tmp_path / "c.pem", tmp_path / "k.pem")
    asking = ssl.create_default_context(cadata=ca.decode())
    asking.verify_flags |= ssl.VERIFY_X509_STRICT
    near, far = socket.socketpair()
    failed = []

    def serve():
        try:
            serving.wrap_socket(far, server_side=True).close()
        except OSError as error:
            failed.append(error)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        with asking.wrap_socket(near, server_hostname=name) as wrapped:
            return wrapped.version()
    finally:
        near.close()
        thread.join()
        far.close()


@pytest.mark.parametrize("name", ["fleet.example", "127.0.0.1"])
def test_a_server_is_known_by_its_name_or_address(tmp_path, made, name):
    _, ca, server = made
    assert handshake(tmp_path, ca, server, name) == "TLSv1.3"


def test_another_name_and_another_authority_are_refused(tmp_path, made):
    now_s, ca, server = made
    with pytest.raises(ssl.SSLCertVerificationError, match="mismatch"):
        handshake(tmp_path, ca, server, "other.example")
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(tmp_path, make_ca("lab", now_s)[0], server, "fleet.example")


def test_a_certificate_begins_a_day_back(tmp_path):
    (tmp_path / "ca.pem").write_bytes(make_ca("lab", NOW_S)[0])
    command = ["openssl", "x509", "-in", str(tmp_path / "ca.pem"), "-noout", "-checkend", "0"]
    subprocess.run(command, check=True, capture_output=True)
    dates = subprocess.run(
        ["openssl", "x509", "-in", tmp_path / "ca.pem", "-noout", "-startdate"],
        check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    assert dates == "notBefore=Jan 14 08:00:00 2027 GMT\n"


def test_the_end_of_a_certificate_is_known():
    ca, ca_key = make_ca("lab", NOW_S)
    assert end_s(ca) == NOW_S + 3652 * DAY_S
    assert end_s(make_server(ca, ca_key, ["a"], NOW_S)[0]) == NOW_S + 397 * DAY_S
    with pytest.raises(ValueError, match=r"."):
        end_s(b"none")

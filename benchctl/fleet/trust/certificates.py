"""The fleet's own certificate authority, and the server's certificate.

Certificates begin a day back: a host whose clock is an hour wrong gets in.
"""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

DAY_S: Final = 86400.0
CA_DAYS: Final = 3652
SERVER_DAYS: Final = 397
"""The most that browsers accepted for years (CA/Browser Forum); `fleet renew` makes another."""
SAID_AHEAD_DAYS: Final = 30
"""So many days before a certificate ends, it is said."""


def make_ca(fleet: str, now_s: float) -> tuple[bytes, bytes]:
    """Return a new authority's certificate and key, PEM."""
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = Ed25519PrivateKey.generate()
    name = _name(f"benchctl fleet {fleet}")
    builder = _builder(name, name, key, key, now_s, CA_DAYS)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(_usage(ca=True), critical=True)
    return _pem(builder.sign(key, None)), _key_pem(key)


def make_server(
    ca: bytes, ca_key: bytes, names: Sequence[str], now_s: float
) -> tuple[bytes, bytes]:
    """Return a certificate and key of a server with these names or addresses, PEM."""
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key
    from cryptography.x509.oid import ExtendedKeyUsageOID

    authority = x509.load_pem_x509_certificate(ca)
    signs = load_pem_private_key(ca_key, None)
    assert isinstance(signs, Ed25519PrivateKey)
    key = Ed25519PrivateKey.generate()
    builder = _builder(_name(names[0][:64]), authority.subject, key, signs, now_s, SERVER_DAYS)
    constraints = x509.BasicConstraints(ca=False, path_length=None)
    builder = builder.add_extension(constraints, critical=True)
    builder = builder.add_extension(_usage(ca=False), critical=True)
    builder = builder.add_extension(
        x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False
    )
    builder = builder.add_extension(
        x509.SubjectAlternativeName([_general(name) for name in names]), critical=False
    )
    return _pem(builder.sign(signs, None)), _key_pem(key)


def end_s(pem: bytes) -> float:
    """Return when a certificate ends, a Unix time. Raises ValueError."""
    from cryptography import x509

    return x509.load_pem_x509_certificate(pem).not_valid_after_utc.timestamp()


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: Ed25519PrivateKey,
    signs: Ed25519PrivateKey,
    now_s: float,
    days: int,
) -> x509.CertificateBuilder:
    from cryptography import x509

    now = datetime.datetime.fromtimestamp(now_s, datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signs.public_key()), critical=False
        )
    )


def _usage(*, ca: bool) -> x509.KeyUsage:
    from cryptography import x509

    return x509.KeyUsage(
        digital_signature=not ca, key_cert_sign=ca, crl_sign=ca, content_commitment=False,
        key_encipherment=False, data_encipherment=False, key_agreement=False, encipher_only=False,
        decipher_only=False,
    )  # fmt: skip


def _name(text: str) -> x509.Name:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _general(name: str) -> x509.GeneralName:
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _pem(certificate: x509.Certificate) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding

    return certificate.public_bytes(Encoding.PEM)


def _key_pem(key: Ed25519PrivateKey) -> bytes:
    from cryptography.hazmat.primitives import serialization

    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )

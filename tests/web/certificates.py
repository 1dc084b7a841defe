"""Certificates and users for tests, and a web config file that names them."""

from __future__ import annotations

import base64
import ssl
from dataclasses import dataclass
from pathlib import Path

import bcrypt
import trustme

AUTHORITY = trustme.CA(key_type=trustme.KeyType.ECDSA)
FOREIGN = trustme.CA(key_type=trustme.KeyType.ECDSA)
TLS = "tls_server_config:\n  cert_file: server.crt\n  key_file: server.key\n"
MUTUAL = TLS + "  client_ca_file: clients.crt\n  client_auth_type: RequireAndVerifyClientCert\n"
PASSWORD = "correct horse"
# The lowest cost: tests count checks, they don't wait for them.
HASH = bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(4)).decode()
USERS = f"basic_auth_users:\n  alice: {HASH}\n"


def issue(directory: Path, *, authority: trustme.CA = AUTHORITY, name: str = "server") -> None:
    """Write a certificate for localhost, its key, and the authority of the clients."""
    issued = authority.issue_cert("localhost", "127.0.0.1", "::1")
    issued.private_key_pem.write_to_path(directory / f"{name}.key")
    (directory / f"{name}.crt").write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
    AUTHORITY.cert_pem.write_to_path(directory / "clients.crt")


@dataclass(frozen=True, slots=True)
class WebConfigFile:
    """`web.yml` in a directory of its own, beside the certificates that it may name."""

    directory: Path

    @property
    def path(self) -> Path:
        return self.directory / "web.yml"

    def write(self, *sections: str) -> str:
        """Write the file and give its path."""
        self.path.write_text("".join(sections), encoding="utf-8")
        return str(self.path)


def client_context(
    authority: trustme.CA = AUTHORITY, own: trustme.CA | None = None, version: ssl.TLSVersion | None = None
) -> ssl.SSLContext:
    """A client that trusts `authority` and shows a certificate of `own`."""
    context = ssl.create_default_context(cadata=authority.cert_pem.bytes().decode())
    if own is not None:
        own.issue_cert("client@example.org").configure_cert(context)
    if version is not None:
        context.minimum_version = context.maximum_version = version
    return context


def sign_in(user: str = "alice", password: str = PASSWORD) -> dict[str, str]:
    """The header with which a client says who it is."""
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}

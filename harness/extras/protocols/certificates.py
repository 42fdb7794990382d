"""Creates the private key and the certificate that servers use for TLS."""

from collections.abc import Mapping
from pathlib import Path

from harness.errors import EnvironmentLacksError
from harness.host import process

CERTIFICATE, KEY = "TLS_CERT", "TLS_KEY"  # environment variables that contain the paths of the PEM files
FILES = {CERTIFICATE: "certificate.pem", KEY: "key.pem"}
SUBJECT = ("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1")
CURVE = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


def write_certificate(folder: Path) -> Mapping[str, str]:
    """Create a P-256 key (PKCS #8) and a self-signed certificate.

    Return a mapping from environment variable to file name. Raises EnvironmentLacksError if openssl fails.
    """
    paths = ("-keyout", str(folder / FILES[KEY]), "-out", str(folder / FILES[CERTIFICATE]))
    completed = process.run(["openssl", "req", "-x509", "-days", "3", *CURVE, *SUBJECT, *paths], seconds=30)
    if completed.status != 0:
        raise EnvironmentLacksError(
            f"openssl cannot create the certificate for TLS: {completed.stdout.strip()[-300:]}. Install openssl 1.1.1 "
            "or later"
        )
    return FILES

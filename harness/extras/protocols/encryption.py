"""Checks of test types with TLS: protocol versions, cipher suite, and the server's certificate."""

import ssl
from collections.abc import Iterator, Sequence
from contextlib import suppress

from harness.extras.protocols.certificates import CERTIFICATE
from harness.extras.protocols.items import ItemsEvidence
from harness.plan.testtypes.registry import TEST_TYPES
from harness.runtime import endpoint_of
from harness.verify.checks import Finding, check, types_where
from harness.verify.checks.evidence import Evidence, Exchange
from harness.verify.checks.verification_client import Client, VerificationTask

TLS = types_where(lambda test_type: test_type.tls)
CONNECTIONS = 3
VERSION = "TLSv1.3"
# TLS parameters that connections under load must negotiate, as the load generator reports them. With --tls-fixed, it
# offers only these parameters.
LOAD_PARAMETERS = "TLSv1_3 TLS13_AES_128_GCM_SHA256 X25519 {protocol} full"


def observe_encryption(task: VerificationTask, _: Client, evidence: ItemsEvidence) -> Sequence[Exchange]:
    """Open TLS connections, and record their parameters and whether the server presents tfb's certificate."""
    server = task.server
    assert server.inputs is not None  # noqa: S101 - the test type declares the certificate
    given = ssl.PEM_cert_to_DER_cert(server.inputs.path(CERTIFICATE).read_text(encoding="ascii"))
    for _number in range(CONNECTIONS):
        with suppress(OSError), endpoint_of(server, task.test_type).connect(task.timeout) as connection:
            assert isinstance(connection, ssl.SSLSocket)  # noqa: S101 - the test type uses TLS
            connection.do_handshake()
            version, protocol = connection.version() or "none", connection.selected_alpn_protocol() or "none"
            evidence.tls.append((version, protocol, connection.getpeercert(binary_form=True) == given))
    return ()


def _observed(evidence: Evidence) -> Sequence[tuple[str, str, bool]]:
    return evidence.extension.tls if isinstance(evidence.extension, ItemsEvidence) else ()


@check("tls.1", TLS, lambda evidence: bool(_observed(evidence) or evidence.request_counts))
def tls_parameters(evidence: Evidence) -> Iterator[Finding]:
    """Require TLS 1.3 and the right ALPN protocol. Under load, also require all of ``LOAD_PARAMETERS``."""
    required = "h2" if TEST_TYPES[evidence.test_type].protocol == "http2" else "http/1.1"
    for version, protocol, _ in _observed(evidence):
        if (version, protocol) != (VERSION, required):
            yield Finding(
                f"a connection has the wrong TLS parameters. Support TLS 1.3 and the ALPN protocol {required}",
                expected=f"{VERSION} {required}",
                actual=f"{version} {protocol}",
            )
    for parameters, number in (evidence.request_counts.tls_sessions if evidence.request_counts else {}).items():
        if parameters != (expected := LOAD_PARAMETERS.format(protocol=required)):
            yield Finding(
                f"{number} connections under load have the wrong TLS parameters. Support the expected ones",
                expected=expected,
                actual=parameters,
            )


@check("tls.2", TLS, lambda evidence: bool(_observed(evidence)))
def certificate_given(evidence: Evidence) -> Iterator[Finding]:
    """Require the certificate that tfb provides, because a handshake's CPU time depends on the type of key."""
    if not all(is_given for _, _, is_given in _observed(evidence)):
        yield Finding(
            "the server presents another certificate. Read the certificate in TLS_CERT and the key in TLS_KEY",
            expected="the certificate in TLS_CERT",
            actual="another certificate",
        )

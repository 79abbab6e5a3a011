"""A certificate authority of the test's own: certificates for a server and for clients, good and bad."""

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

PEM = serialization.Encoding.PEM


class Issued(NamedTuple):
    """A certificate with its key, in one file as servers and clients take it."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey
    file: Path

    @property
    def pem(self) -> str:
        return self.certificate.public_bytes(PEM).decode()

    @property
    def fingerprint(self) -> str:
        return self.certificate.fingerprint(hashes.SHA256()).hex()


class Authority:
    def __init__(self, folder: Path, name: str = "Test authority") -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self.certificate = self._signed(self._name, self._key, x509.BasicConstraints(ca=True, path_length=None))
        self.file = folder / f"{name.replace(' ', '-')}.pem"
        self.file.write_bytes(self.certificate.public_bytes(PEM))

    def issue(self, name: str, *, days: int = 1) -> Issued:
        """For 127.0.0.1 and localhost, valid until so many days from now."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        certificate = self._signed(subject, key, x509.BasicConstraints(ca=False, path_length=None), days)
        file = self._folder / f"{name}-{certificate.serial_number}.pem"
        private = key.private_bytes(PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        file.write_bytes(private + certificate.public_bytes(PEM))
        return Issued(certificate, key, file)

    def _signed(
        self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, kind: x509.BasicConstraints, days: int = 1
    ) -> x509.Certificate:
        end = datetime.now(UTC) + timedelta(days=days)
        names = [x509.IPAddress(ip_address("127.0.0.1")), x509.DNSName("localhost")]
        usage = x509.KeyUsage(  # from Python 3.13 on a certificate without it is refused
            digital_signature=not kind.ca,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            key_cert_sign=kind.ca,
            crl_sign=kind.ca,
            encipher_only=False,
            decipher_only=False,
        )
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(end - timedelta(days=10))
            .not_valid_after(end)
            .add_extension(kind, critical=True)
            .add_extension(usage, critical=True)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
            .sign(self._key, hashes.SHA256())
        )

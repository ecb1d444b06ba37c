"""Certificates for tests, made by the openssl command, and what a server shows by it."""
import os
import re
import ssl
import subprocess


def openssl(*arguments, check=True, stdin=""):
    done = subprocess.run(["openssl", *arguments], input=stdin, capture_output=True, text=True, timeout=30)
    if check and done.returncode != 0:
        raise AssertionError(f"openssl {' '.join(arguments)}:\n{done.stderr}")
    return done.stdout + done.stderr


class Authority:
    """Signs certificates; `ca` is its own, for those that are to believe it."""

    def __init__(self, folder, name="ca"):
        self.folder = folder
        self.ca = self.path(f"{name}.pem")
        self.key = self.path(f"{name}.key")
        openssl("req", "-x509", *self._key_options(self.key), "-out", self.ca, "-subj", f"/CN={name}", "-days", "30",
                "-addext", "keyUsage=critical,keyCertSign")

    def path(self, name):
        return os.path.join(self.folder, name)

    @staticmethod
    def _key_options(key):
        return ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key]

    def issue(self, certificate, key, *names, days=90):
        """A certificate for these names into these files of the folder, in place of what is there."""
        certificate, key = self.path(certificate), self.path(key)
        for file in (certificate, key):
            os.makedirs(os.path.dirname(file), exist_ok=True)
        kinds = ("IP" if re.fullmatch(r"[\d.]+", name) else "DNS" for name in names)
        openssl("req", "-x509", "-CA", self.ca, "-CAkey", self.key, *self._key_options(key), "-out", certificate,
                "-subj", f"/CN={names[0]}", "-days", str(days), "-addext", "basicConstraints=critical,CA:FALSE",
                "-addext", "subjectAltName=" + ",".join(f"{kind}:{name}" for kind, name in zip(kinds, names)))
        os.chmod(key, 0o600)


def client_context(ca):
    return ssl.create_default_context(cafile=ca)


def serial_of(file):
    return openssl("x509", "-in", file, "-noout", "-serial").strip()


def s_client(port, *options):
    """What `openssl s_client` tells of a handshake, whether it succeeds or not."""
    return openssl("s_client", "-connect", f"127.0.0.1:{port}", *options, check=False, stdin="Q\n")


def served_serial(port, name="site.test"):
    """The serial number of the certificate that is shown to who asks for `name`."""
    shown = re.search(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----\n",
                      s_client(port, "-servername", name), re.DOTALL)
    return openssl("x509", "-noout", "-serial", stdin=shown.group(0)).strip() if shown else None

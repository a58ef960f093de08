"""Makes certificates for the tests, with the `openssl` command: an authority, and what it signs. Elliptic keys, because they are quick."""

import os
import subprocess


class Authority:
    """A directory with ca.pem; `issue(name, subject)` puts name.pem and name.key beside it."""

    def __init__(self, directory, name="authority"):
        self.directory = str(directory)
        os.makedirs(self.directory, exist_ok=True)
        self.certificate = self.path("ca.pem")
        self._run(
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=" + name,
            "-keyout",
            self.path("ca.key"),
            "-out",
            self.certificate,
        )

    def path(self, name):
        return os.path.join(self.directory, name)

    def issue(self, name, subject, days=2):
        """(certificate, key) for 127.0.0.1 and localhost."""
        certificate, key, request, names = (self.path(name + ending) for ending in (".pem", ".key", ".csr", ".names"))
        with open(names, "w", encoding="ascii") as file:
            file.write("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
        self._run(
            "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", subject, "-keyout", key, "-out", request
        )
        self._run(
            "x509",
            "-req",
            "-in",
            request,
            "-CA",
            self.certificate,
            "-CAkey",
            self.path("ca.key"),
            "-CAcreateserial",
            "-days",
            str(days),
            "-extfile",
            names,
            "-out",
            certificate,
        )
        return certificate, key

    def _run(self, *arguments):
        done = subprocess.run(["openssl", *arguments], capture_output=True, text=True)
        if done.returncode:
            raise AssertionError("openssl %s: %s" % (" ".join(arguments), done.stderr))

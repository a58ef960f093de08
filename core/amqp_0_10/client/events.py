"""Reports of the client: the calls that an application overrides.

Laws: called from within `received`, `sent` and `tick`, one at a time; they may give commands, and must not move bytes.
"""


class Events:
    """Inherit and override; each does nothing by itself."""

    def opened(self):
        """The connection is open and its session attached: commands may be given."""

    def command(self, name, fields):
        """The peer's command without content, by its name in spec_0_10.COMMANDS."""

    def content(self, name, fields, header):
        """A command with a content begins: its fields and its header segment (bytes)."""

    def body(self, octets, is_last):
        """Octets of that content's body (bytes); `is_last`: the content is whole. A content without a body has one call with b""."""

    def completed(self, id_):
        """The peer has completed the command of this id, that `Client.command` was asked to `tell` about."""

    def room(self):
        """Octets have been sent: there is room for more."""

    def ended(self, code, text):
        """The connection is over: the error code of an exception (execution.exception, or connection.close), 0 where there is none."""

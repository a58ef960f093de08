"""The actions of states.LINK: frames of a link that is attached, and how it ends (sections 2.6.4 to 2.6.6).

Actions for frames get (link, fields of the performative, octets, where the payload begins, where it ends).
"""

from ..errors import ProtocolError
from . import dispositions
from .conditions import error_of, symbol_of


def refuse(condition, input_, state, link, *given):
    """Raise for a frame that a state does not allow."""
    raise ProtocolError(condition, "%s in the state '%s' of link '%s'" % (input_, state, link.name[:80]))


def flow(link, fields, octets, at, end):
    """A flow of a link (section 2.6.7)."""
    return link.flow(fields)


def transfer(link, fields, octets, at, end):
    """A transfer; false when it must wait, and then nothing has changed."""
    return link.transfer(fields, octets, at, end)


def detach(link, fields, octets, at, end):
    """Answer the peer's detach when the link's deliveries are back in their queue; false until then."""
    if not link.give_back() or fields["closed"] and not link.close():
        return link.protocol.go_on_later()
    link.leave()
    if not link.protocol.dynamic.link_ended(link):
        return link.protocol.go_on_later()
    link.session.forget(link)
    link.protocol.reply(link.session.number, "detach", {"handle": link.handle, "closed": fields["closed"]})
    return True


def send_detach(link, condition, text):
    """Detach, and close, for an error (section 2.6.5); frames of the link until the peer's detach are discarded."""
    broker, connection = link.broker, link.protocol.connection
    broker.counters["channel_errors"] += 1
    broker.inform(
        "%s: link '%s' of user '%s' detached with %s %s"
        % (connection.name, link.name[:80], connection.user.name, symbol_of(condition), text),
        True,
    )
    dispositions.write(link.session)  # transfers before the error were accepted
    link.leave()
    if not link.give_back():
        link.protocol.leaving.append(link)
        link.protocol.connection.wait_for_turn()
    link.protocol.reply(link.session.number, "detach", {"handle": link.handle, "closed": True, "error": error_of(condition, text)})


def detached(link, fields, octets, at, end):
    """Forget the link: the peer has answered our detach, or its own has crossed ours."""
    if link in link.protocol.leaving:
        return link.protocol.go_on_later()
    if not link.protocol.dynamic.link_ended(link):
        return link.protocol.go_on_later()
    link.session.forget(link)
    return True


def release(link):
    """Release the link: its session ends."""
    link.leave()
    link.drop()


def ignore(link, *given):
    """Discard a frame that a peer has sent before it saw our detach."""

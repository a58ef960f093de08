"""The class dtx: sessions that work in branches of distributed transactions (branches.py), and what a transaction manager asks of these."""

from ..errors import NOT_ALLOWED, NOT_FOUND, ProtocolError
from ..memory import layout
from ..parts import needed
from . import branches, definitions
from .conditions import ILLEGAL_ARGUMENT, ILLEGAL_STATE, SessionError


def xid_of(fields):
    """The key of a branch. Raises illegal-argument where there is none."""
    given = fields["xid"]
    if given is None or given["global_id"] is None:
        raise SessionError(ILLEGAL_ARGUMENT, "a branch without xid")
    return (given["format"] or 0, bytes(given["global_id"]), bytes(given["branch_id"] or b""))


def branch_of(session, fields, is_free=True):
    """The branch of an xid. Raises not-found; illegal-state where sessions work in it yet and `is_free`."""
    branch = branches.of(session.broker).by_xid.get(xid_of(fields))
    if branch is None or branch.user.name != session.connection.user.name and "administrator" not in session.connection.user.tags:
        raise ProtocolError(NOT_FOUND, "there is no branch of this xid")
    if is_free and branch.associated:
        raise SessionError(ILLEGAL_STATE, "a branch that a session works in")
    return branch


def ended_branch_of(session, fields):
    """The same, of a branch whose work is done: a session that has suspended it works in it yet. One may be rolled back all the same, as
    transaction managers do whose time is over."""
    branch = branch_of(session, fields)
    if branch.suspended:
        raise SessionError(ILLEGAL_STATE, "a branch that a session has suspended")
    return branch


def check_selected(session):
    """Raise illegal-state for a session without dtx.select."""
    if not session.is_dtx:
        raise SessionError(ILLEGAL_STATE, "the session is not selected for distributed transactions (dtx.select)")


def dtx_select(session, fields):
    """Select: "at least once on a session before using XA demarcation operations"."""
    if session.incoming.transaction is not None and not session.is_dtx:
        raise SessionError(ILLEGAL_STATE, "dtx.select of a session with tx.select")
    needed("broker.transaction", "transactions")
    session.is_dtx = True
    session.broker.tables.channels[session.handle + layout.CHANNEL_PLAIN] = 0


def dtx_start(session, fields):
    """Start: what is done from here on is done in the branch."""
    check_selected(session)
    if session.incoming.transaction is not None:
        raise SessionError(ILLEGAL_STATE, "dtx.start in a branch")
    if fields["join"] and fields["resume"]:
        raise ProtocolError(NOT_ALLOWED, "dtx.start with join and resume")
    there = branches.of(session.broker)
    if fields["join"] or fields["resume"]:
        branch = branch_of(session, fields, False)
        if branch.state != "active" or branch.sender is not None:
            raise SessionError(ILLEGAL_STATE, "dtx.start of a branch that is prepared, or whose commit takes effect")
        if fields["resume"] and session not in branch.suspended:
            raise SessionError(ILLEGAL_STATE, "dtx.start with resume of a branch that the session has not suspended")
    else:
        xid = xid_of(fields)
        if xid in there.by_xid:
            raise ProtocolError(NOT_ALLOWED, "a branch of this xid is there already")
        branch = there.make(xid, session.connection.user)
    if session in branch.suspended:
        branch.suspended.remove(session)
    if branch.doom:
        return {"status": branch.doom}
    branch.associated.append(session)
    session.incoming.transaction = branch
    return {"status": branches.OK}


def dtx_end(session, fields):
    """End: the session works in the branch no longer; with suspend, for a while."""
    check_selected(session)
    if fields["fail"] and fields["suspend"]:
        raise ProtocolError(NOT_ALLOWED, "dtx.end with fail and suspend")
    branch = branches.of(session.broker).by_xid.get(xid_of(fields))
    if branch is not None and session in branch.suspended and not fields["suspend"]:
        branch.suspended.remove(session)
    elif branch is not None and session in branch.associated:
        branch.associated.remove(session)
        session.incoming.transaction = None
    else:
        raise SessionError(ILLEGAL_STATE, "dtx.end of a branch that the session does not work in")
    if fields["suspend"]:
        branch.suspended.append(session)
    if fields["fail"]:
        branches.of(session.broker).doom(branch, branches.RBROLLBACK)
    return {"status": branch.doom}


def dtx_prepare(session, fields):
    """Prepare: "it is guaranteed that the transaction branch may be either committed or rolled back regardless of failures"."""
    there, branch = branches.of(session.broker), ended_branch_of(session, fields)
    if branch.state != "active":
        raise SessionError(ILLEGAL_STATE, "dtx.prepare of a branch that is prepared")
    if branch.doom:
        there.forget(branch)
        return {"status": branch.doom}
    if branch.is_empty():
        there.forget(branch)
        return {"status": branches.RDONLY}
    if definitions.must_wait(session):
        return False
    return {"status": there.prepare(branch)}


def dtx_commit(session, fields):
    """Commit: "Any produced messages are made available and any consumed messages are discarded"; false: not all of it yet."""
    there, branch = branches.of(session.broker), ended_branch_of(session, fields)
    if branch.state == "decided":
        return {"status": branch.outcome}
    if branch.sender is None and (branch.state == "prepared") == fields["one_phase"]:
        raise SessionError(ILLEGAL_STATE, "dtx.commit with one-phase is for a branch that is not prepared, and for no other")
    if branch.doom:
        there.forget(branch)
        return {"status": branch.doom}
    status = session.publishing(lambda: there.commit(branch, session.connection))
    session.committing = branch if status is None and branch.sender is not None else None
    return False if status is None else {"status": status}


def dtx_rollback(session, fields):
    """Rollback: "Any produced messages are discarded and any consumed messages are re-enqueued"."""
    there, branch = branches.of(session.broker), branch_of(session, fields)
    if branch.state == "decided":
        return {"status": branch.outcome}
    if branch.sender is not None:
        return session.session.go_on_later()  # another session's commit takes effect
    there.forget(branch)
    return {"status": branch.doom if branch.doom == branches.RBTIMEOUT else branches.OK}


def dtx_forget(session, fields):
    """Forget a branch that came to its end by a heuristic decision."""
    branch = branch_of(session, fields)
    if branch.state != "decided":
        raise SessionError(ILLEGAL_STATE, "dtx.forget of a branch without heuristic decision")
    branches.of(session.broker).forget(branch)


def dtx_recover(session, fields):
    """Recover: the xids of branches that are prepared, or decided by a heuristic."""
    there = branches.of(session.broker).by_xid
    rows = [each for each in there if there[each].state != "active" and there[each].user.name == session.connection.user.name]
    return {"in_doubt": [{"format": each[0], "global_id": each[1], "branch_id": each[2]} for each in rows]}


def dtx_get_timeout(session, fields):
    """Get-timeout; 0: none."""
    return {"timeout": branch_of(session, fields, False).timeout_s}


def dtx_set_timeout(session, fields):
    """Set-timeout: in seconds from the start of the branch; 0: the default."""
    branch = branch_of(session, fields, False)
    branch.timeout_s = fields["timeout"] or branches.default_timeout_s(session.broker)


def left(session):
    """A session ends: branches that it works in, or has suspended, can only be rolled back."""
    if not session.is_dtx:
        return
    there = branches.of(session.broker)
    if session.committing is not None:
        branch, session.committing = session.committing, None
        there.finish(branch)
    for branch in list(there.by_xid.values()):
        if session in branch.associated or session in branch.suspended:
            branch.associated = [each for each in branch.associated if each is not session]
            branch.suspended = [each for each in branch.suspended if each is not session]
            there.doom(branch, branches.RBROLLBACK)
    session.incoming.transaction = None

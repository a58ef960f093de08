"""State machines as tables, with the one look-up that all of them share. tools/generate_states.py draws them: core/STATES.md.

    row     (state, input, next state, action)     four texts; a table is a tuple of rows
    machine any object with the attribute `state`
    actions a module or an object that has a function for each action of the table

Laws
- The first row that fits counts. `*` as a state fits every state, an input that ends with `*` fits every input that begins so, `*` as
  the next state is the state that the machine is in.
- Each input has a row in each state (tests/unit/test_states.py). What a peer may not send has a row with a condition of core/errors.py
  behind `!` as its action, and is given to the action `refuse`.
- The machine is in the next state while the action runs, so that an action may give its machine a further input, which then has the
  last word. An action that raises, or answers False because it has to wait, leaves the machine in the state before.
"""

from .shim import MICROPYTHON

# Rows that have been looked up, with their tables: by id of the table, state and input. Boards look again, and keep the heap.
KNOWN: dict = {}


def find(table, state, input_):
    """The first row of `table` that fits a state and an input (texts). Raises KeyError for an input that the table has no row for."""
    for row in table:
        if row[0] == state or row[0] == "*":
            name = row[1]
            if name == input_ or (name[-1] == "*" and input_.startswith(name[:-1])):
                if not MICROPYTHON:
                    KNOWN[(id(table), state, input_)] = row, table
                return row
    raise KeyError(state + ", " + input_)


def step(machine, table, actions, input_, *given):
    """Let `machine` do what its table says of an input: what the action answers, which is called with `given`. An input that is refused is
    given to `actions.refuse(condition, input_, state, *given)`, which raises."""
    before = machine.state
    known = KNOWN.get((id(table), before, input_))
    _, _, after, action = find(table, before, input_) if known is None else known[0]
    if action[0] == "!":
        actions.refuse(action[1:], input_, before, *given)
    if after != "*":
        machine.state = after
    answer = False
    try:
        answer = getattr(actions, action)(*given)
    finally:
        if answer is False and machine.state == after:
            machine.state = before
    return answer

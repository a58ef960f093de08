"""CPython's own forms of what hot.py does to each block of a message. No board carries this file.

Blocks that lie one behind the other in the arena, as those of a large body mostly do, are copied together.
tests/accel/test_quicker.py holds the forms together.
"""

from array import array

from .layout import MESSAGE_FILLED, MESSAGE_FIRST, MESSAGE_LAST, POOL_BLOCKS, STATE_BLOCK_SIZE, STATE_CURSOR_BLOCK, STATE_CURSOR_OFFSET


def append(arena, blocks, messages, state, message, source, start, size):
    """See hot.append."""
    block_size = state[STATE_BLOCK_SIZE]
    used = messages[message + MESSAGE_FILLED] % block_size
    messages[message + MESSAGE_FILLED] += size
    block = messages[message + MESSAGE_LAST]
    while size > 0:
        if used == 0:
            fresh = state[POOL_BLOCKS]
            if fresh >= 0:
                state[POOL_BLOCKS] = blocks[fresh]
            else:
                fresh = state[POOL_BLOCKS + 1]
                state[POOL_BLOCKS + 1] = fresh + 1
            if block >= 0:
                blocks[block] = fresh
            else:
                messages[message + MESSAGE_FIRST] = fresh
            block = fresh
        at = block * block_size + used
        room = block_size - used
        if room < size:
            last = together(blocks, state, block, (size - room + block_size - 1) // block_size)
            room += (last - block) * block_size
            block = last
        if room > size:
            room = size
        arena[at : at + room] = source[start : start + room]
        start += room
        size -= room
        used = 0
    messages[message + MESSAGE_LAST] = block


def together(blocks, state, block, most):
    """Append up to `most` blocks to a chain that ends with `block`, as long as each is the next in the arena: the last of them."""
    free = state[POOL_BLOCKS]
    if free < 0:
        fresh = state[POOL_BLOCKS + 1]
        if fresh != block + 1:
            return block
        last = block + most
        blocks[block:last] = array("i", range(fresh, last + 1))
        state[POOL_BLOCKS + 1] = last + 1
        return last
    if free != block + 1:
        return block
    blocks[block] = free
    last = block + most
    while free == block + 1 and block < last:
        block = free
        free = blocks[block]
    state[POOL_BLOCKS] = free
    return block


def extract(arena, blocks, state, block, offset, target, at, size):
    """See hot.extract."""
    block_size = state[STATE_BLOCK_SIZE]
    while size > 0:
        if offset >= block_size:
            offset -= block_size
            block = blocks[block]
            continue
        start = block * block_size + offset
        room = block_size - offset
        while room < size and blocks[block] == block + 1:
            block += 1
            room += block_size
        if room > size:
            offset = block_size - room + size
            room = size
        else:
            offset = block_size
        target[at : at + room] = arena[start : start + room]
        at += room
        size -= room
    state[STATE_CURSOR_BLOCK] = block
    state[STATE_CURSOR_OFFSET] = offset

/* Dead letters that need no history (core/queue/letters.py), made without Python: what a queue's letters for one reason and one route have in
 * common is in a row, taught by Python (burying.py); a message for which there is none, or whose letter needs a decision, is Python's. The
 * functions here only plan (may_...): leveret_bury then publishes the letter planned last. */
#ifndef LEVERET_LETTERS_H
#define LEVERET_LETTERS_H

#include "hot.h"
#include "layout.h"

enum { LETTER_EXPIRED, LETTER_MAXLEN, LETTER_REJECTED }; /* REASONS of core/queue/dead_letters.py */

/* The entry at the head of a queue has expired: 0: its dead letter is published; 1: Python has to; 2: the round has had its part of them. */
int32_t leveret_expire_letter(const leveret_tables *t, int32_t queue, int32_t entry);

/* Whether an unsettled entry that is rejected needs no decision. */
int32_t leveret_may_reject(const leveret_tables *t, int32_t entry);

/* The same of the entry that a queue at its maximum drops for a message with such a body, of so many blocks, that is `logged` (as may_push answers),
 * or of that message itself. */
int32_t leveret_may_drop_head(const leveret_tables *t, int32_t queue, int32_t body, int32_t block_total, int32_t logged);

/* Publish the planned dead letter of an entry, which is in no list, and drop the entry. */
void leveret_bury(const leveret_tables *t, int32_t entry);

#endif

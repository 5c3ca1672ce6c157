/* The calls of a limiter. */
#ifndef BELAY_LIMIT_COMMAND_H
#define BELAY_LIMIT_COMMAND_H

#include "limit/state.h"

typedef struct belay__limit_command {
  belay__limiter_verb_t verb;
  belay_bytes_t key;
  int64_t cost;
  const belay_reservation_t *reservation; /* NULL: none */
  char extra[BELAY__RECEIPT_MAX];         /* Content of ARGV[4] */
  size_t extra_len;
} belay__limit_command_t;

/* Append a number to ARGV[4]. */
void belay__limit_command_number(belay__limit_command_t *command, int64_t value);

/* With the policy of a log: draw the id of the entries that the command adds, and append it to
 * ARGV[4]. With other policies *id becomes 0. Returns 0 or the error of the system. */
int belay__limit_command_id(const belay_limiter_t *limiter, belay__limit_command_t *command,
                            int64_t *id);

/* The command that gives back some tokens of a receipt. key: as in a command. */
belay__limit_command_t belay__limit_command_refund(const belay_limiter_t *limiter,
                                                   belay_bytes_t key,
                                                   const belay_receipt_t *receipt, int64_t tokens);

/* Build the call; NULL if memory is out. */
belay__call_t *belay__limit_command_call(const belay_limiter_t *limiter,
                                         const belay__limit_command_t *command);

/* Read the reply to a fetch of a token lease: numbers->answer becomes -1, or 1 to `asked`. Returns
 * false if the reply is invalid; the connection is then no longer trusted. */
bool belay__limit_command_read_grant(const belay__policy_t *policy, belay__call_t *call,
                                     const belay__reply_t *reply, int64_t asked,
                                     belay__limit_reply_t *numbers);

/* true if the operation may leave room for more takes than before. */
bool belay__limit_command_frees(belay__limiter_verb_t verb);

#endif /* BELAY_LIMIT_COMMAND_H */

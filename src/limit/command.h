/* The commands of a limiter, and the calls that send them to the server. */
#ifndef BELAY_LIMIT_COMMAND_H
#define BELAY_LIMIT_COMMAND_H

#include "limit/state.h"

typedef struct belay__limit_command {
  belay__limiter_verb_t verb;
  belay_bytes_t key;
  const belay__call_t *like; /* Call of the same limiter with the same key; NULL: use `key` */
  int64_t cost;
  const belay_reservation_t *reservation; /* NULL: none */
  char extra[BELAY__RECEIPT_MAX];         /* Content of ARGV[4]; empty: there is none */
  size_t extra_len;
} belay__limit_command_t;

/* Append a number to ARGV[4]. */
void belay__limit_command_number(belay__limit_command_t *command, int64_t value);

/* If the limiter's policy is a log: draw the id of the entries that the command adds, set *id, and
 * append the id to ARGV[4]. With other policies *id becomes 0 and ARGV[4] is unchanged. Returns 0,
 * or the system's error if it has no random bytes. */
int belay__limit_command_id(const belay_limiter_t *limiter, belay__limit_command_t *command,
                            int64_t *id);

/* Make the command that gives back `tokens` tokens of a receipt. The command refers to the bytes of
 * `key`, which must stay valid. */
belay__limit_command_t belay__limit_command_refund(const belay_limiter_t *limiter,
                                                   belay_bytes_t key,
                                                   const belay_receipt_t *receipt, int64_t tokens);

/* Build the call of a command under the present policy. Returns NULL if memory is out. */
belay__call_t *belay__limit_command_call(const belay_limiter_t *limiter,
                                         const belay__limit_command_t *command);

/* Read the reply to a fetch of a token lease. numbers->answer becomes -1 if the fetch was denied,
 * else the number of granted tokens, 1 to `asked`. An invalid reply is passed to
 * belay__call_distrust(), and the function returns false. */
bool belay__limit_command_read_grant(const belay__policy_t *policy, belay__call_t *call,
                                     const belay__reply_t *reply, int64_t asked,
                                     belay__limit_reply_t *numbers);

/* true if a take that was denied before this operation may be admitted after it. */
bool belay__limit_command_frees(belay__limiter_verb_t verb);

#endif /* BELAY_LIMIT_COMMAND_H */

/* The calls of a limiter: what its scripts are called with, and how the tokens that a call grants are read. */
#ifndef BELAY_LIMIT_COMMAND_H
#define BELAY_LIMIT_COMMAND_H

#include "limit/state.h"

typedef struct belay__limit_command {
  belay__limiter_verb_t verb;
  const char *key;
  size_t key_len;
  int64_t cost;
  const belay_reservation_t *reservation; /* NULL: none */
  char extra[BELAY__RECEIPT_MAX];         /* ARGV[4] */
  size_t extra_len;
} belay__limit_command_t;

/* Appends a number to ARGV[4]. */
void belay__limit_command_number(belay__limit_command_t *command, int64_t value);

/* Under the policy of a log: draws the id of the entries that the command adds, and appends it to ARGV[4]. Under another
 * one *id is 0. Returns 0 or the error of the system. */
int belay__limit_command_id(const belay_limiter_t *limiter, belay__limit_command_t *command,
                            int64_t *id);

/* The command that gives back some tokens of what a receipt is for. key: as in a command. */
belay__limit_command_t belay__limit_command_refund(const belay_limiter_t *limiter, const char *key,
                                                   size_t key_len, const belay_receipt_t *receipt,
                                                   int64_t tokens);

/* The call; NULL if memory is out. */
belay__call_t *belay__limit_command_call(const belay_limiter_t *limiter,
                                         const belay__limit_command_t *command);

/* The key that a script was called for; false if it is none of this limiter's. */
bool belay__limit_command_key_of(const belay_limiter_t *limiter, const belay__call_t *call,
                                 char out[3 * BELAY_LIMITER_KEY_MAX], size_t *len);

/* Reads the reply to a BELAY__LIMITER_LEASE for `asked` tokens: numbers->answer is -1, or 1 to asked. False: the reply is
 * none, and the connection is not trusted any more. */
bool belay__limit_command_read_grant(const belay__policy_t *policy, belay__call_t *call,
                                     const belay__reply_t *reply, int64_t asked,
                                     belay__limit_reply_t *numbers);

#endif /* BELAY_LIMIT_COMMAND_H */

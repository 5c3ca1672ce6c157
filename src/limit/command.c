#include "limit/command.h"

#include <assert.h>
#include <string.h>

#include "core/key/bytes.h"
#include "core/key/key.h"
#include "scripts.gen.h"

#define RESERVATION_TAIL "}::r::"

bool belay__limit_command_frees(belay__limiter_verb_t verb) {
  return verb == BELAY__LIMITER_REFUND || verb == BELAY__LIMITER_RESET ||
         verb == BELAY__LIMITER_BAN || verb == BELAY__LIMITER_CANCEL;
}

/* ---- ARGV[4] ---- */

void belay__limit_command_number(belay__limit_command_t *command, int64_t value) {
  assert(command->extra_len + 8 <= sizeof command->extra);
  (void)belay__policy_put(command->extra + command->extra_len, value);
  command->extra_len += 8;
}

int belay__limit_command_id(const belay_limiter_t *limiter, belay__limit_command_t *command,
                            int64_t *id) {
  belay_t *belay = belay__limiter_belay(limiter);
  *id = 0;
  if (!belay__policy_is_log(limiter->policy))
    return 0;
  int error = belay->host->random(belay, id, sizeof *id);
  assert(command->extra_len + 2 * sizeof *id <= sizeof command->extra);
  (void)belay__hex(command->extra + command->extra_len, id, sizeof *id);
  command->extra_len += 2 * sizeof *id;
  return error;
}

belay__limit_command_t belay__limit_command_refund(const belay_limiter_t *limiter,
                                                   belay_bytes_t key,
                                                   const belay_receipt_t *receipt, int64_t tokens) {
  belay__limit_command_t command = {.verb = BELAY__LIMITER_REFUND, .key = key, .cost = tokens};
  command.extra_len = belay__policy_put_receipt(limiter->policy, receipt, command.extra);
  return command;
}

/* ---- the call ---- */

/* Returns the suffix of the call's second key, which is the key of a log's ban or of a reservation.
 * NULL: the call has only one key. */
static const char *second_tail(const belay__limit_command_t *command, bool log, char out[64]) {
  const belay_reservation_t *reservation = command->reservation;
  if (log)
    return "}::ban";
  if (reservation == NULL)
    return NULL;
  memcpy(out, RESERVATION_TAIL, sizeof RESERVATION_TAIL);
  *belay__hex(out + sizeof RESERVATION_TAIL - 1, reservation->id, sizeof reservation->id) = '\0';
  return out;
}

static void put_keys(belay__call_t *call, const belay_limiter_t *limiter,
                     const belay__limit_command_t *command, const char *tail) {
  const belay_bytes_t key = command->key;
  if (command->like != NULL)
    belay__handle_arg_like(call, command->like);
  else
    belay__handle_arg(&limiter->handle, call, key.data, key.len, "}");
  if (tail != NULL)
    belay__handle_arg(&limiter->handle, call, key.data, key.len, tail);
}

static const char *const words[] = {
    [BELAY__LIMITER_TAKE] = "take",       [BELAY__LIMITER_LEASE] = "slice",
    [BELAY__LIMITER_PEEK] = "peek",       [BELAY__LIMITER_PENALTY] = "penalty",
    [BELAY__LIMITER_REFUND] = "refund",   [BELAY__LIMITER_BAN] = "ban",
    [BELAY__LIMITER_RESERVE] = "reserve", [BELAY__LIMITER_CANCEL] = "cancel",
    [BELAY__LIMITER_WAIT] = "reserve",
};

belay__call_t *belay__limit_command_call(const belay_limiter_t *limiter,
                                         const belay__limit_command_t *command) {
  const belay__policy_t *policy = limiter->policy;
  bool log = belay__policy_is_log(policy);
  char space[64];
  const char *tail = second_tail(command, log, space);
  if (command->verb == BELAY__LIMITER_RESET) {
    belay__call_t *call = belay__handle_command(&limiter->handle, "DEL", log ? 3 : 2);
    put_keys(call, limiter, command, tail);
    return call;
  }
  size_t args = limiter->time != 0 ? 5 : command->extra_len > 0 ? 4 : 3;
  belay__call_t *call =
      belay__handle_script(&limiter->handle, log ? &belay__script_limit_log : &belay__script_limit,
                           tail != NULL ? 2 : 1, args);
  put_keys(call, limiter, command, tail);
  belay__call_arg(call, words[command->verb], strlen(words[command->verb]));
  belay__call_arg(call, policy->packed, belay__policy_packed_len(policy));
  belay__call_arg_int(call, command->cost);
  if (args > 3)
    belay__call_arg(call, command->extra, command->extra_len);
  if (args > 4)
    belay__call_arg_int(call, limiter->time);
  return call;
}

bool belay__limit_command_read_grant(const belay__policy_t *policy, belay__call_t *call,
                                     const belay__reply_t *reply, int64_t asked,
                                     belay__limit_reply_t *numbers) {
  bool good = belay__policy_read(policy, reply, NULL, numbers) && numbers->answer != 0 &&
              numbers->answer <= asked;
  if (!good)
    belay__call_distrust(call, reply);
  return good;
}

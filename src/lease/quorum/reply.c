#include "lease/quorum/reply.h"

#include <assert.h>

#include "belay/rwlock.h"
#include "lease/quorum/command.h"

/* ---- possible effects ---- */

/* Notes the possible effect of an acquire without a reply: the server may have executed it, or may
 * execute it later, so the token needs an undo. With a quarantine, later replies to extends do not
 * count at once: see `restored`. */
void belay__reply_note_lost_acquire(belay__member_t *member, uint32_t epoch) {
  member->may_exist = true;
  member->has_place |= belay__member_lease(member)->active->ticket != 0;
  member->restored |= belay__member_lease(member)->config->quarantine;
  if (epoch > member->epoch)
    member->epoch = epoch;
}

/* Notes that the server had lost the lease, and has it again or may get it again. From now on no
 * member that leads to this server counts. */
static void note_restored(belay__member_t *member) {
  belay__lease_t *lease = belay__member_lease(member);
  for (unsigned i = 0; i < lease->members; i++) {
    belay__member_t *other = &lease->member[i];
    if (other != member && (member->server_mark == 0 || other->server_mark != member->server_mark))
      continue;
    other->restored = true;
    other->known_restored = false;
    other->until = 0;
  }
}

void belay__reply_note_lost(belay__member_t *member, uint32_t epoch) {
  bool retake = belay__member_lease(member)->active->round == BELAY__ROUND_EXTEND && member->retake;
  if (retake)
    note_restored(member);
  if (retake || belay__member_lease(member)->active->round == BELAY__ROUND_ACQUIRE)
    belay__reply_note_lost_acquire(member, epoch);
  bool lowers = belay__member_lease(member)->active->round == BELAY__ROUND_EXTEND &&
                belay__member_lease(member)->active->sent_mode == BELAY__EXTEND_AS_READ;
  if (lowers && epoch > belay__member_exchange(member)->downgrade_epoch)
    belay__member_exchange(member)->downgrade_epoch = epoch;
}

/* Notes that the server does not have the lease. The token may exist there again only if the server
 * can still execute an older call. */
static void note_gone(belay__member_t *member, const belay__call_t *call) {
  member->may_exist = belay__client_may_run(belay__member_client(member), call, member->epoch);
  member->until = 0;
}

void belay__reply_note_server(belay__member_t *member) {
  const belay__server_info_t *server = belay__member_server(member);
  bool known = server != NULL && server->epoch == member->sent_on;
  member->server_mark = known ? server->mark : 0;
}

/* ---- replies ---- */

int belay__reply_read_acquired(belay__member_t *member, const belay__call_t *call,
                               const belay__result_t *result) {
  belay__lease_t *lease = belay__member_lease(member);
  int64_t holder_ms = -1;
  int status = result->error;
  if (result->outcome == BELAY_OUTCOME_REPLY)
    status = lease->config->kind->acquired(lease, call, result->reply, &holder_ms);
  belay__active_t *active = lease->active;
  if (holder_ms >= 0 && (active->holder_ms < 0 || holder_ms < active->holder_ms))
    active->holder_ms = holder_ms;
  if (result->outcome == BELAY_OUTCOME_REPLY)
    member->has_place = lease->active->ticket != 0 && status != 0; /* a grant removes the ticket */
  if (status == 0 || status == BELAY_EDUPLICATE)
    member->may_exist = true;
  if (status == BELAY_EPROTO || result->outcome == BELAY_OUTCOME_UNKNOWN)
    belay__reply_note_lost_acquire(member, call->epoch);
  return status;
}

/* True if the only key has another type, so that the server does not have the lease. */
static bool is_foreign(const belay__lease_t *lease, const belay__result_t *result) {
  return result->error == BELAY_EWRONGTYPE && belay__kind_has_one_key(lease->config->kind);
}

/* Reads the reply of an extend. */
static int read_extended(belay__member_t *member, const belay__call_t *call,
                         const belay__result_t *result) {
  belay__lease_t *lease = belay__member_lease(member);
  int64_t most = lease->config->kind->extended != NULL ? INT32_MAX : 2, n = -1;
  bool answered = result->outcome == BELAY_OUTCOME_REPLY &&
                  belay__reply_integer(result->reply, 0, most, &n) && (n != 2 || member->retake);
  if (is_foreign(lease, result)) {
    n = 0;
  } else if (!answered) {
    if (result->outcome != BELAY_OUTCOME_NOT_SENT)
      belay__reply_note_lost(member, call->epoch);
    return result->outcome == BELAY_OUTCOME_REPLY ? BELAY_EPROTO : result->error;
  }
  if (n == 0) {
    note_gone(member, call);
    return BELAY_ENOTOWNER;
  }
  member->may_exist = true;
  if (n == 2) {
    belay__reply_note_server(member);
    note_restored(member);
    return BELAY__RESTORED;
  }
  member->retake = false; /* the key was not gone */
  int status =
      n > 2 && lease->config->kind->extended != NULL ? lease->config->kind->extended(lease, n) : 0;
  bool writes = lease->active->sent_mode != BELAY__EXTEND_AS_READ;
  if (writes && status == 0 &&
      belay__client_may_run(belay__member_client(member), call,
                            belay__member_exchange(member)->downgrade_epoch))
    status = BELAY_EUNKNOWN; /* an older downgrade can still make the writer a reader */
  if (writes && status != 0 && lease->mode == BELAY_RWLOCK_WRITE)
    member->until = 0;
  return status;
}

/* Reads the reply of a release. */
static int read_released(belay__member_t *member, const belay__call_t *call,
                         const belay__result_t *result) {
  int64_t n = 0;
  bool answered =
      result->outcome == BELAY_OUTCOME_REPLY && belay__release_read(call, result->reply, &n);
  if (!answered && !is_foreign(belay__member_lease(member), result))
    return result->outcome == BELAY_OUTCOME_REPLY ? BELAY_EPROTO : result->error;
  note_gone(member, call);
  belay__member_lease(member)->active->notified = n > 0 ? (uint32_t)n - 1 : 0;
  return n > 0 ? 0 : BELAY_ENOTOWNER;
}

/* Reads the reply of a READ round. The lease's fencing number becomes the largest number of all
 * replies. */
static int read_number(belay__member_t *member, const belay__result_t *result) {
  belay__lease_t *lease = belay__member_lease(member);
  uint64_t number;
  if (result->outcome != BELAY_OUTCOME_REPLY)
    return result->error;
  if (!belay__reply_number(result->reply, 1, BELAY__FENCE_MAX, &number))
    return BELAY_EPROTO;
  if (number > belay__lease_fence(lease))
    belay__lease_set_fence(lease, number);
  return 0;
}

static int read_accepted(const belay__result_t *result) {
  int64_t accepted;
  if (result->outcome != BELAY_OUTCOME_REPLY)
    return result->error;
  if (!belay__reply_integer(result->reply, 0, 1, &accepted))
    return BELAY_EPROTO;
  return accepted == 1 ? 0 : BELAY_EFENCED;
}

int belay__reply_read(belay__member_t *member, const belay__call_t *call,
                      const belay__result_t *result) {
  switch ((belay__round_t)belay__member_lease(member)->active->round) {
  case BELAY__ROUND_ACQUIRE:
    return belay__reply_read_acquired(member, call, result);
  case BELAY__ROUND_READ:
    return read_number(member, result);
  case BELAY__ROUND_ACCEPT:
    return read_accepted(result);
  case BELAY__ROUND_EXTEND:
    return read_extended(member, call, result);
  case BELAY__ROUND_RELEASE:
    return read_released(member, call, result);
  case BELAY__ROUND_NONE:
    break;
  }
  assert(false && "a reply without a round");
  return BELAY_EPROTO;
}

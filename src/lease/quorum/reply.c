#include "lease/quorum/reply.h"

#include <assert.h>

#include "belay/rwlock.h"
#include "lease/quorum/command.h"

/* ---- what a call may have left ------------------------------------------------------------------------- */

/* A call was not answered that takes the lease: it may have, or may do so yet. A vote it is not. */
void belay__reply_note_lost_acquire(belay__member_t *member, uint32_t epoch) {
  member->maybe = true;
  member->placed |= belay__member_lease(member)->ticket != 0;
  member->fresh |= belay__member_lease(member)->terms->quarantine;
  if (epoch > member->epoch)
    member->epoch = epoch;
}

/* Its server had lost it, and has it again, or may soon: that does not count, whichever members lead there. */
static void note_set_again(belay__member_t *member) {
  belay__lease_t *lease = belay__member_lease(member);
  for (unsigned i = 0; i < lease->members; i++) {
    belay__member_t *other = &lease->member[i];
    if (other != member && (member->voter == 0 || other->voter != member->voter))
      continue;
    other->fresh = true;
    other->known_back = false;
    other->until = 0;
  }
}

/* The same for the present round's call. */
void belay__reply_note_lost(belay__member_t *member, uint32_t epoch) {
  bool retake = belay__member_lease(member)->round == BELAY__ROUND_EXTEND && member->retake;
  if (retake)
    note_set_again(member);
  if (retake || belay__member_lease(member)->round == BELAY__ROUND_ACQUIRE)
    belay__reply_note_lost_acquire(member, epoch);
  bool lowers = belay__member_lease(member)->round == BELAY__ROUND_EXTEND &&
                belay__member_lease(member)->asked == BELAY__ASKED_READ;
  if (lowers && epoch > member->lowered)
    member->lowered = epoch;
}

/* It is not there any more, unless an older call is still to be executed. */
static void note_gone(belay__member_t *member, const belay__call_t *call) {
  member->maybe = belay__client_ghost(member->client, call, member->epoch);
  member->until = 0;
}

/* Notes who has said yes. */
void belay__reply_note_voter(belay__member_t *member) {
  const belay__server_info_t *server = belay__member_server(member);
  bool known = server != NULL && server->epoch == member->sent_on;
  member->voter = known ? server->mark : 0;
}

/* ---- replies ------------------------------------------------------------------------------------------- */

int belay__reply_read_acquired(belay__member_t *member, const belay__call_t *call,
                               const belay__result_t *result) {
  belay__lease_t *lease = belay__member_lease(member);
  int64_t holder_ms = -1;
  int status = result->error;
  if (result->outcome == BELAY_OUTCOME_REPLY)
    status = lease->terms->kind->acquired(lease, call, result->reply, &holder_ms);
  belay__bid_t *bid = lease->bid; /* NULL: the others have granted it, and that was told */
  if (bid != NULL && holder_ms >= 0 && (bid->holder_ms < 0 || holder_ms < bid->holder_ms))
    bid->holder_ms = holder_ms;
  if (result->outcome == BELAY_OUTCOME_REPLY)
    member->placed = lease->ticket != 0 && status != 0; /* a grant takes it out of the queue */
  if (status == 0 || status == BELAY_EDUPLICATE)
    member->maybe = true;
  if (status == BELAY_EPROTO || result->outcome == BELAY_OUTCOME_UNKNOWN)
    belay__reply_note_lost_acquire(member, call->epoch);
  return status;
}

/* A key of another type is not our key. */
static bool is_foreign(const belay__lease_t *lease, const belay__result_t *result) {
  return result->error == BELAY_EWRONGTYPE && belay__kind_has_one_key(lease->terms->kind);
}

/* What an extend replied. */
static int read_extended(belay__member_t *member, const belay__call_t *call,
                         const belay__result_t *result) {
  belay__lease_t *lease = belay__member_lease(member);
  int64_t most = lease->terms->kind->extended != NULL ? INT32_MAX : 2, n = -1;
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
  member->maybe = true;
  if (n == 2) {
    belay__reply_note_voter(member);
    note_set_again(member);
    return BELAY__RESTORED;
  }
  member->retake = false; /* it was not gone */
  int status =
      n > 2 && lease->terms->kind->extended != NULL ? lease->terms->kind->extended(lease, n) : 0;
  bool writes = lease->asked != BELAY__ASKED_READ;
  if (writes && status == 0 && belay__client_ghost(member->client, call, member->lowered))
    status = BELAY_EUNKNOWN; /* it is the writer, but who knows for how long */
  if (writes && status != 0 && lease->mode == BELAY_RWLOCK_WRITE)
    member->until = 0;
  return status;
}

/* What a release replied. */
static int read_released(belay__member_t *member, const belay__call_t *call,
                         const belay__result_t *result) {
  int64_t n = 0;
  bool answered =
      result->outcome == BELAY_OUTCOME_REPLY && belay__release_read(call, result->reply, &n);
  if (!answered && !is_foreign(belay__member_lease(member), result))
    return result->outcome == BELAY_OUTCOME_REPLY ? BELAY_EPROTO : result->error;
  note_gone(member, call);
  belay__member_lease(member)->told = n > 0 ? (uint32_t)n - 1 : 0;
  return n > 0 ? 0 : BELAY_ENOTOWNER;
}

/* The number to propose is the largest that any of them named. */
static int read_number(belay__member_t *member, const belay__result_t *result) {
  belay__lease_t *lease = belay__member_lease(member);
  uint64_t number;
  if (result->outcome != BELAY_OUTCOME_REPLY)
    return result->error;
  if (!belay__reply_number(result->reply, 1, BELAY__FENCE_MAX, &number))
    return BELAY_EPROTO;
  if (number > lease->fence)
    lease->fence = number;
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
  switch ((belay__round_t)belay__member_lease(member)->round) {
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
  assert(false && "nothing was asked");
  return BELAY_EPROTO;
}

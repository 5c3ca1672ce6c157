/* A round: the same question to all members at once, and a decision as soon as the answers allow one. */
#include <assert.h>

#include "lease/lease.h"

static void on_reply(belay__call_t *call, const belay__result_t *result);

/* ---- asking -------------------------------------------------------------------------------------------- */

static void put_token(const belay__lease_t *lease, const belay_client_t *client,
                      belay__call_t *call) {
  char token[BELAY__TOKEN_TEXT_MAX];
  belay__call_arg(call, token,
                  belay__token_text(token, &lease->token, client->owner, client->owner_len));
}

static void fill(const belay__lease_t *lease, belay__round_t round, belay__call_t *call) {
  switch (round) {
  case BELAY__ROUND_ACQUIRE:
    lease->kind->acquire(lease, call, lease->attempts > 1);
    break;
  case BELAY__ROUND_EXTEND:
    belay__call_script(call, lease->kind->extend, 1, 2);
    belay__call_arg(call, lease->key, lease->key_len);
    put_token(lease, call->client, call);
    belay__call_arg_int(call, lease->ttl);
    break;
  case BELAY__ROUND_RELEASE:
    belay__call_script(call, lease->kind->release, 1, 1);
    belay__call_arg(call, lease->key, lease->key_len);
    put_token(lease, call->client, call);
    break;
  case BELAY__ROUND_NONE:
    assert(false && "nothing to ask");
  }
}

/* What asks for something new is subject to the client's limits; what keeps or gives back is not. */
static int ask(belay__member_t *member, belay__round_t round, uint64_t deadline) {
  const belay__lease_t *lease = member->lease;
  belay__call_t *call = belay__call_new(member->client, BELAY__LANE_LEASE);
  if (call == NULL)
    return BELAY_ENOMEM;
  fill(lease, round, call);
  call->deadline = deadline;
  call->affinity = lease->affinity;
  call->urgent = round != BELAY__ROUND_ACQUIRE;
  call->done = on_reply;
  call->owner = member;
  member->call = call;
  int error = belay__call_send(&call, 1);
  if (error == 0)
    return BELAY__PENDING;
  member->call = NULL;
  return error;
}

void belay__round_start(belay__lease_t *lease, belay__round_t round, uint64_t timeout,
                        uint64_t limit) {
  belay__round_end(lease);
  uint64_t deadline = belay__now(lease->belay) + timeout;
  lease->round = (uint8_t)round;
  lease->holder_ms = -1;
  for (unsigned i = 0; i < lease->members; i++)
    lease->member[i].status = ask(&lease->member[i], round, deadline < limit ? deadline : limit);
}

/* ---- answers ------------------------------------------------------------------------------------------- */

/* How long a lease that was asked for with this call can be trusted. */
static uint64_t until(const belay__lease_t *lease, const belay__call_t *call) {
  return call->first_sent + belay__lease_validity(lease->ttl, lease->terms.drift);
}

static int read_acquired(belay__member_t *member, belay__call_t *call,
                         const belay__result_t *result) {
  belay__lease_t *lease = member->lease;
  int status = result->error;
  if (result->outcome == BELAY_OUTCOME_REPLY)
    status = lease->kind->acquired(lease, call, result->reply, &lease->holder_ms);
  if (status == 0)
    member->until = until(lease, call);
  if (status == 0 || status == BELAY_EPROTO || result->outcome == BELAY_OUTCOME_UNKNOWN) {
    member->maybe = true;
    member->epoch = call->epoch;
  }
  return status;
}

/* A key of another type is not our key. */
static int read_owned(belay__member_t *member, belay__call_t *call, const belay__result_t *result) {
  belay__lease_t *lease = member->lease;
  int64_t ours;
  int status = result->error == BELAY_EWRONGTYPE ? BELAY_ENOTOWNER : result->error;
  if (result->outcome == BELAY_OUTCOME_REPLY)
    status = !belay__reply_integer(result->reply, 0, 1, &ours) ? BELAY_EPROTO
             : ours == 0                                       ? BELAY_ENOTOWNER
                                                               : 0;
  if (status == 0 && lease->round == BELAY__ROUND_EXTEND && belay__lease_remaining(lease) == 0)
    status = BELAY_EEXPIRED; /* an acknowledgement counts before the deadline only */
  bool gone = status == BELAY_ENOTOWNER || (status == 0 && lease->round == BELAY__ROUND_RELEASE);
  if (gone) {
    member->maybe = false;
    member->until = 0;
  } else if (status == 0 && until(lease, call) > member->until) {
    member->until = until(lease, call);
  }
  return status;
}

static void on_reply(belay__call_t *call, const belay__result_t *result) {
  belay__member_t *member = call->owner;
  member->call = NULL;
  member->status = member->lease->round == BELAY__ROUND_ACQUIRE
                       ? read_acquired(member, call, result)
                       : read_owned(member, call, result);
  if (member->status == BELAY_EPROTO && result->outcome == BELAY_OUTCOME_REPLY)
    belay__call_distrust(call);
  belay__lease_answer(member->lease);
}

/* What a failed round is reported as: the plainest knowledge first. */
static int worse(int a, int b) {
  static const int order[] = {BELAY_EHELD, BELAY_ENOTOWNER, BELAY_EUNKNOWN, BELAY_EPROTO};
  for (size_t i = 0; i < sizeof order / sizeof *order; i++)
    if (a == order[i] || b == order[i])
      return order[i];
  return a;
}

int belay__round_status(const belay__lease_t *lease) {
  unsigned yes = 0, no = 0;
  int status = 0;
  for (unsigned i = 0; i < lease->members; i++) {
    int s = lease->member[i].status;
    if (s == BELAY__PENDING)
      continue;
    if (s == 0) {
      yes++;
    } else {
      status = no++ == 0 ? s : worse(status, s);
    }
  }
  if (yes >= lease->quorum)
    return 0;
  return no > (unsigned)(lease->members - lease->quorum) ? status : BELAY__PENDING;
}

void belay__round_end(belay__lease_t *lease) {
  for (unsigned i = 0; i < lease->members; i++) {
    belay__member_t *member = &lease->member[i];
    belay__call_t *call = member->call;
    if (call == NULL)
      continue;
    member->call = NULL;
    uint32_t epoch = call->epoch;
    if (belay__call_abandon(call) && lease->round == BELAY__ROUND_ACQUIRE) {
      member->maybe = true;
      member->epoch = epoch;
    }
  }
  lease->round = BELAY__ROUND_NONE;
}

/* ---- taking back --------------------------------------------------------------------------------------- */

static void undone(belay__undo_t *undo, void *owner, bool done) {
  (void)done;
  belay__member_t *member = owner;
  assert(member->undo == undo);
  member->undo = NULL;
  belay__lease_undone(member->lease);
}

void belay__round_undo(belay__lease_t *lease, bool wait) {
  belay__round_end(lease);
  for (unsigned i = 0; i < lease->members; i++) {
    belay__member_t *member = &lease->member[i];
    member->until = 0;
    if (!member->maybe)
      continue;
    member->maybe = false;
    belay__undo_of_t of = {
        .release = lease->kind->release,
        .key = lease->key,
        .key_len = lease->key_len,
        .token = lease->token,
        .affinity = lease->affinity,
        .epoch = member->epoch,
        .until = belay__now(lease->belay) + belay__lease_forgotten_after(lease->longest_ttl),
    };
    belay__undo_t *undo = belay__undo_start(member->client, &of, wait ? undone : NULL, member);
    if (wait)
      member->undo = undo;
  }
}

bool belay__round_undoing(const belay__lease_t *lease) {
  for (unsigned i = 0; i < lease->members; i++)
    if (lease->member[i].undo != NULL)
      return true;
  return false;
}

void belay__round_forget_undo(belay__lease_t *lease) {
  for (unsigned i = 0; i < lease->members; i++)
    if (lease->member[i].undo != NULL) {
      belay__undo_detach(lease->member[i].undo);
      lease->member[i].undo = NULL;
    }
}

#include "lease/quorum/round.h"

#include "belay/rwlock.h"
#include "core/call/refusal.h"
#include "lease/machine/deadline.h"
#include "lease/quorum/member.h"
#include "lease/quorum/undo.h"

/* Abandons the call of the former round. Before a fencing round, a pending acquire becomes
 * exchange->late instead. */
static void leave_call(belay__member_t *member, belay__round_t next) {
  bool fencing = next == BELAY__ROUND_READ || next == BELAY__ROUND_ACCEPT;
  if (fencing && belay__member_lease(member)->active->round == BELAY__ROUND_ACQUIRE)
    belay__member_postpone(member);
  belay__member_forget(member);
  if (!fencing)
    belay__member_forget_late(member);
}

void belay__round_forget(belay__lease_t *lease) {
  for (unsigned i = 0; i < lease->members; i++)
    leave_call(&lease->member[i], BELAY__ROUND_NONE);
}

static belay__extend_as_t extend_as_of(const belay__lease_t *lease) {
  if (lease->next_mode == BELAY_RWLOCK_READ)
    return BELAY__EXTEND_AS_READ;
  return lease->mode == BELAY_RWLOCK_READ ? BELAY__EXTEND_AS_UPGRADE : BELAY__EXTEND_AS_WRITE;
}

void belay__round_start(belay__lease_t *lease, belay__round_t round, uint64_t deadline) {
  for (unsigned i = 0; i < lease->members; i++)
    leave_call(&lease->member[i], round);
  lease->active->round = (uint8_t)round;
  lease->active->sent_mode = (uint8_t)extend_as_of(lease);
  lease->active->round_deadline = deadline;
  lease->active->holder_ms = -1;
  for (unsigned i = 0; i < lease->members; i++) {
    belay__exchange_t *exchange = &lease->active->exchange[i];
    lease->member[i].known_restored |= exchange->status == BELAY__RESTORED;
    exchange->status = BELAY__PENDING;
  }
  for (unsigned i = 0; i < lease->members; i++)
    belay__member_send(&lease->member[i], deadline, i > 0 ? &lease->member[i - 1] : NULL);
  for (unsigned i = 0; i < lease->members; i++)
    belay__member_lean(&lease->member[i]);
  if (belay__round_status(lease) != BELAY__PENDING)
    belay__lease_set_timer(lease, belay__lease_now(lease));
}

/* ---- votes ---- */

typedef struct votes {
  unsigned yes, no, pending; /* no: EHELD, ENOTOWNER, EFENCED, ESHARED */
  unsigned shared;           /* ESHARED, counted in `no` too: this lease and other readers hold */
  unsigned lasting;          /* errors that a retry would get again: refusal.h */
  int reason;                /* the first lasting error, in the order of the members */
  bool duplicate;            /* true if a server voted for two members */
} votes_t;

static votes_t count_votes(const belay__lease_t *lease) {
  votes_t votes = {0};
  for (unsigned i = 0; i < lease->members; i++) {
    int status = lease->active->exchange[i].status;
    votes.duplicate |= status == BELAY_EDUPLICATE;
    if (status == 0)
      votes.yes++;
    else if (status == BELAY__PENDING)
      votes.pending++;
    else if (status == BELAY_EHELD || status == BELAY_ENOTOWNER || status == BELAY_EFENCED)
      votes.no++;
    else if (status == BELAY_ESHARED)
      votes.no++, votes.shared++;
    else if (belay__refusal_is_lasting(status) && votes.lasting++ == 0)
      votes.reason = status;
  }
  return votes;
}

/* The final status of a round does not depend on the order of the replies. With several members, a
 * round without a quorum of yes ends as follows:
 *
 * - acquire: BELAY_EDUPLICATE, if a server voted for two members, even with a quorum of yes;
 * - acquire: BELAY_EHELD, if a quorum replied yes or no;
 * - other rounds, if the votes `no` alone prevent a quorum: BELAY_EFENCED for ACCEPT; BELAY_ESHARED
 *   if the votes `no` prevent a quorum only together with the ESHARED ones; else BELAY_ENOTOWNER;
 * - ACCEPT: BELAY_EFENCED, if all have replied and at least one voted `no`;
 * - else the lasting error, if lasting errors alone prevent a quorum;
 * - else BELAY_ENOQUORUM. */
int belay__round_status(const belay__lease_t *lease) {
  unsigned quorum = lease->quorum, spare = lease->members - quorum;
  votes_t votes = count_votes(lease);
  if (lease->members == 1)
    return lease->active->exchange[0].status;
  if (votes.duplicate && lease->active->round == BELAY__ROUND_ACQUIRE)
    return BELAY_EDUPLICATE;
  if (votes.yes >= quorum)
    return 0;
  if (votes.yes + votes.pending >= quorum)
    return BELAY__PENDING;
  if (lease->active->round == BELAY__ROUND_ACQUIRE) {
    if (votes.yes + votes.no >= quorum)
      return BELAY_EHELD;
    if (votes.yes + votes.no + votes.pending >= quorum)
      return BELAY__PENDING;
  } else if (votes.no > spare) {
    if (votes.shared > 0 && votes.no - votes.shared <= spare)
      return BELAY_ESHARED;
    return lease->active->round == BELAY__ROUND_ACCEPT ? BELAY_EFENCED : BELAY_ENOTOWNER;
  } else if (votes.pending > 0) {
    return BELAY__PENDING;
  } else if (votes.no > 0 && lease->active->round == BELAY__ROUND_ACCEPT) {
    return BELAY_EFENCED;
  }
  if (votes.lasting > spare)
    return votes.reason;
  return votes.lasting + votes.pending > spare ? BELAY__PENDING : BELAY_ENOQUORUM;
}

bool belay__round_distinct(const belay__lease_t *lease) {
  for (unsigned i = 1; i < lease->members; i++) {
    const belay__server_info_t *one = belay__member_server(&lease->member[i]);
    for (unsigned j = 0; j < i; j++)
      if (belay__server_info_same(one, belay__member_server(&lease->member[j])))
        return false;
  }
  return true;
}

void belay__round_won(belay__lease_t *lease) {
  for (unsigned i = 0; i < lease->members; i++)
    belay__member_rejoin(&lease->member[i]);
}

/* ---- undo ---- */

/* Abandons the member's calls, except a pending release: returns it for the undo. NULL: there is no
 * pending release. */
static belay__call_t *leave_calls(belay__member_t *member) {
  belay__exchange_t *exchange = belay__member_exchange(member);
  bool releases = belay__member_lease(member)->active->round == BELAY__ROUND_RELEASE;
  belay__call_t *release = releases ? exchange->call : NULL;
  if (release != NULL)
    exchange->call = NULL;
  belay__member_forget(member);
  belay__member_forget_late(member);
  exchange->downgrade_epoch = 0;
  return release;
}

void belay__round_undo(belay__lease_t *lease, belay__undo_how_t how) {
  bool has_ticket = lease->active != NULL && lease->active->ticket != 0;
  bool waits = how == BELAY__UNDO_KEEP_PLACE && has_ticket;
  for (unsigned i = 0; i < lease->members; i++) {
    belay__member_t *member = &lease->member[i];
    belay__call_t *release = lease->active != NULL ? leave_calls(member) : NULL;
    member->until = 0;
    bool keep = waits && member->may_exist, leave = member->has_place && !waits;
    unsigned what = (member->may_exist ? BELAY__UNDO_TOKEN : 0) | (keep ? BELAY__UNDO_PLACE : 0) |
                    (leave ? BELAY__UNDO_TICKET : 0);
    if (what != 0)
      belay__undo_start(member, what, release,
                        how == BELAY__UNDO_AND_WAIT && lease->active != NULL);
    member->has_place = keep || (member->has_place && !leave);
    member->may_exist = member->restored = member->known_restored = false;
    member->epoch = 0;
  }
  if (lease->active != NULL)
    lease->active->round = BELAY__ROUND_NONE;
}

void belay__round_keep_release(belay__lease_t *lease) {
  for (unsigned i = 0; i < lease->members; i++)
    if (!lease->member[i].may_exist) /* else an undo removes the token and is kept */
      belay__undo_keep(&lease->member[i]);
}

void belay__round_leave_places(belay__lease_t *lease) {
  for (unsigned i = 0; i < lease->members; i++)
    if (lease->member[i].has_place) {
      lease->member[i].has_place = false;
      belay__undo_start(&lease->member[i], BELAY__UNDO_TICKET, NULL, false);
    }
}

bool belay__round_undoing(const belay__lease_t *lease) {
  for (unsigned i = 0; i < lease->members && lease->active != NULL; i++)
    if (lease->active->exchange[i].undo != NULL)
      return true;
  return false;
}

void belay__round_forget_undo(belay__lease_t *lease) {
  for (unsigned i = 0; i < lease->members && lease->active != NULL; i++)
    belay__undo_detach(&lease->member[i]);
}

/* Reports about a lock: the reason of a loss, and the votes of its nodes. */
#include "lease/kinds/lock.h"
#include "lease/quorum/quarantine.h"

const char *belay_lost_name(belay_lost_t reason) {
  switch (reason) {
  case BELAY_LOST_EXPIRED:
    return "expired";
  case BELAY_LOST_TAKEN:
    return "taken";
  case BELAY_LOST_MAX_HOLD:
    return "max-hold";
  case BELAY_LOST_CLOSED:
    return "closed";
  }
  return "?";
}

const char *belay_vote_name(belay_vote_t vote) {
  static const char *const names[BELAY_VOTES] = {
      [BELAY_VOTE_NONE] = "none",
      [BELAY_VOTE_GRANTED] = "granted",
      [BELAY_VOTE_HELD] = "held",
      [BELAY_VOTE_REFUSED] = "refused",
      [BELAY_VOTE_TIMED_OUT] = "timed-out",
      [BELAY_VOTE_UNREACHABLE] = "unreachable",
      [BELAY_VOTE_QUARANTINED] = "quarantined",
      [BELAY_VOTE_RESTORED] = "restored",
  };
  return (unsigned)vote < BELAY_VOTES ? names[vote] : "?";
}

/* Translates a member's status; a status outside the table is a refusal. */
static belay_vote_t vote_of(int status) {
  static const struct {
    int status;
    belay_vote_t vote;
  } table[] = {
      {BELAY__NO_VOTE, BELAY_VOTE_NONE},
      {BELAY__PENDING, BELAY_VOTE_NONE},
      {0, BELAY_VOTE_GRANTED},
      {BELAY_EHELD, BELAY_VOTE_HELD},
      {BELAY_ENOTOWNER, BELAY_VOTE_HELD},
      {BELAY_EUNKNOWN, BELAY_VOTE_TIMED_OUT},
      {BELAY_EEXPIRED, BELAY_VOTE_TIMED_OUT},
      {BELAY_EUNREACHABLE, BELAY_VOTE_UNREACHABLE},
      {BELAY_ERESOLVE, BELAY_VOTE_UNREACHABLE},
      {BELAY_EBUSY, BELAY_VOTE_UNREACHABLE},
      {BELAY_ENOMEM, BELAY_VOTE_UNREACHABLE},
      {BELAY_ECLOSING, BELAY_VOTE_UNREACHABLE},
      {BELAY_EQUARANTINED, BELAY_VOTE_QUARANTINED},
      {BELAY__RESTORED, BELAY_VOTE_RESTORED},
  };
  for (size_t i = 0; i < sizeof table / sizeof *table; i++)
    if (table[i].status == status)
      return table[i].vote;
  return BELAY_VOTE_REFUSED;
}

/* Time until the member's server may vote, in ms, rounded up; 0: not known. */
static int64_t quarantine_ms(const belay__member_t *member) {
  if (!belay__quarantine_known(member))
    return 0;
  int64_t now = (int64_t)belay__now(belay__lease_belay(belay__member_lease(member)));
  return (belay__client_leases(belay__member_client(member))->quarantine.votes_from - now) /
             (int64_t)BELAY__MS +
         1;
}

void belay_lock_tally(const belay_lock_t *lock, belay_lock_tally_t *out) {
  *out = (belay_lock_tally_t){0};
  if (lock == NULL)
    return;
  const belay__lease_t *lease = belay__lock_lease(lock);
  out->nodes = lease->members;
  out->quorum = lease->quorum;
  for (unsigned i = 0; i < lease->members; i++) {
    int status = lease->member[i].vote;
    belay_vote_t vote = vote_of(status);
    out->votes[vote]++;
    out->node[i].vote = vote;
    out->node[i].error = status < 0 ? status : 0;
    if (vote == BELAY_VOTE_QUARANTINED)
      out->node[i].quarantine_ms = quarantine_ms(&lease->member[i]);
  }
}

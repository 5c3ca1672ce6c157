/* A member: one node of a lease, and its answer to one command.
 *
 *    belay__member_send --cannot be sent--> answered: the cause
 *     |
 *     v
 *    ASKED --no, or an error--> answered
 *     | yes
 *     +--with min_replicas--> COPYING: the WAIT behind the command --too few--> ENOREPLICAS
 *     |                          | enough
 *     +--------------------------+--a vote, with a quarantine--> VETTED: quarantine.c asks
 *     |                                                            whether the server votes
 *     v                                                            | yes  | no
 *    answered: 0, and the lease runs until sent + ttl - drift <----+      +--> EQUARANTINED
 *
 * In ASKED, exchange->call is pending. In COPYING and VETTED, exchange->confirm is pending, which
 * may be sent together with the call. A release by a native command is sent together with its
 * PUBLISH, and is over when both have replies. A reply after the decision of the round still
 * counts. If an acquire is ASKED when a fencing round starts, it moves to exchange->late: a grant
 * still counts, and no operation waits for it. `may_exist` and `epoch` note the possible effect of
 * a call, with or without a reply. */
#include "lease/quorum/member.h"

#include "lease/machine/deadline.h"
#include "lease/quorum/command.h"
#include "lease/quorum/quarantine.h"
#include "lease/quorum/reply.h"
#include "lease/wait/wake.h"
#include "scripts.gen.h"

static void on_reply(belay__call_t *call, const belay__result_t *result);
static void on_replicated(belay__call_t *call, const belay__result_t *result);
static void on_published(belay__call_t *call, const belay__result_t *result);
static void on_late(belay__call_t *call, const belay__result_t *result);
static void on_marker(belay__call_t *call, const belay__result_t *result);

/* ---- commands ---- */

/* Makes a call of the current round; *place points to it when it is sent. Returns NULL if memory is
 * out. */
static belay__call_t *new_call(belay__member_t *member, uint64_t deadline, belay__call_t **place) {
  const belay__lease_t *lease = belay__member_lease(member);
  belay__call_t *call = belay__call_new(belay__member_client(member), belay__lease_class(lease));
  if (call == NULL)
    return NULL;
  call->deadline = deadline;
  call->route = lease->route;
  /* Only an acquire that is not part of a hand-over obeys the client's limits. */
  call->urgent = lease->active->round != BELAY__ROUND_ACQUIRE || lease->active->partner != NULL;
  call->owner = member;
  call->place = place;
  return call;
}

static belay__round_t round_of(const belay__lease_t *lease) {
  return (belay__round_t)lease->active->round;
}

static bool is_grant(const belay__lease_t *lease) {
  return round_of(lease) == BELAY__ROUND_ACQUIRE || round_of(lease) == BELAY__ROUND_EXTEND;
}

/* True for rounds in which only servers outside the quarantine count: acquires, fencing rounds,
 * upgrades. */
static bool is_vote(const belay__lease_t *lease) {
  belay__round_t round = round_of(lease);
  bool upgrade =
      round == BELAY__ROUND_EXTEND && lease->active->sent_mode == BELAY__EXTEND_AS_UPGRADE;
  return round == BELAY__ROUND_ACQUIRE || round == BELAY__ROUND_READ ||
         round == BELAY__ROUND_ACCEPT || upgrade;
}

/* Returns the call of `same` if this member can send a copy of it, else NULL. A call with as_eval
 * is not copied: only the other server lacks the script. */
static const belay__call_t *copyable_call(const belay__member_t *member,
                                          const belay__member_t *same) {
  const belay__call_t *call =
      same != NULL && same->retake == member->retake ? belay__member_exchange(same)->call : NULL;
  if (call == NULL || call->broken || call->as_eval)
    return NULL;
  bool known = call->needs == 0 || belay__client_can(belay__member_client(member),
                                                     (belay__capability_t)(call->needs - 1));
  return known ? call : NULL;
}

/* True if a second command follows: a PUBLISH after a release by a native command, or a WAIT in any
 * other round with min_replicas. */
static bool has_follow_up(const belay__lease_t *lease, const belay__call_t *first) {
  if (lease->active->round == BELAY__ROUND_RELEASE)
    return first->needs != 0 && lease->config->notify;
  return lease->config->min_replicas > 0;
}

static void build_follow_up(const belay__lease_t *lease, belay__call_t *call) {
  if (lease->active->round == BELAY__ROUND_RELEASE) {
    belay__wake_build_publish(lease, call);
    call->done = on_published;
    return;
  }
  belay__call_command(call, "WAIT", 3);
  belay__call_arg_int(call, lease->config->min_replicas);
  belay__call_arg_int(call, lease->config->replica_timeout);
  call->done = on_replicated;
}

/* Sends the command and its follow-up. */
static int send_command(belay__member_t *member, uint64_t deadline, const belay__member_t *same) {
  const belay__lease_t *lease = belay__member_lease(member);
  belay__exchange_t *exchange = belay__member_exchange(member);
  belay__call_t *calls[2] = {new_call(member, deadline, &exchange->call), NULL};
  size_t n = 1;
  if (calls[0] == NULL)
    return BELAY_ENOMEM;
  const belay__call_t *original = copyable_call(member, same);
  if (original != NULL)
    belay__call_repeat(calls[0], original);
  else
    belay__lease_build_command(lease, calls[0], member->retake);
  calls[0]->done = on_reply;
  if (has_follow_up(lease, calls[0])) {
    calls[n] = new_call(member, deadline, &exchange->confirm);
    if (calls[n] == NULL) {
      belay__call_abandon(calls[0]);
      return BELAY_ENOMEM;
    }
    build_follow_up(lease, calls[n++]);
  }
  /* A release may be sent again without its publication, which is only a hint. */
  bool independent = lease->active->round == BELAY__ROUND_RELEASE;
  int error = belay__call_send(calls, n, !independent);
  return error == 0 ? BELAY__PENDING : error;
}

void belay__member_rebuild(belay__call_t *call) {
  const belay__member_t *member = call->owner;
  belay__lease_build_command(belay__member_lease(member), call, member->retake);
}

void belay__member_lean(const belay__member_t *member) {
  belay__call_t *call = belay__member_exchange(member)->call;
  if (call != NULL && belay__member_lease(member)->active->partner == NULL)
    belay__call_lean(call);
}

/* Returns the status of the member if it is known without a request; 0 if a request is
 * necessary. */
static int local_status(belay__member_t *member) {
  const belay__lease_t *lease = belay__member_lease(member);
  belay_client_t *client = belay__member_client(member);
  if (lease->active->round == BELAY__ROUND_RELEASE && !member->may_exist)
    return BELAY_ENOTOWNER;
  if (is_vote(lease) && belay__quarantine_known(member))
    return BELAY_EQUARANTINED;
  if (lease->active->round != BELAY__ROUND_ACQUIRE)
    return 0;
  /* A node with pending replies that has sent nothing for `timeout` gets no attempt, which would
   * only add an undo. The other nodes decide. */
  uint64_t limit = lease->config->timeout * BELAY__MS;
  if (lease->members > 1 &&
      client->node_ops->silent(client, belay__lease_class(lease), lease->route, limit))
    return BELAY_EUNKNOWN;
  return 0;
}

void belay__member_send(belay__member_t *member, uint64_t deadline, const belay__member_t *same) {
  const belay__lease_t *lease = belay__member_lease(member);
  belay__exchange_t *exchange = belay__member_exchange(member);
  int status = local_status(member);
  /* An extend sets a missing key again only on a node that cannot have the lease's token. A server
   * that did so does not count (note_restored()). A server whose reply is lost does not count
   * either: the next extend would find the token and could not tell that the key had been gone. */
  member->retake = lease->members > 1 && !member->may_exist;
  if (member->retake && lease->active->round == BELAY__ROUND_EXTEND) {
    const belay__server_info_t *server = belay__member_server(member);
    /* the server that may set the key next */
    member->server_mark = server != NULL ? server->mark : 0;
  }
  if (status == 0)
    status = send_command(member, deadline, same);
  exchange->status = (int16_t)status;
  if (is_grant(lease))
    member->vote = (int16_t)status;
  if (status == BELAY__PENDING && exchange->confirm == NULL && is_vote(lease))
    belay__quarantine_send_ahead(member, deadline, on_marker);
}

static void drop_confirm(belay__member_t *member) {
  belay__call_t **confirm = &belay__member_exchange(member)->confirm;
  if (*confirm != NULL && (*confirm)->script == &belay__script_quarantine)
    belay__quarantine_abandon(confirm);
  else
    (void)belay__call_cancel(confirm);
}

void belay__member_forget(belay__member_t *member) {
  belay__call_t **call = &belay__member_exchange(member)->call;
  uint32_t epoch = *call != NULL ? (*call)->epoch : 0;
  drop_confirm(member);
  if (belay__call_cancel(call))
    belay__reply_note_lost(member, epoch);
}

void belay__member_forget_late(belay__member_t *member) {
  belay__call_t **late = &belay__member_exchange(member)->late;
  uint32_t epoch = *late != NULL ? (*late)->epoch : 0;
  if (belay__call_cancel(late))
    belay__reply_note_lost_acquire(member, epoch);
}

void belay__member_postpone(belay__member_t *member) {
  belay__exchange_t *exchange = belay__member_exchange(member);
  if (exchange->call == NULL || belay__member_lease(member)->config->min_replicas > 0)
    return; /* the reply of its WAIT would be needed, too */
  drop_confirm(member);
  belay__call_own(&exchange->late, exchange->call, on_late, member);
}

/* ---- replies ---- */

static void report_answer(belay__member_t *member) {
  belay__lease_t *lease = belay__member_lease(member);
  belay__lease_report(lease, BELAY__EV_ANSWER, 0);
}

/* True if the deadline of a held lease has passed. After a stop of the process, replies can be read
 * before the timer fires for the deadline. These replies do not count: a lease that has ended stays
 * ended. */
static bool is_over(const belay__lease_t *lease) {
  return belay__lease_is_held(lease) && belay__lease_remaining(lease) == 0;
}

/* Sets member->until, the end of the time for which the node surely keeps the lease. That time
 * counts from the send, because the command cannot have run earlier. */
static void extend_validity(belay__member_t *member) {
  const belay__lease_t *lease = belay__member_lease(member);
  uint64_t until = belay__member_exchange(member)->sent +
                   belay__lease_validity(lease->ttl, lease->config->drift);
  if (until > member->until)
    member->until = until;
}

/* Counts the server for this member. If several addresses lead to one server, the server counts
 * once, for the member with its last reply: the earlier reply of another member no longer counts.
 * Returns false if the server has already confirmed this round for another member. */
static bool claim_vote(belay__member_t *member) {
  belay__lease_t *lease = belay__member_lease(member);
  for (unsigned i = 0; i < lease->members; i++) {
    belay__member_t *other = &lease->member[i];
    if (other == member || member->server_mark == 0 || other->server_mark != member->server_mark)
      continue;
    if (belay__member_exchange(other)->status == 0)
      return false;
    other->until = 0;
  }
  return true;
}

/* True if the member's server had lost the lease and has it again, through this member or through
 * another one that leads to the same server. */
static bool server_was_restored(const belay__member_t *member) {
  const belay__lease_t *lease = belay__member_lease(member);
  bool again = member->restored;
  for (unsigned i = 0; i < lease->members && !again && member->server_mark != 0; i++) {
    const belay__member_t *other = &lease->member[i];
    if (other == member || !(other->restored || other->retake))
      continue;
    const belay__server_info_t *server = belay__member_server(other);
    again = other->server_mark == member->server_mark ||
            (server != NULL && server->mark == member->server_mark);
  }
  return again;
}

/* Ends the member's part in the round. status: of the reply and its confirmation. */
static void finish_reply(belay__member_t *member, int status) {
  belay__lease_t *lease = belay__member_lease(member);
  if (status == 0)
    belay__reply_note_server(member);
  if (status == 0 && is_grant(lease) && is_over(lease))
    status = BELAY_EEXPIRED;
  if (status == 0 && lease->active->round == BELAY__ROUND_EXTEND && server_was_restored(member)) {
    member->restored = true;
    status = BELAY__RESTORED;
  }
  if (status != 0 && lease->active->round == BELAY__ROUND_ACQUIRE && lease->config->quarantine)
    member->restored = true; /* the node may have the lease, but a later yes does not count */
  if (status == 0 && lease->active->round != BELAY__ROUND_RELEASE && !claim_vote(member)) {
    status = BELAY_EDUPLICATE;
    member->until = 0;
  }
  if (status == 0 && is_grant(lease))
    extend_validity(member);
  belay__member_exchange(member)->status = (int16_t)status;
  if (is_grant(lease))
    member->vote = (int16_t)status;
  report_answer(member);
}

void belay__member_rejoin(belay__member_t *member) {
  if (!member->known_restored || belay__member_exchange(member)->status != BELAY__RESTORED)
    return;
  member->restored = member->known_restored = false;
  if (is_over(belay__member_lease(member)) || !claim_vote(member))
    return;
  belay__member_exchange(member)->status = member->vote = 0;
  extend_validity(member);
}

/* Checks, after a positive reply, the other conditions under which the reply counts. */
static void confirm_reply(belay__member_t *member) {
  const belay__exchange_t *exchange = belay__member_exchange(member);
  if (exchange->call != NULL || exchange->confirm != NULL)
    return;
  bool vote = is_vote(belay__member_lease(member)) || member->restored;
  int status = vote ? belay__quarantine_check(member, on_marker) : 0;
  if (status != BELAY__PENDING)
    finish_reply(member, status);
}

static void finish_confirm(belay__member_t *member, int status) {
  if (status == 0) {
    confirm_reply(member);
    return;
  }
  belay__member_forget(member); /* the call may still be pending after its WAIT has ended */
  finish_reply(member, status);
}

/* Returns the error of a confirmation without a reply. If the confirmation was not sent, the
 * command before it may still have been sent: then the result is BELAY_EUNKNOWN. */
static int confirm_error(const belay__member_t *member, const belay__result_t *result) {
  const belay__call_t *asked = belay__member_exchange(member)->call;
  bool unasked = asked != NULL && asked->state == BELAY__CALL_QUEUED;
  bool unsent = result->outcome == BELAY_OUTCOME_NOT_SENT;
  return unsent && !unasked ? BELAY_EUNKNOWN : result->error;
}

static void on_marker(belay__call_t *call, const belay__result_t *result) {
  belay__member_t *member = call->owner;
  bool replied = result->outcome == BELAY_OUTCOME_REPLY;
  int status = replied ? belay__quarantine_read(call, result) : confirm_error(member, result);
  if (result->outcome == BELAY_OUTCOME_UNKNOWN)
    belay__quarantine_abandon(&call); /* a late reply still serves other votes */
  finish_confirm(member, status);
}

static void on_replicated(belay__call_t *call, const belay__result_t *result) {
  belay__member_t *member = call->owner;
  int64_t copies;
  int status = confirm_error(member, result);
  if (result->outcome == BELAY_OUTCOME_REPLY) {
    if (!belay__reply_integer(result->reply, 0, INT32_MAX, &copies)) {
      status = BELAY_EPROTO;
      belay__call_distrust(call, result->reply);
    } else if (call->epoch != member->sent_on) {
      status = BELAY_EUNKNOWN; /* the WAIT was sent on another connection than the write */
    } else if (copies < belay__member_lease(member)->config->min_replicas) {
      status = BELAY_ENOREPLICAS;
    }
  }
  finish_confirm(member, status);
}

/* Ends a release whose PUBLISH has ended. The release was confirmed before, so its status is 0 even
 * if the PUBLISH failed. Notes how many connections got the message. */
static void on_published(belay__call_t *call, const belay__result_t *result) {
  belay__member_t *member = call->owner;
  int64_t receivers;
  bool known = result->outcome == BELAY_OUTCOME_REPLY &&
               belay__reply_integer(result->reply, 0, INT32_MAX, &receivers);
  if (result->outcome == BELAY_OUTCOME_REPLY && !known)
    belay__call_distrust(call, result->reply);
  belay__member_lease(member)->active->notified =
      known ? (uint32_t)receivers : BELAY__NOTIFIED_UNKNOWN;
  finish_confirm(member, 0);
}

/* Reads the reply to exchange->late, an acquire that was pending when a fencing round started. */
static void on_late(belay__call_t *call, const belay__result_t *result) {
  belay__member_t *member = call->owner;
  int status = belay__reply_read_acquired(member, call, result);
  if (status == 0) {
    belay__member_exchange(member)->sent = call->first_sent;
    member->sent_on = call->epoch;
    status = belay__quarantine_allows(member) ? 0 : BELAY_EQUARANTINED;
    member->restored = status != 0;
  }
  if (status == 0 && is_over(belay__member_lease(member)))
    status = BELAY_EEXPIRED;
  if (status == 0) {
    belay__reply_note_server(member);
    extend_validity(member);
  }
  member->vote = (int16_t)status;
  report_answer(member);
}

/* Sends the command again, as a script: the server refused the native command. */
static void send_again(belay__member_t *member) {
  belay__member_send(member, belay__member_lease(member)->active->round_deadline, NULL);
  if (belay__member_exchange(member)->status != BELAY__PENDING)
    report_answer(member);
}

static void on_reply(belay__call_t *call, const belay__result_t *result) {
  belay__member_t *member = call->owner;
  if (call->denied) {
    /* the server may have executed the follow-up without the command, so the follow-up is not
     * valid */
    drop_confirm(member);
    send_again(member);
    return;
  }
  if (result->outcome == BELAY_OUTCOME_REPLY) {
    belay__member_exchange(member)->sent = call->first_sent;
    member->sent_on = call->epoch;
  }
  int status = belay__reply_read(member, call, result);
  if (status == BELAY_EPROTO && result->outcome == BELAY_OUTCOME_REPLY)
    belay__call_distrust(call, result->reply);
  if (status == 0) {
    confirm_reply(member);
    return;
  }
  belay__member_forget(member); /* without a yes, the confirmation is not needed */
  finish_reply(member, status);
}

/* The lease machine: whatever is held for a while. lease.c has the diagram. */
#ifndef BELAY_LEASE_MACHINE_LEASE_H
#define BELAY_LEASE_MACHINE_LEASE_H

#include "belay/lock.h"
#include "core/call/call.h"
#include "core/client/channel.h"
#include "core/client/client.h"
#include "core/key/table.h"
#include "core/key/token.h"
#include "lease/machine/client_leases.h"

typedef struct belay__lease belay__lease_t;
typedef struct belay__undo belay__undo_t;

#define BELAY__TTL_MAX_MS INT64_C(86400000)
#define BELAY__TTL_MIN_MS INT64_C(10)

/* What a face is told; always from a task. */
typedef enum belay__news {
  BELAY__NEWS_LOST,     /* status: a belay_lost_t */
  BELAY__NEWS_EXTENDED, /* status: how an extend ended */
  BELAY__NEWS_ENDED,    /* status: how an acquire or a release ended */
  BELAY__NEWS_CLOSED    /* the lease is over; the memory is the face's to free, now */
} belay__news_t;

/* What tells one kind of lease from another: its keys and scripts, and how a reply is read. */
typedef struct belay__kind {
  const char *family; /* in keys */
  /* What is appended to the key to make the keys beside it; ends with NULL. NULL: there are none. */
  const char *const *parts;

  /* All have KEYS the key and its parts. ARGV of extend: token, ttl in ms, with what ttl to take it again if it is
   * gone (0: not), then what extend_more adds; reply: 1 extended, 0 not ours, 2 taken again, or what `extended`
   * knows. ARGV of release: token ('': of nobody), how to publish ('': not), and '', or what else to take back: the
   * ticket, or the token that it is being passed to; or TICKET+MS: who goes on waiting did not learn that it was
   * granted, and if it was the ticket gets its place again, for so long (a kind without an order of arrival does
   * nothing about that). Reply: 0 not ours, n: removed, and n - 1 connections were told. */
  const belay__script_t *extend, *release;

  bool many;     /* the key is a list of keys: belay__many_next() */
  bool lines_up; /* in a client one contends for a key at a time */
  bool
      passes; /* who holds it passes it to the next in the line, and nobody in the line contends meanwhile */
  bool owned;   /* what stands under the key is `extra`, its owner, and not a token */
  bool tickets; /* who waits has a place on the server, under lease->ticket */

  /* Fills in the command that takes the lease; of a kind that passes it on: from `giver`, if that is not NULL. */
  void (*acquire)(const belay__lease_t *lease, belay__call_t *call, const belay__lease_t *giver);

  /* Reads its reply: 0 granted, BELAY_EHELD (*holder_ms is how long it may still be held, if that is known),
   * BELAY_EPROTO, or another error. A kind whose acquire counts the grants sets lease->fence. */
  int (*acquired)(belay__lease_t *lease, const belay__call_t *call, const belay__reply_t *reply,
                  int64_t *holder_ms);

  size_t
      extend_keys; /* so many of the keys, the first, are extend's: it works while a slot with the others is on its
                         way from one node of a cluster to another; 0: all */
  size_t extend_args; /* how many extend_more adds; 0: it is NULL */
  void (*extend_more)(const belay__lease_t *lease, belay__call_t *call);
  /* What another reply than 0, 1, 2 to extend means; NULL: there is none. */
  int (*extended)(belay__lease_t *lease, int64_t reply);

  /* Whether one that waits may be granted beside one that just was; NULL: that is not to be expected. */
  bool (*beside)(const belay__lease_t *granted, const belay__lease_t *waiting);

  void (*tell)(belay__lease_t *lease, belay__news_t news, int status);
} belay__kind_t;

/* How it is taken and kept; milliseconds. Shared by all of a client that have the same (lease/machine/config.c), and so never
 * changed. */
typedef struct belay__terms {
  const belay__kind_t *kind;
  belay_lock_lost_cb on_lost;
  int64_t max_hold, wait;
  uint32_t ttl, renew_after; /* renew_after 0: a third of the ttl */
  int32_t drift;             /* -1: ttl/100 + 2 */
  uint32_t retry_min, retry_max, backoff_max, max_attempts, timeout;
  uint32_t max_handovers, waiter_ttl;
  uint32_t replica_timeout, max_ttl;
  uint32_t limit, permits; /* a semaphore's */
  uint8_t min_replicas;    /* 0: a grant need not be copied */
  bool renew, fencing;
  bool quarantine, trust; /* trust: a server that does not tell its run id votes */
  bool notify;            /* releases are published, and waiters listen */
  bool notice_break;      /* a holder with a watchdog listens too */
  bool repeat_release;    /* releases are repeated if their connection is lost */
} belay__terms_t;

typedef enum belay__lease_state {
  BELAY__LEASE_IDLE,      /* made; or an acquire failed; or a release ended */
  BELAY__LEASE_QUEUED,    /* others of this client come first */
  BELAY__LEASE_ACQUIRING, /* an attempt is out */
  BELAY__LEASE_FENCING,   /* a quorum granted it, and is being asked for a fencing number */
  BELAY__LEASE_WAITING,   /* an attempt failed, the next one is not due yet */
  BELAY__LEASE_GRANTED,   /* a quorum granted it, and its owner does not know yet */
  BELAY__LEASE_HELD,      /* its owner was told */
  BELAY__LEASE_RELEASING, /* its owner gave it back, and the answer is not in */
  BELAY__LEASE_LOST,      /* it ended by itself */
  BELAY__LEASE_CLOSING,   /* the handle is closed; what was held is being undone */
  BELAY__LEASE_CLOSED     /* nothing is left to wait for */
} belay__lease_state_t;

typedef enum belay__round {
  BELAY__ROUND_NONE,
  BELAY__ROUND_ACQUIRE,
  BELAY__ROUND_READ,   /* for a fencing number that a majority has not seen yet */
  BELAY__ROUND_ACCEPT, /* that number */
  BELAY__ROUND_EXTEND, /* a renewal too */
  BELAY__ROUND_RELEASE
} belay__round_t;

#define BELAY__PENDING 1  /* a member's status while its answer is not in */
#define BELAY__UNASKED 2  /* a member's vote before the first */
#define BELAY__RESTORED 3 /* yes, but it was gone, and does not count yet */

/* The lease on one node. */
typedef struct belay__member {
  belay__object_t object; /* in the client's list */
  belay_client_t *client;
  belay__call_t *call;    /* of the present round */
  belay__call_t *confirm; /* what makes its answer count: a WAIT, or the quarantine's question */
  union {
    belay__call_t *late; /* an acquire that is not waited for; before CLOSING */
    belay__undo_t *undo; /* what CLOSING waits for */
  };
  uint64_t sent;    /* when the call was sent whose answer is being confirmed */
  uint64_t until;   /* this node keeps the lease for us until then; 0: it does not */
  uint64_t voter;   /* the server that last said yes: a hash of its run id; 0: not known */
  uint32_t sent_on; /* ... and on which connection */
  uint32_t epoch;   /* that of the last call that may yet take the lease, unanswered; 0: none */
  uint32_t
      lowered; /* that of the last extend that may yet make a reader of the writer, unanswered; 0: none */
  int16_t status;  /* in the present round */
  int16_t vote;    /* in the last acquire or extend */
  uint8_t index;   /* among the lease's */
  bool maybe : 1;  /* our token may be on this node */
  bool placed : 1; /* our ticket may be */
  bool retake : 1; /* the present extend takes it again if it is gone */
  bool
      fresh : 1; /* taken again after it was gone: does not count until a round was won without it */
  bool known_back : 1; /* ... that was asked when it had said that it has it again */
} belay__member_t;

/* Ears for what wakes a lease that waits, or makes a holder ask; wake.c's. */
typedef struct belay__wake belay__wake_t;

/* What there is of an acquire until it is over, or its owner is told of the grant: most leases are held most of the
 * time. */
typedef struct belay__bid {
  uint64_t wait_until; /* 0: one attempt only */
  uint64_t asked_at;   /* when the present attempt began */
  int64_t holder_ms;   /* how long another may still hold it; -1: not known */
  belay__wake_t *wake; /* NULL: it does not listen */
  uint32_t found_held; /* attempts in a row that found it held */
  uint32_t releases;   /* releases that were heard of since the wait began */
  uint8_t proposals;   /* fencing numbers that were proposed for this grant */
  bool woken;          /* something was heard since the attempt was sent */
  bool hastened;       /* WAITING: it is asked sooner because of that */
  bool hosted;         /* when its turn came, another was granted what both may have: host */
  belay__token_t host;
} belay__bid_t;

/* There may be a hundred thousand of them: the widths are what is needed, and the order leaves no gaps. */
struct belay__lease {
  const belay__terms_t *terms;
  belay__entry_t entry;    /* the first in its line: in the client's table of lines */
  belay__list_t line;      /* all of one key in one client; alone: in none */
  belay__lease_t *partner; /* RELEASING: who it is being passed to; ACQUIRING: by whom */
  belay__bid_t *bid;       /* QUEUED ... GRANTED; else NULL */
  belay__wake_t *watch;    /* HELD, with notice_break: its ears; else NULL */
  belay__timer_t expiry;   /* GRANTED, HELD: the local deadline */
  belay__timer_t timer;    /* WAITING: the next attempt; HELD: renewal; CLOSING: patience */
  belay__task_t task;      /* tells the face what there is to tell */
  char *key;               /* and behind it `extra`, the kind's own, and the label */
  uint64_t held_since;
  uint64_t answer_by; /* the present round's deadline */
  uint64_t
      streak_since; /* when the first of a streak got it that were in others' way; 0: we will be */
  uint64_t ticket;  /* of the present wait; 0: none */
  uint64_t fence;   /* the fencing number, or the one that is being agreed on; 0: none */
  uint32_t ttl;     /* of the present hold */
  uint32_t longest_ttl; /* the server may keep it for that long: its own ttl is never shortened */
  uint32_t attempts;    /* of the present acquire */
  uint32_t failures;    /* renewals that failed in a row; acquires that were refused in a row */
  uint32_t affinity;
  uint32_t told;   /* connections that heard of the last release; BELAY__UNTOLD */
  uint32_t streak; /* how often others of this client had it, in a row, before us */
  uint32_t holds;  /* a reentrant lock's */
  belay__token_t token;
  int16_t error; /* the last that went wrong; 0 since the last grant */
  int16_t op_status, extend_status;
  uint16_t key_len, extra_len;
  uint8_t label_len; /* 0: the clients' owner label */
  uint8_t members, quorum;
  uint8_t state, round;
  uint8_t lost_reason;
  uint8_t mode;       /* a reader's or a writer's: belay_rwlock_mode_t */
  uint8_t want;       /* the mode that the next extend is to bring */
  bool upgrading : 1; /* the owner has asked to become the writer, and was not told yet */
  bool unsettled : 1; /* a change of mode was not confirmed: some node may have it otherwise */
  /* The terms of the present round's command. They stay as they are until the next round: a reply that comes after the
   * decision answers the command that was sent, and not what the owner wants by then. */
  bool asked_write : 1;  /* EXTEND: it asks for the writer's mode */
  bool asked_change : 1; /* EXTEND: it asks for another mode than the lease had */
  bool recheck : 1; /* HELD: the server may have lost it since it was asked what is being asked */
  bool in_line : 1;
  bool had : 1;      /* it was granted since it joined the line */
  bool offered : 1;  /* it may have been passed on, and who was to get it did not learn */
  bool asking : 1;   /* the machine waits for what the round comes to */
  bool starting : 1; /* the round is being asked: nothing is decided yet */
  bool op_pending : 1, op_over : 1;         /* an acquire or a release */
  bool extend_pending : 1, extend_over : 1; /* an extend of the owner's */
  bool lost_over : 1, ref : 1, holds_loop : 1;
  belay__member_t member[1]; /* so many as `members` says: the face has the memory, right behind */
};

/* The size of what ends with a lease of so many members; size: with that of one. */
static inline size_t belay__lease_sized(size_t size, size_t members) {
  return size + (members - 1) * sizeof(belay__member_t);
}

static inline belay_t *belay__lease_host(const belay__lease_t *lease) {
  return lease->member[0].client->belay;
}

static inline belay__lease_t *belay__member_lease(const belay__member_t *member) {
  const char *first = (const char *)(member - member->index);
  return (belay__lease_t *)(uintptr_t)(first - offsetof(belay__lease_t, member));
}

/* Initializes a lease of n members, one for each client. Their memory, and the key's, stay the caller's, until
 * BELAY__NEWS_CLOSED; the terms, shared with the first client's, are the lease's from now on. */
void belay__lease_init(belay__lease_t *lease, belay_client_t *const *clients, size_t n,
                       const belay__terms_t *terms, char *key, size_t key_len, size_t extra_len);

/* Who holds it, in its tokens; not terminated. */
static inline const char *belay__lease_label(const belay__lease_t *lease, size_t *len) {
  const belay_client_t *client = lease->member[0].client; /* all have the same */
  *len = lease->label_len > 0 ? lease->label_len : client->owner_len;
  return lease->label_len > 0 ? lease->key + lease->key_len + lease->extra_len : client->owner;
}

static inline const char *belay__lease_extra(const belay__lease_t *lease) {
  return lease->key + lease->key_len;
}

/* The operations: 0 or a negative error, as the public functions say. */
int belay__lease_acquire(belay__lease_t *lease, int64_t wait_ms);
int belay__lease_release(belay__lease_t *lease, int64_t timeout_ms);
int belay__lease_extend(belay__lease_t *lease, int64_t ttl_ms, int64_t timeout_ms);
int belay__lease_cancel(belay__lease_t *lease);
int belay__lease_close(belay__lease_t *lease);
void belay__lease_ref(belay__lease_t *lease, bool ref);

/* Nanoseconds for which it is certainly still held; 0 if it is not. */
uint64_t belay__lease_remaining(const belay__lease_t *lease);

/* What there is to tell, from a task: how an acquire or a release ended, and an extend, if they pend; a loss. */
void belay__lease_end(belay__lease_t *lease, int status);
void belay__lease_end_extend(belay__lease_t *lease, int status);
void belay__lease_tell_lost(belay__lease_t *lease, belay_lost_t reason);

/* The bid is over. */
void belay__lease_end_bid(belay__lease_t *lease);

/* Something changed that keeps the loop alive, or does not any more. */
void belay__lease_update_hold(belay__lease_t *lease);

/* ---- lease/machine/config.c: what leases have in common ------------------------------------------------------------ */

/* The first client's copy of these terms, for one more lease, on n clients; makes what their leases share. NULL if memory
 * is out. */
const belay__terms_t *belay__terms_share(belay_client_t *const *clients, size_t n,
                                         const belay__terms_t *terms);

/* One lease less has them. */
void belay__terms_leave(belay_client_t *client, const belay__terms_t *terms);

/* ---- lease/machine/timing.c: when things are due --------------------------------------------------------------- */

/* Nanoseconds that a ttl given in milliseconds can be trusted for. */
uint64_t belay__lease_validity(uint32_t ttl_ms, int32_t drift_ms);

/* Nanoseconds after which a server that was given the ttl has forgotten it, by any clock. */
uint64_t belay__lease_forgotten_after(uint32_t ttl_ms);

/* The time until which a quorum keeps the lease. */
uint64_t belay__lease_deadline(const belay__lease_t *lease);

/* Whether the watchdog has something left to do. */
bool belay__lease_renews(const belay__lease_t *lease, uint64_t now);

/* When to renew (BELAY__NEVER: not at all), and when to try again after a renewal that failed: later, or if there is a
 * connection now, soon. */
uint64_t belay__lease_renewal_due(const belay__lease_t *lease, uint64_t now);
uint64_t belay__lease_renewal_soon(const belay__lease_t *lease, uint64_t now);
uint64_t belay__lease_renewal_retry(const belay__lease_t *lease, uint64_t now);

/* Why a holder asks the server before its next renewal is due. */
typedef enum belay__check {
  BELAY__CHECK_LOST, /* a connection was lost: of all that were held through it */
  BELAY__CHECK_HEARD /* something was published on its channel */
} belay__check_t;

/* When to ask because of that. */
uint64_t belay__lease_check_at(const belay__lease_t *lease, uint64_t now, belay__check_t why);

/* When to ask again after an attempt that ended with that status. */
uint64_t belay__lease_next_attempt(const belay__lease_t *lease, int status, uint64_t now);

#define BELAY__UNTOLD UINT32_MAX
#define BELAY__UNTOLD_MIN (INT32_MAX - 1) /* from here on the number of connections is not known */

/* Whether it lets others elsewhere go first. */
typedef enum belay__yield {
  BELAY__YIELD_NOT,
  BELAY__YIELD_BRIEFLY, /* who was just woken */
  BELAY__YIELD_LONG     /* who asks now and then */
} belay__yield_t;

typedef enum belay__woken {
  BELAY__WOKEN_ALL,      /* others were told too */
  BELAY__WOKEN_ALONE,    /* we come next */
  BELAY__WOKEN_AGAIN,    /* we are connected again, and may have missed something; as others may */
  BELAY__WOKEN_CONNECTED /* a quorum is connected: the last attempt failed for want of that */
} belay__woken_t;

/* When to ask after something was heard; and when it is our turn, but others elsewhere are to go first. */
uint64_t belay__lease_woken_attempt(const belay__lease_t *lease, uint64_t now, belay__woken_t by);
uint64_t belay__lease_yielded_attempt(const belay__lease_t *lease, uint64_t now,
                                      belay__yield_t how);

/* So long one client may have it without a pause for those who only ask now and then. */
uint64_t belay__lease_streak_max(const belay__lease_t *lease);

/* ---- lease/machine/command.c: what is asked -------------------------------------------------------------------- */

#define BELAY__FENCE_TTL_MS INT64_C(604800000) /* so long after a grant its number is remembered */
#define BELAY__FENCE_MAX ((UINT64_C(1) << 53) - 1)
#define BELAY__TICKET_TEXT_MAX 16

/* The present lease's token, as it goes over the wire; returns its length. */
size_t belay__lease_token(const belay__lease_t *lease, char out[BELAY__TOKEN_TEXT_MAX]);

/* A ticket, as it stands in a server's queue; returns its length, 0 for none. */
size_t belay__ticket_text(uint64_t ticket, char out[BELAY__TICKET_TEXT_MAX]);

/* The lane that its calls travel on. */
belay__lane_t belay__lease_lane(const belay__lease_t *lease);

/* The key of a kind of many: each is a uint16_t, its length, and its bytes. The one at *at, which moves behind it;
 * NULL at the end. */
const char *belay__many_next(const char *list, size_t list_len, size_t *at, size_t *len);

/* Of several keys one may be of another type and the others ours: then WRONGTYPE does not mean that nothing is. */
bool belay__kind_has_one_key(const belay__kind_t *kind);

/* Begins a script with the lease's keys, and that of the fencing counter as the last, if `fence`; a WAIT may
 * follow. args arguments are to be added. */
void belay__lease_begin(const belay__lease_t *lease, belay__call_t *call,
                        const belay__script_t *script, bool fence, size_t args);

/* What a release takes back. */
typedef struct belay__release {
  char token[BELAY__TOKEN_TEXT_MAX];
  size_t token_len;                  /* 0: none */
  char other[BELAY__TOKEN_TEXT_MAX]; /* a ticket, or another token; as kind->release has it */
  size_t other_len;
  bool notify; /* tells who waits */
  bool apart;  /* which may be left to belay__wake_build(), if the call needs a capability */
} belay__release_t;

/* Fills in a kind's release; and reads its reply, which is no error: how many connections heard of it, and 1; 0: it was
 * not ours. */
void belay__release_build(const belay__kind_t *kind, const char *key, size_t key_len,
                          const belay__release_t *release, belay__call_t *call);
bool belay__release_read(const belay__call_t *call, const belay__reply_t *reply, int64_t *n);

/* Adds the token; and the ticket, or '' if there is none. */
void belay__lease_put_token(const belay__lease_t *lease, belay__call_t *call);
void belay__lease_put_ticket(const belay__lease_t *lease, belay__call_t *call);

/* Whether the grants are counted where they are given: on one node. */
static inline bool belay__lease_counts(const belay__lease_t *lease) {
  return lease->terms->fencing && lease->members == 1;
}

/* Fills in the present round's. retake: an extend that takes it again if it is gone. */
void belay__lease_question(const belay__lease_t *lease, belay__call_t *call, bool retake);

/* ---- lease/machine/member.c: asks one node, and hears what it says --------------------------------------------- */

/* Asks the round's question. */
void belay__member_ask(belay__member_t *member, uint64_t deadline);

/* Does not want to hear the answer any more; what it may do is noted. */
void belay__member_forget(belay__member_t *member);

/* Does not wait for the answer to an acquire any more, but will hear it; and does not want to any more. */
void belay__member_postpone(belay__member_t *member);
void belay__member_forget_late(belay__member_t *member);

/* An extend was won without those that were set again. Who was known to have it when that was asked, and has said in it that
 * it does, is one of those that have it from now on. */
void belay__member_rejoin(belay__member_t *member);

/* Who answers now; NULL while there is no connection. */
const belay__server_t *belay__member_server(const belay__member_t *member);

/* ---- lease/machine/quarantine.c: which servers have a vote ------------------------------------------------------ */

/* Whether it is known that the node has no vote now. */
bool belay__quarantine_known(const belay__member_t *member);

/* When the first of the nodes that are known to have no vote gets it; BELAY__NEVER if there is none. */
uint64_t belay__quarantine_ends(const belay__lease_t *lease);

/* Whether an answer to what was sent at member->sent, on connection member->sent_on, counts: 0, an error, or
 * BELAY__PENDING: the server is asked (member->confirm), and belay__member_confirmed() hears of it. */
int belay__quarantine_judge(belay__member_t *member);
/* The same, without asking. */
bool belay__quarantine_allows(const belay__member_t *member);

/* Asks behind the call that was just sent, if it is to be foreseen that its answer will need it. */
void belay__quarantine_ask_ahead(belay__member_t *member, uint64_t deadline);
/* The member does not wait for that any more; what the server says is learnt all the same. */
void belay__quarantine_leave(belay__call_t *call);
void belay__member_confirmed(belay__member_t *member, int status);

/* Why what would make the member's answer count was not answered. That it was not sent does not mean that the
 * question was not. member may be NULL. */
int belay__member_unconfirmed(const belay__member_t *member, const belay__result_t *result);

/* ---- lease/machine/round.c: asks all members at once and collects what they say ------------------------------------ */

/* A refusal that will be the same next time. */
bool belay__round_is_lasting(int status);

/* Whether no two members, also such as did not answer, are known to be the same server. */
bool belay__round_distinct(const belay__lease_t *lease);

/* An extend was won, perhaps with one more just now: who did not count in it may from now on. */
void belay__round_won(belay__lease_t *lease);

/* Asks; timeout in nanoseconds from now, cut off at `limit`. Ends the round before it, if one is going on. */
void belay__round_start(belay__lease_t *lease, belay__round_t round, uint64_t timeout,
                        uint64_t limit);

/* Nobody waits for the answers any more. */
void belay__round_forget(belay__lease_t *lease);

/* How the round stands: BELAY__PENDING, 0 (a quorum said yes), or why it cannot become one. */
int belay__round_status(const belay__lease_t *lease);

/* Ends the round, and undoes our token on every member that may have it; and our ticket, unless the place is kept.
 * wait: the lease is to hear of each that is over (BELAY__EV_UNDONE), until belay__round_forget_undo(). */
typedef enum belay__undo_how {
  BELAY__UNDO,
  BELAY__UNDO_KEEP_PLACE,
  BELAY__UNDO_AND_WAIT
} belay__undo_how_t;
void belay__round_undo(belay__lease_t *lease, belay__undo_how_t how);
/* A release was answered: it is sent again to members whose connection is lost while they may still have the lease. */
void belay__round_keep_release(belay__lease_t *lease);

/* It is held: gives up the places that it is known to have, or may have, on other nodes. */
void belay__round_leave_places(belay__lease_t *lease);
bool belay__round_undoing(const belay__lease_t *lease);
void belay__round_forget_undo(belay__lease_t *lease);

/* ---- lease/wait/queue.c: who of a client comes next ------------------------------------------------------------- */

/* Joins the line for its key; true if it is to wait for its turn. try: it does not wait, whoever is there. */
bool belay__line_join(belay__lease_t *lease, bool try);

/* Leaves the line, if it is in one; whoever comes next is told (BELAY__EV_TURN, arg: a belay__yield_t). */
void belay__line_leave(belay__lease_t *lease, bool granted);

/* Who waits for it, or for its turn, behind it; NULL: nobody. */
belay__lease_t *belay__line_next(const belay__lease_t *lease);

/* The next one has it, or may have it, after one that is gone, without others in between. */
void belay__line_inherit(belay__lease_t *next, const belay__lease_t *gone);

/* Why whoever comes first in its line does not get it: BELAY_EHELD, or another error. */
int belay__line_reason(const belay__lease_t *lease);

/* ---- lease/wait/hand_over.c: from one holder to the next ------------------------------------------------------------- */

/* Passes it to the next in the line, who has until then to answer for us; false if there is nobody. */
bool belay__pass(belay__lease_t *lease, uint64_t answer_by);

/* An attempt came to this; tells who gave it, if somebody did. What is known not to have been passed, or not known at
 * all, the giver takes back by itself (BELAY__EV_RELEASE). */
void belay__pass_over(belay__lease_t *lease, int status);

/* Who gives it does not wait for the answer any more. */
void belay__pass_forget(belay__lease_t *lease);

/* ---- lease/wait/wake.c: what wakes a lease that waits -------------------------------------------------------------- */

/* Listens, unless it does; `known`: only if the client is subscribed already. */
void belay__wake_listen(belay__lease_t *lease, bool known);
/* Whether nothing that frees it can be missed. */
bool belay__wake_is_up(const belay__lease_t *lease);
void belay__wake_stop(belay__lease_t *lease);

/* The words that tell who waits that it may be free. */
void belay__wake_build(const belay__lease_t *lease, belay__call_t *call);

/* A holder listens for what may have taken the lease from it: any message, and what it may have missed before its
 * subscription was confirmed (BELAY__EV_CHECK). And does not any more. */
void belay__wake_watch(belay__lease_t *lease);
void belay__wake_unwatch(belay__lease_t *lease);

/* Whether this client is subscribed to the first member's channel, and so is told of its own releases. */
bool belay__wake_is_subscribed(const belay__lease_t *lease);

/* Whether others heard of the release that it just made, or may have. */
bool belay__wake_others(const belay__lease_t *lease);

/* ---- lease/wait/turns.c: turns among clients --------------------------------------------------------------------- */

/* Notes how many others heard of the release that was just answered. */
void belay__crowd_note(belay__lease_t *lease);

/* How many nanoseconds a waiter that hears of a release lets others go first; false if that is not known. */
bool belay__crowd_delay(const belay__lease_t *lease, uint64_t *delay);

/* When the others that heard of this client's last release have asked; 0: there are none. */
uint64_t belay__crowd_return_at(const belay__lease_t *lease);

/* ---- lease/machine/lease.c: the machine -------------------------------------------------------------------------- */

typedef enum belay__lease_event {
  BELAY__EV_ACQUIRE, /* the owner wants it */
  BELAY__EV_RELEASE, /* the owner gives it back */
  BELAY__EV_TURN,    /* it comes next in its line; arg: a belay__yield_t */
  BELAY__EV_WAKE,    /* it may be free; arg: a belay__woken_t */
  BELAY__EV_KEPT,    /* it was not passed on, as far as is known; arg: it may have been */
  BELAY__EV_EXTEND,  /* the owner wants it for longer */
  BELAY__EV_CHECK,   /* the server may have lost it; arg: a belay__check_t */
  BELAY__EV_CANCEL,  /* the owner does not want to wait any more */
  BELAY__EV_CLOSE,   /* the handle ends */
  BELAY__EV_ANSWER,  /* a member answered */
  BELAY__EV_TIMER,   /* the timer fired */
  BELAY__EV_EXPIRY,  /* the deadline passed */
  BELAY__EV_TOLD,    /* the owner is about to be told that it was granted */
  BELAY__EV_UNDONE   /* an undo that CLOSING waits for is over */
} belay__lease_event_t;

/* Something happened. arg: with RELEASE and EXTEND, how long to wait for the answers, in milliseconds; see also the
 * events. */
void belay__lease_step(belay__lease_t *lease, belay__lease_event_t event, uint64_t arg);

/* Whether that can happen in that state; if it does all the same, belay is wrong and says so (assert). */
bool belay__lease_expects(belay__lease_state_t state, belay__lease_event_t event);

/* A member has a new connection. Where the last attempt or renewal failed, and a quorum is connected, the next one comes
 * soon. */
void belay__lease_connected(belay__lease_t *lease);

/* The owner wants another ttl. */
void belay__lease_change_ttl(belay__lease_t *lease, uint32_t ttl_ms);

#endif /* BELAY_LEASE_MACHINE_LEASE_H */

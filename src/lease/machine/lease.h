/* A lease: a lock, a permit or an office that is held for a time. This header has its states, its events and its fields.
 *
 *   state      what happens                                           next state
 *   ---------  -----------------------------------------------------  ----------
 *   IDLE,      acquire                                                ACQUIRING
 *   LOST       acquire, and a lease of this client comes first        QUEUED
 *              acquire, and waiters of other clients go first         WAITING
 *   QUEUED     its turn                                               ACQUIRING
 *              its turn, and waiters of other clients go first        WAITING
 *              the wait is over, cancel                               IDLE
 *   ACQUIRING  a quorum says yes, in time                             GRANTED
 *              the same, and a fencing number is still needed         FENCING
 *              any other outcome, and the wait goes on                WAITING
 *              any other outcome, cancel                              IDLE
 *   FENCING    a majority accepts the number, in time                 GRANTED
 *              any other outcome, deadline, and the wait goes on      WAITING
 *              any other outcome, deadline, cancel                    IDLE
 *   WAITING    the next attempt is due, its turn                      ACQUIRING
 *              its turn, and waiters of other clients go first        WAITING
 *              the wait is over, cancel                               IDLE
 *   GRANTED    the task runs: the owner is notified                   HELD
 *              deadline, and the wait goes on                         WAITING
 *              deadline, cancel                                       IDLE
 *   HELD       a renewal is due, extend                               EXTENDING
 *              release                                                RELEASING
 *              deadline, a late answer: no quorum has it              LOST
 *   EXTENDING  the round is decided                                   HELD
 *              extend                                                 EXTENDING
 *              release                                                RELEASING
 *              deadline, an answer: no quorum has it                  LOST
 *   RELEASING  the round is decided, the next waiter has answered     IDLE
 *              the next waiter has not answered in time               IDLE
 *   all these  close, and there are tokens to undo                    CLOSING
 *              close                                                  CLOSED
 *   CLOSING    all is undone, close_timeout is over, abort            CLOSED
 *
 * An attempt that cannot be sent ends as an attempt without an answer does. Other events leave the state as it is.
 *
 * Only belay__lease_step() writes the state. No lease steps another one: a lease that calls the next in its queue, or
 * answers the one that passed it the lock, queues the other's task, which runs the event.
 *
 * A token belongs to one attempt. When the attempt does not end as held, its token is undone on every member that may
 * have it, behind the call in flight, and is never sent in an acquire again.
 *
 * The deadline is what a quorum of members keeps for us. Each is counted from just before the first byte of its last
 * acknowledged acquire or extend was sent, less the drift. The expiry timer is set to the deadline in FENCING, GRANTED,
 * HELD and EXTENDING. It fires before anything else when the loop comes back late.
 *
 * FENCING proposes a number to all members, and ends when a majority has accepted it. READ asks for a number that is
 * larger than the stored one; ACCEPT stores the largest of the replies. If a majority refuses, READ follows again. */
#ifndef BELAY_LEASE_MACHINE_LEASE_H
#define BELAY_LEASE_MACHINE_LEASE_H

#include "core/client/channel.h"
#include "core/client/client.h"
#include "core/key/table.h"
#include "core/key/token.h"
#include "lease/machine/client_leases.h"
#include "lease/machine/config.h"

typedef struct belay__undo belay__undo_t;

typedef enum belay__lease_state {
  BELAY__LEASE_IDLE,      /* made; or an acquire failed; or a release ended */
  BELAY__LEASE_QUEUED,    /* another lease of this client comes first */
  BELAY__LEASE_ACQUIRING, /* an attempt is out */
  BELAY__LEASE_FENCING,   /* a quorum granted it, and is being asked for a fencing number */
  BELAY__LEASE_WAITING,   /* an attempt failed, the next one is not due yet */
  BELAY__LEASE_GRANTED,   /* a quorum granted it, and its owner is not notified yet */
  BELAY__LEASE_HELD,      /* its owner was notified of the grant */
  BELAY__LEASE_EXTENDING, /* the same, and an extend or a renewal is out */
  BELAY__LEASE_RELEASING, /* its owner gave it back, and the answer is not in */
  BELAY__LEASE_LOST,      /* it ended by itself */
  BELAY__LEASE_CLOSING,   /* the handle is closed, and its tokens are being undone */
  BELAY__LEASE_CLOSED     /* nothing is left to wait for */
} belay__lease_state_t;

typedef enum belay__lease_event {
  BELAY__EV_ACQUIRE,  /* the owner wants it */
  BELAY__EV_RELEASE,  /* the owner gives it back */
  BELAY__EV_TURN,     /* it comes next in its queue; arg: a belay__yield_t */
  BELAY__EV_WAKE,     /* it may be free; arg: a belay__woken_t */
  BELAY__EV_EXTEND,   /* the owner wants it for longer */
  BELAY__EV_CHECK,    /* the server may have lost it; arg: a belay__check_t */
  BELAY__EV_CANCEL,   /* the owner does not want to wait any more */
  BELAY__EV_CLOSE,    /* the handle ends */
  BELAY__EV_ANSWER,   /* a member answered */
  BELAY__EV_TIMER,    /* the timer fired */
  BELAY__EV_EXPIRY,   /* the deadline passed */
  BELAY__EV_NOTIFIED, /* the owner is about to be notified of the grant */
  BELAY__EV_UNDONE    /* an undo that CLOSING waits for is over */
} belay__lease_event_t;

/* Why a holder asks the server before its next renewal is due. */
typedef enum belay__check {
  BELAY__CHECK_CONNECTION_LOST, /* a connection was lost: of all that were held through it */
  BELAY__CHECK_MESSAGE          /* something was published on its channel */
} belay__check_t;

/* Whether it lets others elsewhere go first. */
typedef enum belay__yield {
  BELAY__YIELD_NOT,
  BELAY__YIELD_BRIEFLY, /* until the waiters that were just woken have asked */
  BELAY__YIELD_LONG     /* until some of the waiters that only poll have asked */
} belay__yield_t;

typedef enum belay__woken {
  BELAY__WOKEN_ALL,      /* other waiters got the same message */
  BELAY__WOKEN_ALONE,    /* we come next */
  BELAY__WOKEN_AGAIN,    /* we are connected again, and may have missed something; as others may */
  BELAY__WOKEN_CONNECTED /* a quorum is connected: the last attempt failed for want of that */
} belay__woken_t;

typedef enum belay__round {
  BELAY__ROUND_NONE,
  BELAY__ROUND_ACQUIRE,
  BELAY__ROUND_READ,   /* for a fencing number that a majority has not seen yet */
  BELAY__ROUND_ACCEPT, /* that number */
  BELAY__ROUND_EXTEND, /* a renewal too */
  BELAY__ROUND_RELEASE
} belay__round_t;

#define BELAY__PENDING 1      /* a member's status while its answer is not in */
#define BELAY__NO_VOTE 2      /* a member's vote before the first */
#define BELAY__RESTORED 3     /* yes, but it was gone, and does not count yet */
#define BELAY__NO_OPERATION 4 /* lease->op, lease->extend: nothing was asked for */

/* The mode that an extend asks for. An upgrade is a vote, as an acquire is; a downgrade is in force before it is sent,
 * and asks as a reader. */
typedef enum belay__extend_as {
  BELAY__EXTEND_AS_READ,
  BELAY__EXTEND_AS_WRITE,  /* of a writer */
  BELAY__EXTEND_AS_UPGRADE /* of a reader */
} belay__extend_as_t;

/* The lease on one node. */
typedef struct belay__member {
  belay__object_t object; /* in the client's list */
  belay_client_t *client;
  belay__call_t *call;    /* of the present round */
  belay__call_t *confirm; /* makes its answer count: a WAIT, or the quarantine's question */
  union {
    belay__call_t *late; /* an acquire that is not waited for; before CLOSING */
    belay__undo_t *undo; /* CLOSING waits for it */
  };
  uint64_t sent;        /* when the call was sent whose answer is being confirmed */
  uint64_t until;       /* this node keeps the lease for us until then; 0: it does not */
  uint64_t server_mark; /* the server that last said yes: a hash of its run id; 0: not known */
  uint32_t sent_on;     /* ... and on which connection */
  uint32_t epoch;       /* that of the last call that may yet take the lease, unanswered; 0: none */
  uint32_t
      downgrade_epoch; /* that of the last extend that may yet make a reader of the writer, unanswered; 0: none */
  int16_t status;     /* in the present round */
  int16_t vote;       /* in the last acquire or extend */
  uint8_t index;      /* among the lease's */
  bool may_exist : 1; /* our token may be on this node */
  bool has_place : 1; /* our ticket may be */
  bool retake : 1;    /* the present extend takes it again if it is gone */
  bool
      restored : 1; /* taken again after it was gone: does not count until a round was won without it */
  bool known_restored : 1; /* ... that was asked when it had said that it has it again */
} belay__member_t;

/* The subscriptions of a waiter or a holder; lease/wait/wake.c has the struct. */
typedef struct belay__wake belay__wake_t;

#define BELAY__NOTIFIED_UNKNOWN UINT32_MAX
#define BELAY__NOTIFIED_UNKNOWN_MIN                                                                \
  (INT32_MAX - 1) /* from here on the number of connections is not known */

/* The state of an acquire, up to its end or the notice of the grant. It is apart because most leases are held most of
 * the time. */
typedef struct belay__acquire {
  uint64_t wait_until; /* 0: one attempt only */
  uint64_t started_at; /* when the present attempt began */
  int64_t holder_ms;   /* how long another may still hold it; -1: not known */
  belay__wake_t *wake; /* NULL: it does not listen */
  uint32_t found_held; /* attempts in a row that found it held */
  uint32_t releases;   /* releases that were published since the wait began */
  uint8_t proposals;   /* fencing numbers that were proposed for this grant */
  bool woken;          /* something was heard since the attempt was sent */
  bool retry_advanced; /* WAITING: it is asked sooner because of that */
  bool turn_queued;    /* QUEUED, WAITING: its turn is queued: the task has to run EV_TURN, */
  uint8_t yield;       /* with this belay__yield_t */
  bool shares_grant;   /* when its turn came, another was granted what both may have: host */
  belay__token_t granted_token;
} belay__acquire_t;

/* There may be a hundred thousand of them: the widths are what is needed, and the order leaves no gaps. */
struct belay__lease {
  const belay__lease_config_t *config;
  /* The machine's entry: members, undos and subscriptions report events through it. */
  void (*report)(belay__lease_t *lease, belay__lease_event_t event, uint64_t arg);
  belay__entry_t entry;      /* the first in its line: in the client's table of lines */
  belay__list_t queue_node;  /* all of one key in one client; {NULL}: in none */
  belay__lease_t *partner;   /* RELEASING: the heir; QUEUED to ACQUIRING: the giver; else NULL */
  belay__acquire_t *acquire; /* QUEUED ... GRANTED; else NULL */
  belay__wake_t *watch;      /* HELD, with notice_break: its ears; else NULL */
  belay__timer_t expiry;     /* GRANTED, HELD: the local deadline */
  belay__timer_t timer;      /* WAITING: the next attempt; HELD: renewal; CLOSING: patience */
  belay__task_t task;        /* tells the face what there is to tell */
  char *key;                 /* and behind it `extra`, the kind's own, and the label */
  uint64_t held_since;       /* 0: it was not granted since it was asked for */
  uint64_t round_deadline;   /* the present round's deadline */
  uint64_t
      grants_in_row_since; /* when the first of a streak got it that were in others' way; 0: we will be */
  uint64_t ticket;         /* of the present wait; 0: none */
  uint64_t fence;          /* the fencing number, or the one that is being agreed on; 0: none */
  uint32_t ttl;            /* of the present hold */
  uint32_t longest_ttl; /* the server may keep it for that long: its own ttl is never shortened */
  uint32_t attempts;    /* of the present acquire */
  uint32_t failures;    /* renewals that failed in a row; acquires that were refused in a row */
  uint32_t affinity;
  uint32_t
      notified; /* connections that got the message of the last release; BELAY__NOTIFIED_UNKNOWN */
  uint32_t grants_in_row; /* how often others of this client had it, in a row, before us */
  uint32_t holds;         /* a reentrant lock's */
  belay__token_t token;
  int16_t error; /* the last that went wrong; 0 since the last grant */
  /* The owner's acquire or release, and its extend: BELAY__NO_OPERATION; BELAY__PENDING; or how it ended, which the
   * owner is not notified of yet. */
  int16_t op, extend;
  uint16_t key_len, extra_len;
  uint8_t label_len; /* 0: the clients' owner label */
  uint8_t members, quorum;
  uint8_t state, round;
  uint8_t loss;      /* the belay_lost_t that the owner is not notified of yet; 0: none */
  uint8_t mode;      /* a reader's or a writer's: belay_rwlock_mode_t */
  uint8_t next_mode; /* the mode that the next extend is to bring */
  /* A belay__extend_as_t: the mode in the present round's command. It stays until the next round: a reply that comes after
   * the decision answers the command that was sent, and not what the owner wants by then. */
  uint8_t sent_mode;
  bool upgrading : 1;      /* the owner has asked to become the writer, and was not told yet */
  bool mode_uncertain : 1; /* a change of mode was not confirmed: some node may have it otherwise */
  bool recheck : 1;        /* EXTENDING: a server may have lost it since the extend was sent */
  bool
      may_be_handed_over : 1; /* RELEASING: it may have been passed on, and the heir did not learn */
  bool ref : 1, holds_loop : 1;
  belay__member_t member[1]; /* so many as `members` says: the face has the memory, right behind */
};

/* The size of a struct that ends with a lease of n members. size: that of the struct with one member. */
static inline size_t belay__lease_sized(size_t size, size_t members) {
  return size + (members - 1) * sizeof(belay__member_t);
}

/* True if the owner was notified of the grant, and of no end since. The deadline may have passed. */
static inline bool belay__lease_is_held(const belay__lease_t *lease) {
  return lease->state == BELAY__LEASE_HELD || lease->state == BELAY__LEASE_EXTENDING;
}

static inline belay_t *belay__lease_belay(const belay__lease_t *lease) {
  return lease->member[0].client->belay;
}

static inline belay__lease_t *belay__member_lease(const belay__member_t *member) {
  const char *first = (const char *)(member - member->index);
  return (belay__lease_t *)(uintptr_t)(first - offsetof(belay__lease_t, member));
}

/* The label of the owner, as its tokens have it; not terminated. */
static inline const char *belay__lease_label(const belay__lease_t *lease, size_t *len) {
  const belay_client_t *client = lease->member[0].client; /* all have the same */
  *len = lease->label_len > 0 ? lease->label_len : client->owner_len;
  return lease->label_len > 0 ? lease->key + lease->key_len + lease->extra_len : client->owner;
}

static inline const char *belay__lease_extra(const belay__lease_t *lease) {
  return lease->key + lease->key_len;
}

/* True if the acquire script counts the grants itself, which it does on one node. */
static inline bool belay__lease_counts(const belay__lease_t *lease) {
  return lease->config->fencing && lease->members == 1;
}

/* The connection class of the lease's calls. */
static inline belay__lane_t belay__lease_lane(const belay__lease_t *lease) {
  return lease->config->min_replicas > 0 ? BELAY__LANE_DURABLE : BELAY__LANE_LEASE;
}

/* The server behind the member's connection; NULL while there is no connection. */
static inline const belay__server_info_t *belay__member_server(const belay__member_t *member) {
  const belay__lease_t *lease = belay__member_lease(member);
  return member->client->node_ops->server(member->client, belay__lease_lane(lease),
                                          lease->affinity);
}

/* True if an acquire or a release was asked for, or an extend, and its owner was not notified of its end. */
static inline bool belay__is_pending(int operation) {
  return operation != BELAY__NO_OPERATION;
}

/* True if it has ended. */
static inline bool belay__is_over(int operation) {
  return operation <= 0;
}

static inline void belay__lease_set_timer(belay__lease_t *lease, uint64_t when) {
  belay__timer_set(belay__lease_belay(lease), BELAY__RANK_OTHER, &lease->timer, when);
}

static inline void belay__lease_stop_timer(belay__lease_t *lease) {
  belay__timer_stop(belay__lease_belay(lease), BELAY__RANK_OTHER, &lease->timer);
}

static inline void belay__lease_stop_timers(belay__lease_t *lease) {
  belay__timer_stop(belay__lease_belay(lease), BELAY__RANK_EXPIRY, &lease->expiry);
  belay__lease_stop_timer(lease);
}

static inline uint64_t belay__earlier(uint64_t a, uint64_t b) {
  return a < b ? a : b;
}

#endif /* BELAY_LEASE_MACHINE_LEASE_H */

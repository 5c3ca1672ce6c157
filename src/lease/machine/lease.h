/* A lease: a lock, a permit or an office that is held for a time. This header has its states, its
 * events and its fields.
 *
 *   state      event                                                  next state
 *   ---------  -----------------------------------------------------  ----------
 *   IDLE,      acquire                                                ACQUIRING
 *   LOST       acquire, and a lease of this client comes first        QUEUED
 *              acquire, and waiters of other clients go first         WAITING
 *   QUEUED     its turn                                               ACQUIRING
 *              its turn, and waiters of other clients go first        WAITING
 *              the wait is over, cancel                               IDLE
 *   ACQUIRING  a quorum grants, in time                               GRANTED
 *              the same, and a fencing number is still needed         FENCING
 *              any other outcome, and the wait goes on                WAITING
 *              any other outcome, cancel                              IDLE
 *   FENCING    a quorum accepts the number, in time                   GRANTED
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
 *              deadline, a late reply: no quorum has it               LOST
 *   EXTENDING  the round is decided                                   HELD
 *              extend                                                 EXTENDING
 *              release                                                RELEASING
 *              deadline, a reply: no quorum has it                    LOST
 *   RELEASING  the round is decided, the next waiter has its reply    IDLE
 *              the next waiter has no reply in time                   IDLE
 *   all these  close, and there are tokens to undo                    CLOSING
 *              close                                                  CLOSED
 *   CLOSING    all is undone, close_timeout is over, abort            CLOSED
 *
 * An attempt that cannot be sent ends like an attempt without a reply. Other events do not change
 * the state.
 *
 * Only belay__lease_step() writes the state. A lease never calls it for another lease. A lease that
 * has an event for another lease queues the task of that lease, and the task runs the event. There
 * are two such events: the turn of the next lease in the queue, and the result of a hand-over.
 *
 * A token belongs to one attempt. If the attempt does not end in HELD, an undo removes its token
 * from every member that may have it. The undo is sent behind the calls in flight. No later acquire
 * uses the token again.
 *
 * The deadline is the time until which a quorum of members keeps the lease. For one member, this is
 * the time of the send of its last confirmed acquire or extend, plus the ttl, less the drift. The
 * time of the send is read just before the first byte is written. In FENCING, GRANTED, HELD and
 * EXTENDING, the timer also stands for the deadline. After a stall of the loop, the timer fires
 * before all other events.
 *
 * FENCING proposes a number to all members, and ends when a quorum has accepted the number. A READ
 * round asks each member for a number that is larger than its stored number. An ACCEPT round
 * proposes the largest of the replies. If a refusal prevents a quorum, READ follows again, until
 * PROPOSALS_MAX numbers have been proposed (attempt.c). */
#ifndef BELAY_LEASE_MACHINE_LEASE_H
#define BELAY_LEASE_MACHINE_LEASE_H

#include "core/client/channel.h"
#include "core/client/client.h"
#include "core/key/table.h"
#include "core/key/token.h"
#include "lease/machine/client_leases.h"

typedef struct belay__undo belay__undo_t;

typedef enum belay__lease_state {
  BELAY__LEASE_IDLE,      /* new, or the last acquire failed, or the last release ended */
  BELAY__LEASE_QUEUED,    /* waits in the client's queue behind another lease of the same key */
  BELAY__LEASE_ACQUIRING, /* the acquire round of an attempt is pending */
  BELAY__LEASE_FENCING,   /* a quorum granted the attempt; a round about the number is pending */
  BELAY__LEASE_WAITING,   /* the next attempt is not due yet; waits for its time or a wake-up */
  BELAY__LEASE_GRANTED,   /* a quorum granted the lease; the owner is not notified yet */
  BELAY__LEASE_HELD,      /* the owner was notified of the grant */
  BELAY__LEASE_EXTENDING, /* held, and an extend or a renewal is pending */
  BELAY__LEASE_RELEASING, /* the owner released the lease; the release is pending */
  BELAY__LEASE_LOST,      /* the lease ended without a release */
  BELAY__LEASE_CLOSING,   /* the handle is closed, and undos are pending */
  BELAY__LEASE_CLOSED     /* the handle is closed, and no undo is waited for */
} belay__lease_state_t;

typedef enum belay__lease_event {
  BELAY__EV_ACQUIRE,  /* the owner starts an acquire */
  BELAY__EV_RELEASE,  /* the owner starts a release; arg: the timeout in milliseconds */
  BELAY__EV_TURN,     /* the lease is next in its queue or hand-over; arg: a belay__yield_t */
  BELAY__EV_WAKE,     /* a message or a connection is a reason to retry; arg: a belay__woken_t */
  BELAY__EV_EXTEND,   /* the owner starts an extend; arg: the timeout in milliseconds */
  BELAY__EV_CHECK,    /* a server may have lost the lease; arg: a belay__check_t */
  BELAY__EV_CANCEL,   /* the owner cancels the acquire */
  BELAY__EV_CLOSE,    /* the owner or the client closes the handle */
  BELAY__EV_ANSWER,   /* a member, or the partner of a hand-over, has a result */
  BELAY__EV_TIMER,    /* lease->timer fired because `due` has come */
  BELAY__EV_EXPIRY,   /* lease->timer fired because the local deadline has passed */
  BELAY__EV_NOTIFIED, /* the task is about to notify the owner of the end of lease->op */
  BELAY__EV_UNDONE    /* an undo that CLOSING waits for ended */
} belay__lease_event_t;

/* Why a holder sends a renewal before it is due: a server may have lost the lease. */
typedef enum belay__check {
  /* a connection that confirmed the lease was lost, or the key moved to another server */
  BELAY__CHECK_CONNECTION_LOST,
  BELAY__CHECK_MESSAGE /* a message on the lease's channel, or its subscription was confirmed */
} belay__check_t;

/* The pause of a lease between its turn and its attempt, in which waiters of other clients can send
 * their attempts first; poll_delay.c has the lengths. */
typedef enum belay__yield {
  BELAY__YIELD_NOT,     /* no pause */
  BELAY__YIELD_BRIEFLY, /* a pause that suffices for the waiters that a message woke */
  BELAY__YIELD_LONG     /* a pause that suffices for some of the waiters that only poll */
} belay__yield_t;

typedef enum belay__woken {
  BELAY__WOKEN_ALL,   /* a message for all waiters, or the first confirmation of a subscription */
  BELAY__WOKEN_ALONE, /* a message for this lease's ticket: it is first in the server's queue */
  BELAY__WOKEN_AGAIN, /* the subscription is up again; messages may have been lost */
  /* a member got a connection and a quorum is connected; the last attempt ended in an error other
   * than BELAY_EHELD */
  BELAY__WOKEN_CONNECTED
} belay__woken_t;

typedef enum belay__round {
  BELAY__ROUND_NONE,
  BELAY__ROUND_ACQUIRE,
  BELAY__ROUND_READ,   /* reads a fencing number that is larger than the stored number */
  BELAY__ROUND_ACCEPT, /* proposes the largest of these numbers */
  BELAY__ROUND_EXTEND, /* also a renewal */
  BELAY__ROUND_RELEASE
} belay__round_t;

#define BELAY__PENDING 1      /* a member's status, lease->op, lease->extend: no result yet */
#define BELAY__NO_VOTE 2      /* a member's vote before the first acquire */
#define BELAY__RESTORED 3     /* the key was gone and is set again; the member does not count yet */
#define BELAY__NO_OPERATION 4 /* lease->op, lease->extend: no operation is pending */

/* The mode that an extend asks for. For an upgrade, as for an acquire, only servers outside the
 * quarantine count. A downgrade changes lease->mode before the extend is sent. */
typedef enum belay__extend_as {
  BELAY__EXTEND_AS_READ,
  BELAY__EXTEND_AS_WRITE,  /* sent by a writer */
  BELAY__EXTEND_AS_UPGRADE /* sent by a reader */
} belay__extend_as_t;

/* The lease on one node: the fields that a held lease needs, too. */
typedef struct belay__member {
  belay__list_t node; /* entry in the client's list of members */
  /* Time until which this node keeps the lease, in ns. 0: the node is not known to keep it. */
  uint64_t until;
  /* Hash of the run id of the server that last confirmed a command, or that may set a missing key
   * again now. 0: unknown. */
  uint32_t server_mark;
  uint32_t sent_on; /* epoch of the connection of the last call with a reply */
  /* Epoch of the last connection with an unanswered call that may still take the lease; 0: none. */
  uint32_t epoch;
  int16_t vote;       /* result of the last acquire or extend */
  uint8_t index;      /* index in lease->member */
  bool may_exist : 1; /* true if the token may be on this node */
  bool has_place : 1; /* true if the ticket may be in this node's queue */
  bool retake : 1;    /* EXTEND round: true if the extend sets the key again if it is gone */
  /* True if the server lost the key and may have it again. With a quarantine, also after an acquire
   * that this node did not confirm. A reply to an extend then does not count until a quorum has
   * confirmed an extend without this node. */
  bool restored : 1;
  bool known_restored : 1; /* true if an extend before the current round ended as RESTORED here */
} belay__member_t;

/* The commands of one member that are under way, and the result of the current round. */
typedef struct belay__exchange {
  belay__call_t *call;    /* call of the current round; NULL if none is pending */
  belay__call_t *confirm; /* WAIT, quarantine query or publication after the call; else NULL */
  union {
    belay__call_t *late; /* before CLOSING: an acquire that the decision did not wait for */
    belay__undo_t *undo; /* in CLOSING: the pending undo */
  };
  uint64_t sent; /* time when the last call with a reply was first sent, in ns */
  /* Epoch of the last connection with an unanswered extend that may still turn the writer into a
   * reader; 0: none. */
  uint32_t downgrade_epoch;
  int16_t status; /* result in the current round */
} belay__exchange_t;

/* The subscriptions of a waiter or a holder; lease/wait/wake.c has the struct. */
typedef struct belay__wake belay__wake_t;

#define BELAY__NOTIFIED_UNKNOWN UINT32_MAX
/* Values of lease->active->notified from here on mean that the number of connections is unknown. */
#define BELAY__NOTIFIED_UNKNOWN_MIN (INT32_MAX - 1)

/* The part of a lease that is under way: an acquire, a round, a wait in a queue. A held lease is
 * dormant if it has none of these (belay__lease_settle()). Then lease->active is NULL, and the
 * memory is in a pool of the client. A program may have a hundred thousand leases, most of which
 * are held and dormant most of the time. */
typedef struct belay__active {
  belay__lease_t *lease;
  uint64_t wait_until; /* end of the wait of the acquire, in ns; 0: one attempt only */
  uint64_t started_at; /* start of the current attempt, in ns */
  int64_t holder_ms;   /* smallest holder_ms of the replies, see belay__kind_t; -1: unknown */
  /* Subscriptions of a waiter, or of a holder with notice_break; NULL: none */
  belay__wake_t *wake;
  /* Ring of the leases of one key in one client; valid while lease->in_queue is true */
  belay__list_t queue_node;
  /* The other lease of a hand-over. RELEASING: the lease that receives the lock. QUEUED, WAITING,
   * ACQUIRING: the lease that releases it. NULL: no hand-over. */
  belay__lease_t *partner;
  void (*extend_cb)(void); /* the owner's callback of the pending extend, for the kind's handle */
  uint64_t round_deadline; /* deadline of the current round, in ns */
  /* Time of the first of the consecutive grants to leases of this client, in ns; 0: the next grant
   * is the first. */
  uint64_t grants_in_row_since;
  uint64_t ticket;        /* ticket of the current wait; 0: none */
  uint32_t grants_in_row; /* consecutive grants to leases of this client before this one */
  uint32_t holds;         /* reentrant lock: number of holds of the owner */
  uint32_t longest_ttl;   /* longest ttl sent with the token, in ms; an extend never shortens it */
  uint32_t attempts;      /* attempts of the current acquire */
  uint32_t failures;      /* consecutive failed renewals, or attempts with an error except EHELD */
  /* Connections that received the message of the last release; from BELAY__NOTIFIED_UNKNOWN_MIN
   * on: unknown. */
  uint32_t notified;
  uint32_t found_held; /* consecutive attempts that found the lease held */
  uint32_t releases;   /* wake-ups by BELAY__WOKEN_ALL since the wait of this client began */
  /* with shares_grant: token of the lease whose grant gave the turn */
  belay__token_t granted_token;
  uint8_t round;
  /* The belay__extend_as_t of the current round's command. It stays until the next round, because a
   * reply after the decision still refers to the command that was sent. */
  uint8_t sent_mode;
  uint8_t proposals;  /* fencing numbers that were proposed for this grant */
  uint8_t yield;      /* with turn_queued: the belay__yield_t for BELAY__EV_TURN */
  bool acquiring : 1; /* QUEUED to GRANTED */
  bool woken : 1;     /* true if a wake-up came since the attempt was sent */
  /* WAITING: true if a wake-up was used to set the time of the next attempt */
  bool retry_advanced : 1;
  bool turn_queued : 1; /* QUEUED, WAITING: true if the task has to run BELAY__EV_TURN */
  /* true if the grant of another lease gave this lease its turn, and this lease may share it */
  bool shares_grant : 1;
  belay__exchange_t exchange[]; /* one for each member */
} belay__active_t;

/* The fields are as narrow as possible, and their order leaves no gaps. Behind the members follow,
 * in the memory that the owner of the lease allocates: with `fencing` the fencing number
 * (uint64_t); then the key, the kind's `extra` and the label; or with kind->many a pointer to the
 * key instead. */
struct belay__lease {
  const belay__lease_config_t *config;
  belay__active_t *active; /* NULL: nothing is under way */
  belay__entry_t entry;    /* entry of a queue's first lease in the client's table of queues */
  /* The earlier of two times: `due`, if is_due_set; the local deadline, if expires. `due` is in
   * QUEUED: the end of the wait. WAITING: the next attempt. HELD: the next renewal. RELEASING: the
   * deadline of the hand-over. CLOSING: the end of close_timeout. Any round that is decided when it
   * starts: now. The deadline counts in FENCING, GRANTED, HELD and EXTENDING. */
  belay__timer_t timer;
  belay__task_t task;  /* runs queued events and notifies the owner */
  uint64_t held_since; /* time of the grant, in ns; 0: not granted since the acquire began */
  belay__token_t token;
  uint32_t ttl; /* ttl of the current hold, in ms */
  uint32_t route;
  int16_t error; /* last error since the start of the acquire, or since the grant; 0: none */
  /* The owner's acquire or release, and its extend. BELAY__NO_OPERATION; BELAY__PENDING; or the
   * result, until the task notifies the owner. */
  int16_t op, extend;
  uint16_t key_len, extra_len;
  uint8_t label_len; /* 0: the owner label of the clients */
  uint8_t members, quorum;
  uint8_t state;
  uint8_t loss;            /* the belay_lost_t to notify the owner of; 0: none */
  uint8_t mode;            /* belay_rwlock_mode_t of the handle */
  uint8_t next_mode;       /* mode after the next extend */
  bool is_due_set : 1;     /* true if the timer stands for `due` */
  bool expires : 1;        /* true if the timer stands for the deadline */
  bool in_queue : 1;       /* true if the lease is in a queue of its client */
  bool upgrading : 1;      /* true if the owner's upgrade is pending */
  bool mode_uncertain : 1; /* true if a change of mode is unconfirmed: nodes may differ */
  bool recheck : 1;        /* EXTENDING: true if a server may have lost the lease since the send */
  /* RELEASING: true if the server may have executed a hand-over that got no valid reply */
  bool may_be_handed_over : 1;
  bool ref : 1, holds_loop : 1;
  belay__member_t member[1]; /* `members` elements; the owner of the lease allocates the rest */
};

/* Returns the size of a struct that ends with a lease of n members. size: size of the struct with
 * one member. */
static inline size_t belay__lease_sized(size_t size, size_t members) {
  return size + (members - 1) * sizeof(belay__member_t);
}

/* True if the owner was notified of the grant and of no end since. The deadline may have passed. */
static inline bool belay__lease_is_held(const belay__lease_t *lease) {
  return lease->state == BELAY__LEASE_HELD || lease->state == BELAY__LEASE_EXTENDING;
}

/* Returns the client of member i. All clients of a lease are on one loop. */
static inline belay_client_t *belay__lease_client(const belay__lease_t *lease, unsigned i) {
  return lease->config->clients[i];
}

static inline belay__client_leases_t *belay__lease_leases(const belay__lease_t *lease) {
  return belay__client_leases(belay__lease_client(lease, 0));
}

static inline belay_t *belay__lease_belay(const belay__lease_t *lease) {
  return belay__lease_client(lease, 0)->belay;
}

static inline uint64_t belay__lease_now(const belay__lease_t *lease) {
  return belay__now(belay__lease_belay(lease));
}

static inline belay__lease_t *belay__member_lease(const belay__member_t *member) {
  const char *first = (const char *)(member - member->index);
  return (belay__lease_t *)(uintptr_t)(first - offsetof(belay__lease_t, member));
}

static inline belay_client_t *belay__member_client(const belay__member_t *member) {
  return belay__lease_client(belay__member_lease(member), member->index);
}

/* Returns the member's exchange. The lease must be active. */
static inline belay__exchange_t *belay__member_exchange(const belay__member_t *member) {
  return &belay__member_lease(member)->active->exchange[member->index];
}

/* True from the start of an acquire until it fails, or until the owner is notified of the grant. */
static inline bool belay__lease_is_acquiring(const belay__lease_t *lease) {
  return lease->active != NULL && lease->active->acquiring;
}

/* The entry of the machine. Members, undos and subscriptions report events through it, so that they
 * do not depend on the machine. */
struct belay__machine {
  void (*step)(belay__lease_t *lease, belay__lease_event_t event, uint64_t arg);
};

static inline void belay__lease_report(belay__lease_t *lease, belay__lease_event_t event,
                                       uint64_t arg) {
  belay__lease_leases(lease)->machine->step(lease, event, arg);
}

/* Returns the fencing number, or the number that is proposed; 0: none. The number has memory only
 * with `fencing`. */
static inline uint64_t belay__lease_fence(const belay__lease_t *lease) {
  return lease->config->fencing ? *(const uint64_t *)(const void *)&lease->member[lease->members]
                                : 0;
}

static inline void belay__lease_set_fence(belay__lease_t *lease, uint64_t number) {
  if (lease->config->fencing)
    *(uint64_t *)(void *)&lease->member[lease->members] = number;
}

/* Bytes of the fencing number. */
static inline size_t belay__lease_fence_size(const belay__lease_config_t *config) {
  return config->fencing ? sizeof(uint64_t) : 0;
}

/* Returns the key, which the kind's `extra` and the label follow in memory. */
static inline const char *belay__lease_key(const belay__lease_t *lease) {
  const char *behind = (const char *)&lease->member[lease->members];
  return lease->config->kind->many ? *(const char *const *)(const void *)behind
                                   : behind + belay__lease_fence_size(lease->config);
}

/* The label in the lease's tokens, without a terminating 0. */
static inline const char *belay__lease_label(const belay__lease_t *lease, size_t *len) {
  const belay_client_t *client = belay__lease_client(lease, 0); /* all have the same */
  *len = lease->label_len > 0 ? lease->label_len : client->owner_len;
  return lease->label_len > 0 ? belay__lease_key(lease) + lease->key_len + lease->extra_len
                              : client->owner;
}

static inline const char *belay__lease_extra(const belay__lease_t *lease) {
  return belay__lease_key(lease) + lease->key_len;
}

/* True if the acquire script assigns the fencing number: with `fencing` and a single node. */
static inline bool belay__lease_counts(const belay__lease_t *lease) {
  return lease->config->fencing && lease->members == 1;
}

/* The connection class of the lease's calls. */
static inline belay__conn_class_t belay__lease_class(const belay__lease_t *lease) {
  return lease->config->min_replicas > 0 ? BELAY__CLASS_DURABLE : BELAY__CLASS_LEASE;
}

/* The server behind the member's connection; NULL while there is no connection. */
static inline const belay__server_info_t *belay__member_server(const belay__member_t *member) {
  const belay__lease_t *lease = belay__member_lease(member);
  const belay_client_t *client = belay__member_client(member);
  return client->node_ops->server(client, belay__lease_class(lease), lease->route);
}

/* True if an operation was started and the owner was not notified of its end. operation: lease->op
 * or lease->extend. */
static inline bool belay__is_pending(int operation) {
  return operation != BELAY__NO_OPERATION;
}

/* True if the operation ended and the owner is not notified yet. */
static inline bool belay__is_over(int operation) {
  return operation <= 0;
}

static inline uint64_t belay__earlier(uint64_t a, uint64_t b) {
  return a < b ? a : b;
}

/* Ends the owner's acquire or release. The second function ends its extend. Both do nothing if no
 * such operation is pending. The lease's task notifies the owner. */
void belay__lease_end(belay__lease_t *lease, int status);
void belay__lease_end_extend(belay__lease_t *lease, int status);

/* Makes a dormant lease active: takes the memory of lease->active. Does nothing if the lease is
 * active already. False if memory is out. */
bool belay__lease_activate(belay__lease_t *lease);

/* Makes the lease active for a new acquire, and clears what earlier operations left in
 * lease->active. False if memory is out. */
bool belay__lease_activate_acquire(belay__lease_t *lease, uint64_t wait_until);

/* Gives back the memory of lease->active if nothing is under way: in IDLE, LOST and CLOSED; in HELD
 * only if the lease has no history that a later operation needs. */
void belay__lease_settle(belay__lease_t *lease);

/* Keeps the loop alive while an operation is pending, while the lease closes, and while a lease
 * with `ref` is granted or held. Otherwise lets the loop end. */
void belay__lease_update_hold(belay__lease_t *lease);

#endif /* BELAY_LEASE_MACHINE_LEASE_H */

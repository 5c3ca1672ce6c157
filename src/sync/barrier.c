/* The barrier: a waiter whose command also registers the party. Asking again keeps the party's
 * place.
 *
 * Each wait has a new token: its party. The server remembers passed and withdrawn parties, so that
 * a repeated command gets the same reply: a lost reply can be asked for again, and a late execution
 * from a lost connection changes nothing. The server remembers a party for at least a minute. It
 * forgets the party earlier when the handle's next wait begins, if no command of the party can
 * still run late. If a wait gets no reply for 40 s, it ends with BELAY_EUNKNOWN, even if the server
 * then confirms the withdrawal. */
#include <string.h>

#include "belay/latch.h"
#include "core/call/publish.h"
#include "core/key/token.h"
#include "sync/awaitable.h"
#include "scripts.gen.h"

#define REMEMBERED_MS 60000 /* time for which passed and withdrawn parties are remembered */
/* a wait without a reply for this time is unknown; REMEMBERED_MS less the time for commands in
 * flight */
#define FORGOTTEN_AFTER_MS 40000
#define ASKS_PER_PLACE 3 /* smallest number of queries in one waiter_ttl */

struct belay_barrier {
  belay__awaitable_t awaitable; /* first */
  belay_barrier_cb cb;
  int64_t generation;      /* generation in which the party passed */
  belay__token_t party;    /* party of the current wait */
  belay__token_t previous; /* party of the wait before it */
  bool has_previous;       /* true if `previous` exists and none of its calls can run late */
  bool waited_before;      /* true after the first wait */
};

static belay_barrier_t *barrier_of(belay__waiter_t *waiter) {
  return (belay_barrier_t *)belay__awaitable_of(waiter);
}

static void put_party(const belay__token_t *party, belay__call_t *call) {
  const belay_client_t *client = call->client;
  char text[BELAY__TOKEN_TEXT_MAX];
  belay__call_arg(call, text, belay__token_text(text, party, client->owner, client->owner_len));
}

static void build_query(belay__waiter_t *waiter, belay__call_t *call) {
  const belay_barrier_t *barrier = barrier_of(waiter);
  const belay__awaitable_t *awaitable = &barrier->awaitable;
  belay__call_script(call, &belay__script_barrier_arrive, 4, 7);
  belay__awaitable_key(awaitable, call, "}");
  belay__awaitable_key(awaitable, call, "}::parties");
  belay__awaitable_key(awaitable, call, "}::passed");
  belay__awaitable_key(awaitable, call, "}::opened");
  belay__call_arg_int(call, awaitable->count);
  belay__call_arg_int(call, awaitable->ttl_ms);
  put_party(&barrier->party, call);
  belay__call_arg_int(call, awaitable->waiter_ttl_ms);
  belay__call_arg_int(call, REMEMBERED_MS);
  belay__publish_arg(call, true);
  if (barrier->has_previous)
    put_party(&barrier->previous, call);
  else
    belay__call_arg(call, "", 0);
}

/* Reads the reply. n > 0: the party has passed in generation n. 0: the party waits. -1: the party
 * has withdrawn, which is not valid, because no query follows a withdrawal. -2: the barrier has
 * another count. */
static int read(belay__waiter_t *waiter, const belay__reply_t *reply, int64_t *holds_ms) {
  int64_t n;
  (void)holds_ms;
  if (!belay__reply_integer(reply, -2, INT64_MAX, &n) || n == -1)
    return BELAY_EPROTO;
  if (n == -2)
    return BELAY_EMISMATCH;
  barrier_of(waiter)->generation = n;
  return n > 0 ? 0 : BELAY__NOT_YET;
}

static void build_withdraw(belay__waiter_t *waiter, belay__call_t *call) {
  const belay_barrier_t *barrier = barrier_of(waiter);
  belay__call_script(call, &belay__script_barrier_withdraw, 2, 2);
  belay__awaitable_key(&barrier->awaitable, call, "}::parties");
  belay__awaitable_key(&barrier->awaitable, call, "}::passed");
  put_party(&barrier->party, call);
  belay__call_arg_int(call, REMEMBERED_MS);
}

static int read_withdraw(belay__waiter_t *waiter, const belay__reply_t *reply) {
  int64_t n;
  if (!belay__reply_integer(reply, 0, INT64_MAX, &n))
    return BELAY_EPROTO;
  barrier_of(waiter)->generation = n;
  return n > 0 ? 0 : BELAY__NOT_YET;
}

static const belay__waiter_ops_t waiter_ops = {
    .build_query = build_query,
    .read = read,
    .build_withdraw = build_withdraw,
    .read_withdraw = read_withdraw,
    .finished = belay__awaitable_finished,
};

/* ---- the handle ---- */

static int on_init(belay__handle_t *handle, void *options) {
  const belay__awaitable_options_t *o = options;
  const belay__waiter_config_t config = {
      .max_interval = (uint32_t)o->latch.waiter_ttl_ms / ASKS_PER_PLACE,
      .forgotten_after = FORGOTTEN_AFTER_MS,
  };
  return belay__awaitable_init((belay__awaitable_t *)handle, o, BELAY_BARRIER_COUNT_MAX, config,
                               &waiter_ops);
}

static const belay__handle_type_t barrier_type = {BELAY__AWAITABLE_TYPE(barrier, on_init)};

BELAY__AWAITABLE_FUNCTIONS(barrier)

static void end(belay__awaitable_t *awaitable, int status) {
  belay_barrier_t *barrier = (belay_barrier_t *)awaitable;
  barrier->cb(barrier, status, status == 0 ? (uint64_t)barrier->generation : 0);
}

int belay_barrier_wait(belay_barrier_t *barrier, int64_t wait_ms, belay_barrier_cb cb) {
  int error = belay__awaitable_check_wait((belay__awaitable_t *)barrier, wait_ms, cb != NULL);
  if (error != 0)
    return error;
  belay_t *belay = barrier->awaitable.handle.client->belay;
  belay__token_t party;
  if ((error = belay->host->random(belay, &party, sizeof party)) != 0)
    return error;
  barrier->previous = barrier->party;
  barrier->has_previous = barrier->waited_before && !barrier->awaitable.waiter.may_run_late;
  barrier->party = party;
  barrier->waited_before = true;
  barrier->cb = cb;
  barrier->generation = 0;
  belay__awaitable_wait(&barrier->awaitable, wait_ms, end);
  return 0;
}

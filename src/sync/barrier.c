/* The barrier: a vigil whose question is also the coming, and whose party keeps its place by asking.
 *
 * A party is named by a token that is fresh for each wait. What the server remembers of the parties that have
 * passed, or withdrawn, makes each answer the same however often it is asked for: one that was lost can be asked
 * for again, and one that comes late, from a connection that is gone, changes nothing. It remembers for a minute,
 * or until the next wait of a party of which nothing can come late any more; who has not been answered for most of
 * that minute, its withdrawal included, does not know any more, and says so. */
#include <string.h>

#include "belay/latch.h"
#include "core/call/publish.h"
#include "core/key/token.h"
#include "sync/awaitable.h"
#include "scripts.gen.h"

#define REMEMBERED_MS 60000      /* who has passed or withdrawn */
#define FORGOTTEN_AFTER_MS 40000 /* leaves time for what is under way */
#define ASKS_PER_PLACE 3         /* in a waiter_ttl, at least */

struct belay_barrier {
  belay__post_t post;
  belay_barrier_cb cb;
  belay_barrier_close_cb close_cb;
  void *data;
  int64_t count, ttl_ms, waiter_ttl_ms;
  int64_t generation; /* in which we passed */
  belay__token_t party;
  belay__token_t before; /* the party of the wait before, */
  bool has_before;       /* of which nothing is under way any more */
  bool came;             /* there was a wait */
  size_t channel_len;
  char channel[];
};

static belay_barrier_t *barrier_of(belay__post_t *post) {
  return BELAY__CONTAINER(post, belay_barrier_t, post);
}

static belay_barrier_t *barrier_of_vigil(belay__vigil_t *vigil) {
  return barrier_of(BELAY__CONTAINER(vigil, belay__post_t, vigil));
}

/* ---- what is asked --------------------------------------------------------------------------------------- */

static void put_party(const belay__token_t *party, belay__call_t *call) {
  const belay_client_t *client = call->client;
  char text[BELAY__TOKEN_TEXT_MAX];
  belay__call_arg(call, text, belay__token_text(text, party, client->owner, client->owner_len));
}

static void ask(belay__vigil_t *vigil, belay__call_t *call) {
  const belay_barrier_t *barrier = barrier_of_vigil(vigil);
  belay__call_script(call, &belay__script_barrier_arrive, 4, 7);
  belay__post_put_key(&barrier->post, call, "");
  belay__post_put_key(&barrier->post, call, "::parties");
  belay__post_put_key(&barrier->post, call, "::passed");
  belay__post_put_key(&barrier->post, call, "::opened");
  belay__call_arg_int(call, barrier->count);
  belay__call_arg_int(call, barrier->ttl_ms);
  put_party(&barrier->party, call);
  belay__call_arg_int(call, barrier->waiter_ttl_ms);
  belay__call_arg_int(call, REMEMBERED_MS);
  belay__publish_arg(call, true);
  if (barrier->has_before)
    put_party(&barrier->before, call);
  else
    belay__call_arg(call, "", 0);
}

/* n > 0: passed in that generation; 0: waits; -1: withdrew, which is not asked after; -2: another count. */
static int read(belay__vigil_t *vigil, const belay__reply_t *reply, int64_t *holds_ms) {
  int64_t n;
  (void)holds_ms;
  if (!belay__reply_integer(reply, -2, INT64_MAX, &n) || n == -1)
    return BELAY_EPROTO;
  if (n == -2)
    return BELAY_EMISMATCH;
  barrier_of_vigil(vigil)->generation = n;
  return n > 0 ? 0 : BELAY__NOT_YET;
}

static void leave(belay__vigil_t *vigil, belay__call_t *call) {
  const belay_barrier_t *barrier = barrier_of_vigil(vigil);
  belay__call_script(call, &belay__script_barrier_withdraw, 2, 2);
  belay__post_put_key(&barrier->post, call, "::parties");
  belay__post_put_key(&barrier->post, call, "::passed");
  put_party(&barrier->party, call);
  belay__call_arg_int(call, REMEMBERED_MS);
}

static int left(belay__vigil_t *vigil, const belay__reply_t *reply) {
  int64_t n;
  if (!belay__reply_integer(reply, 0, INT64_MAX, &n))
    return BELAY_EPROTO;
  barrier_of_vigil(vigil)->generation = n;
  return n > 0 ? 0 : BELAY__NOT_YET;
}

static const belay__vigil_ops_t vigil_ops = {
    .ask = ask,
    .read = read,
    .leave = leave,
    .left = left,
    .over = belay__post_over,
};

/* ---- the handle ------------------------------------------------------------------------------------------ */

static void ended(belay__post_t *post, int status) {
  belay_barrier_t *barrier = barrier_of(post);
  belay_barrier_cb cb = barrier->cb;
  barrier->cb = NULL;
  cb(barrier, status, status == 0 ? (uint64_t)barrier->generation : 0);
}

static size_t size_of(size_t channel_len) {
  return sizeof(belay_barrier_t) + channel_len;
}

static void closed(belay__post_t *post) {
  belay_barrier_t *barrier = barrier_of(post);
  if (barrier->close_cb != NULL)
    barrier->close_cb(barrier, barrier->data);
  belay__free(belay__post_client(post)->belay, barrier, size_of(barrier->channel_len));
}

static const belay__post_ops_t post_ops = {.ended = ended, .closed = closed};

int belay_barrier_new(belay_client_t *client, const char *name, size_t name_len,
                      const belay_latch_options_t *options, belay_barrier_t **out) {
  name_len = belay__text_len(name, name_len);
  belay_latch_options_t o;
  if (out == NULL)
    return BELAY_EINVAL;
  *out = NULL;
  int error = belay__client_check(client);
  if (error == 0)
    error = belay__post_options(client, name, name_len, options, BELAY_BARRIER_COUNT_MAX, &o);
  if (error != 0)
    return error;
  size_t channel_len = belay__post_channel(client, "barrier", name, name_len, NULL);
  belay_barrier_t *barrier = belay__alloc(client->belay, size_of(channel_len));
  if (barrier == NULL)
    return BELAY_ENOMEM;
  *barrier = (belay_barrier_t){.count = o.count,
                               .ttl_ms = o.ttl_ms,
                               .waiter_ttl_ms = o.waiter_ttl_ms,
                               .channel_len = channel_len};
  belay__post_channel(client, "barrier", name, name_len, barrier->channel);
  const belay__vigil_terms_t terms = {
      .retry_min = (uint32_t)o.retry_min_ms,
      .retry_max = (uint32_t)o.retry_max_ms,
      .backoff_max = (uint32_t)o.backoff_max_ms,
      .timeout = (uint32_t)o.timeout_ms,
      .most_apart = (uint32_t)o.waiter_ttl_ms / ASKS_PER_PLACE,
      .forgotten_after = FORGOTTEN_AFTER_MS,
  };
  belay__post_init(&barrier->post, &post_ops, &vigil_ops, client, &terms, barrier->channel,
                   channel_len);
  *out = barrier;
  return 0;
}

static int check(const belay_barrier_t *barrier) {
  return barrier == NULL ? BELAY_EINVAL : belay__post_check(&barrier->post);
}

int belay_barrier_wait(belay_barrier_t *barrier, int64_t wait_ms, belay_barrier_cb cb) {
  int error = check(barrier);
  if (error == 0)
    error = belay__post_may_wait(&barrier->post, wait_ms, cb != NULL);
  if (error != 0)
    return error;
  belay_t *belay = belay__post_client(&barrier->post)->belay;
  belay__token_t party;
  if ((error = belay->host->random(belay, &party, sizeof party)) != 0)
    return error;
  barrier->before = barrier->party;
  barrier->has_before = barrier->came && !barrier->post.vigil.astray;
  barrier->party = party;
  barrier->came = true;
  barrier->cb = cb;
  barrier->generation = 0;
  belay__post_wait(&barrier->post, wait_ms);
  return 0;
}

int belay_barrier_cancel(belay_barrier_t *barrier) {
  int error = check(barrier);
  return error != 0 ? error : belay__post_cancel(&barrier->post);
}

int belay_barrier_close(belay_barrier_t *barrier, belay_barrier_close_cb cb) {
  int error = check(barrier);
  if (error != 0)
    return error;
  barrier->close_cb = cb;
  belay__post_close(&barrier->post);
  return 0;
}

void belay_barrier_set_data(belay_barrier_t *barrier, void *data) {
  if (barrier != NULL)
    barrier->data = data;
}

void *belay_barrier_data(const belay_barrier_t *barrier) {
  return barrier == NULL ? NULL : barrier->data;
}

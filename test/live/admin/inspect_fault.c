/* Faults while held objects are read and broken: late, lost and wrong replies, and incomplete
 * lists. */
#include <stdatomic.h>
#include <stdio.h>

#include "scripts.gen.h"
#include "support/deployments/fake.h"
#include "support/fixtures/admin/views.h"

enum { ANSWERS_MAX = 4 };

static view_t view;

#define TOKEN "$43\r\n0123456789012345678901234567890123456789:me\r\n:60000\r\n:1\r\n:0\r\n"
#define HEAD "$0\r\n\r\n:0\r\n:-1\r\n:0\r\n:0\r\n$0\r\n\r\n"

static const char held_once[] = "*11\r\n" HEAD ":1\r\n" TOKEN;
static const char held_twice[] = "*15\r\n" HEAD ":2\r\n" TOKEN TOKEN;

/* NULL: it says nothing. */
typedef struct plot {
  const char *answer[ANSWERS_MAX]; /* of those who ask who holds it, in turn */
  const char *release;
  int64_t late_ms; /* delay of the second reply, in ms */
  atomic_uint asked;
} plot_t;

static void play(fake_link_t *link, const char *const *words, size_t count, void *arg) {
  const belay__script_t *read = &belay__script_held_lock, *release = &belay__script_lock_release;
  plot_t *plot = arg;
  const char *said = NULL;
  if (strncmp(words[0], "EVAL", 4) != 0) {
    fake_behave(link, words, count);
    return;
  }
  if (strcmp(words[1], read->sha1) == 0 || strcmp(words[1], read->text) == 0) {
    unsigned asked = atomic_fetch_add(&plot->asked, 1);
    if (asked == 1 && plot->late_ms > 0)
      stall_ms(plot->late_ms);
    said = asked < ANSWERS_MAX ? plot->answer[asked] : NULL;
    if (said != NULL && said[0] == '\0')
      fake_hang_up(link);
  } else if (strcmp(words[1], release->sha1) == 0 || strcmp(words[1], release->text) == 0) {
    said = plot->release;
  }
  if (said != NULL)
    fake_say(link, said);
}

static env_t *open_plot(plot_t *plot, fake_t **fake) {
  *fake = fake_start(&(fake_options_t){.on_command = play, .arg = plot});
  env_t *env = env_open_at(fake_url(*fake), NULL);
  assert_error(view_held(env, BELAY_HELD_LOCK, "n", &view), 0);
  assert_int_equal(view.held.holders_len, 1);
  return env;
}

/* The question is lost, and asked again; of the release all is known. */
TEST(refused_release_is_reported) {
  fake_t *fake;
  plot_t plot = {.answer = {held_once, "", held_once}, .release = "-NOPERM not you\r\n"};
  env_t *env = open_plot(&plot, &fake);
  belay_broken_t broken;
  assert_error(break_held(env, &view.held, &broken), BELAY_EPERM);
  assert_int_equal(atomic_load(&plot.asked), 3);
  env_close(env);
  fake_stop(fake);
}

TEST(holder_listed_twice) {
  fake_t *fake;
  plot_t plot = {.answer = {held_once, held_twice}, .release = ":1\r\n"};
  env_t *env = open_plot(&plot, &fake);
  belay_broken_t broken;
  assert_error(break_held(env, &view.held, &broken), BELAY_EPROTO);
  env_close(env);
  fake_stop(fake);
}

/* Renewing holders move a silent holder to the end of the list, where it is not listed. It still
 * counts as present. */
ENV_TEST_OF(unlisted_holder_is_unseen, o.max_reply = o.max_bytes = 65536) {
  static const char key[] = "belay::semaphore::{n}";
  char token[16];
  belay_broken_t broken;
  server_do(env->server, "ZADD", key, "8e15", "dead", "7e15", "gone", NULL);
  for (int i = 0; i < 30; i++) {
    (void)snprintf(token, sizeof token, "%d", i);
    server_do(env->server, "ZADD", key, "7e15", token, NULL);
  }
  assert_error(view_held(env, BELAY_HELD_SEMAPHORE, "n", &view), 0);
  assert_true(view.held.holders_len == 32 && view.held.holders_count == 32);
  view.held.holders_len = 1;
  server_do(env->server, "ZADD", key, "6e15", "dead", NULL);
  for (int i = 30; i < 100; i++) {
    (void)snprintf(token, sizeof token, "%d", i);
    server_do(env->server, "ZADD", key, "7e15", token, NULL);
  }
  assert_error(break_held(env, &view.held, &broken), 0);
  assert_true(broken.removed == 0 && broken.missed == 0 && broken.unseen == 1);
  assert_int_equal(broken.others, 102);
  server_do(env->server, "ZADD", key, "8e15", "dead", NULL);
  assert_error(break_held(env, &view.held, &broken), 0);
  assert_true(broken.removed == 1 && broken.missed == 0 && broken.unseen == 0);
  server_do(env->server, "DEL", key, NULL);
  assert_error(break_held(env, &view.held, &broken), 0);
  assert_true(broken.removed == 0 && broken.missed == 1 && broken.unseen == 0);
}

typedef struct order {
  unsigned calls;
  unsigned at[2]; /* of the break, and of the read */
} order_t;

static void note_broken(belay_request_t *request, int status, const belay_broken_t *broken) {
  order_t *order = request->data;
  (void)broken;
  assert_error(status, BELAY_EUNKNOWN);
  order->at[0] = ++order->calls;
}

static void note_held(belay_request_t *request, int status, const belay_held_t *held) {
  order_t *order = request->data;
  (void)held;
  assert_error(status, BELAY_EUNKNOWN);
  order->at[1] = ++order->calls;
}

/* The first reply comes after most of the time, and the second one never. Another request with
 * half as much time more ends later. */
TEST(both_requests_share_the_timeout) {
  fake_t *fake;
  const int64_t timeout_ms = 1000 * slow();
  order_t order = {0};
  plot_t plot = {.answer = {held_once, held_once}, .late_ms = timeout_ms * 3 / 4};
  env_t *env = open_plot(&plot, &fake);
  belay_request_t one = {.data = &order, .timeout_ms = timeout_ms};
  belay_request_t other = {.data = &order, .timeout_ms = timeout_ms * 3 / 2};
  assert_error(belay_held_break(env->client, &one, &view.held, note_broken), 0);
  assert_error(belay_held_read(env->client, &other, BELAY_HELD_LOCK, belay_string("n"), note_held),
               0);
  env_until(env, order.calls == 2);
  assert_true(order.at[0] < order.at[1]);
  env_close(env);
  fake_stop(fake);
}

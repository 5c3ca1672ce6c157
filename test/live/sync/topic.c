/* Topics: subscribers receive messages in order and complete, or a report of a gap. */
#include <stdio.h>

#include "support/fixtures/subscriber.h"

ENV_TEST(message_reaches_other_client) {
  belay_client_t *other = env_connect(env, server_url(env->server), NULL);
  subscriber_t s = {0};
  publication_t p = {0};
  assert_error(subscribe_to(env, other, &s, "news", 4), 0);
  env_until(env, s.listening == 1);
  assert_error(publish(env, &p, "news", "hello"), 0);
  assert_int_equal(p.receivers, 1);
  env_until(env, s.messages == 1);
  assert_int_equal(s.len, 5);
  assert_memory_equal(s.text, "hello", 5);
  assert_string_equal(s.story, "LM");
  const resp_t *channels = server_ask(env->server, "PUBSUB",
                                      deployment_is_cluster() ? "SHARDCHANNELS" : "CHANNELS", NULL);
  assert_int_equal(channels->count, 1);
  assert_string_equal(channels->items[0]->str, "belay::topic::{news}");
}

ENV_TEST(publish_without_subscribers) {
  publication_t p = {0};
  assert_error(publish(env, &p, "news", "hello"), 0);
  assert_int_equal(p.receivers, 0);
}

ENV_TEST_OF(message_order, o.connections = 4) {
  enum { COUNT = 2000 };
  subscriber_t s = {0};
  subscribe(env, &s, "news");
  publish_numbers(env, env->client, "news", COUNT);
  env_until(env, s.messages == COUNT);
  assert_true(s.sum == sum_of_numbers(COUNT));
}

ENV_TEST(messages_of_any_bytes) {
  static const char bytes[] = "\0\r\n$1\r\n\xff\xfe\0{}::";
  const size_t len = sizeof bytes - 1;
  subscriber_t s = {0};
  publication_t p = {0};
  static const char name[] = {'a', '\0', ':', ':', '{', (char)0xff};
  assert_error(subscribe_to(env, env->client, &s, name, sizeof name), 0);
  env_until(env, s.listening == 1);
  p.env = env;
  (void)server_publish(env->server, "belay::topic::{a%00%3A:%7B\xff}", "named");
  env_until(env, s.messages == 1);
  assert_error(unsubscribe(&s), 0);
  env_until(env, s.closed == 1);

  subscribe(env, &s, "bytes");
  assert_error(begin_publish(env, env->client, &p, "bytes", bytes, len), 0);
  env_until(env, s.messages == 1);
  assert_int_equal(s.len, len);
  assert_memory_equal(s.text, bytes, len);
  env_until(env, p.ended == 1);
  assert_error(begin_publish(env, env->client, &p, "bytes", NULL, 0), 0);
  env_until(env, s.messages == 2 && p.ended == 2);
  assert_int_equal(s.len, 0);
  char *large = malloc(BELAY_TOPIC_MESSAGE_MAX);
  memset(large, 'x', BELAY_TOPIC_MESSAGE_MAX);
  assert_error(begin_publish(env, env->client, &p, "bytes", large, BELAY_TOPIC_MESSAGE_MAX), 0);
  free(large); /* it was copied */
  env_until(env, s.messages == 3 && p.ended == 3);
  assert_int_equal(s.len, BELAY_TOPIC_MESSAGE_MAX);
}

ENV_TEST(subscriptions_share_connection) {
  enum { TOPICS = 100, EACH = 3 };
  static subscriber_t all[TOPICS][EACH];
  char name[32];
  memset(all, 0, sizeof all);
  for (int i = 0; i < TOPICS; i++) {
    snprintf(name, sizeof name, "t%d", i);
    for (int j = 0; j < EACH; j++)
      assert_error(subscribe_to(env, env->client, &all[i][j], name, strlen(name)), 0);
  }
  env_until(env, all[TOPICS - 1][EACH - 1].listening == 1);
  assert_int_equal(client_stats(env).connections_up, deployment() == DEPLOYMENT_CLUSTER3 ? 3 : 1);
  assert_int_equal(server_calls(env->server, deployment_subscribe()), TOPICS);
  for (int i = 0; i < TOPICS; i++) {
    snprintf(name, sizeof name, "belay::topic::{t%d}", i);
    assert_int_equal(server_publish(env->server, name, "hello"), 1);
  }
  env_until(env, all[TOPICS - 1][EACH - 1].messages == 1);
  for (int i = 0; i < TOPICS; i++)
    for (int j = 0; j < EACH; j++)
      assert_string_equal(all[i][j].story, "LM");
  assert_error(unsubscribe(&all[0][0]), 0);
  assert_int_equal(server_publish(env->server, "belay::topic::{t0}", "again"), 1);
  env_until(env, all[0][1].messages == 2);
  assert_int_equal(all[0][0].messages, 1);
}

ENV_TEST(late_subscriber_gets_listening) {
  subscriber_t one = {0}, two = {0};
  subscribe(env, &one, "news");
  subscribe(env, &two, "news");
  publication_t p = {0};
  assert_error(publish(env, &p, "news", "hello"), 0);
  env_until(env, one.messages == 1 && two.messages == 1);
  assert_string_equal(two.story, "LM");
}

static void kill_listeners(env_t *env) {
  int64_t killed = server_integer(env->server, "CLIENT", "KILL", "TYPE", "pubsub", NULL);
  if (deployment() != DEPLOYMENT_CLUSTER3) /* there it is what the last of them says */
    assert_int_equal(killed, 1);
}

ENV_TEST(lost_connection_reports_gap) {
  subscriber_t s = {0};
  publication_t p = {0};
  subscribe(env, &s, "news");
  for (unsigned i = 1; i <= 5; i++) {
    kill_listeners(env);
    env_until(env, s.gaps == i && s.listening == i + 1);
    assert_error(s.status, BELAY_EUNREACHABLE);
    assert_error(publish(env, &p, "news", "hello"), 0);
    env_until(env, s.messages == i);
  }
  assert_string_equal(s.story, "LGLMGLMGLMGLMGLM");
}

ENV_TEST(server_restart_reports_gap) {
  subscriber_t s = {0};
  publication_t p = {0};
  subscribe(env, &s, "news");
  server_kill(env->server);
  env_until(env, s.gaps == 1);
  env_run_for(env, 200);
  assert_string_equal(s.story, "LG"); /* once, however often it was not there */
  server_restart(env->server);
  env_until(env, s.listening == 2);
  assert_error(publish(env, &p, "news", "hello"), 0);
  env_until(env, s.messages == 1);
  assert_string_equal(s.story, "LGLM");
}

typedef struct row {
  bool begins; /* no message came since the subscription was confirmed */
  long last;
  unsigned leaps; /* lost messages that no gap reported */
} row_t;

static void expect_next(subscriber_t *s, belay_topic_event_t event) {
  row_t *row = s->arg;
  if (event != BELAY_TOPIC_MESSAGE) {
    row->begins = true;
    return;
  }
  char text[16] = "";
  memcpy(text, s->text, s->len < sizeof text ? s->len : sizeof text - 1);
  long number = strtol(text, NULL, 10);
  row->leaps += row->begins ? number <= row->last : number != row->last + 1;
  row->begins = false;
  row->last = number;
}

ENV_TEST_OF(full_queue_reports_gap, o.max_reply = 65536) {
  static const char script[] = "for i = 1, 40000 do redis.call(ARGV[1], KEYS[1], i) end";
  subscriber_t s[3];
  row_t rows[3];
  size_t before = 0;
  for (int i = 0; i < 3; i++) {
    rows[i] = (row_t){.last = 0};
    s[i] = (subscriber_t){.then = expect_next, .arg = &rows[i]};
    subscribe(env, &s[i], "news");
  }
  before = env->bytes;
  server_do(env->server, "EVAL", script, "1", "belay::topic::{news}", deployment_publish(), NULL);
  env_wait_begin(env, "the last message");
  while (rows[0].last < 40000 && rows[1].last < 40000 && rows[2].last < 40000) {
    assert_true(env->bytes < before + 3 * 65536 + 65536);
    env_turn(env);
    if (s[0].listening > s[0].gaps && client_stats(env).bytes_in > 40000 * 51 &&
        env->bytes <= before + 4096)
      break; /* the last were lost */
  }
  env_wait_end(env);
  env_run_for(env, 50); /* the queued messages were delivered */
  publication_t p = {0};
  unsigned messages = s[0].messages;
  assert_error(publish(env, &p, "news", "40001"), 0);
  env_until(env, rows[0].last == 40001 && rows[1].last == 40001 && rows[2].last == 40001);
  for (int i = 0; i < 3; i++) {
    assert_int_equal(rows[i].leaps, 0);
    assert_true(s[i].gaps > 0 && s[i].listening == s[i].gaps + 1);
    assert_error(s[i].status, BELAY_EBUSY);
  }
  assert_true(s[0].messages > messages && s[0].messages < 40001);
}

/* The connection is lost and restored before the loss was reported: one gap. */
static void lose_and_find(subscriber_t *s, belay_topic_event_t event) {
  unsigned *connections = s->arg;
  if (event != BELAY_TOPIC_MESSAGE || ++*connections > 1)
    return;
  kill_listeners(s->env);
}

ENV_TEST(gap_after_queued_messages) {
  unsigned connections = 0;
  subscriber_t s = {.then = lose_and_find, .arg = &connections};
  subscribe(env, &s, "news");
  server_do(env->server, "EVAL", "for i = 1, 5 do redis.call(ARGV[1], KEYS[1], i) end", "1",
            "belay::topic::{news}", deployment_publish(), NULL);
  env_until(env, s.listening == 2);
  assert_string_equal(s.story, "LMMMMMGL");
}

typedef enum what { SUBSCRIPTION, CLIENT, BELAY, WHATS } what_t;

typedef struct plan {
  belay_topic_event_t event;
  what_t what;
  bool done;
} plan_t;

static void end_it(subscriber_t *s, belay_topic_event_t event) {
  plan_t *plan = s->arg;
  if (event != plan->event || plan->done)
    return;
  plan->done = true;
  if (plan->what == SUBSCRIPTION)
    assert_error(unsubscribe(s), 0);
  else if (plan->what == CLIENT)
    assert_error(begin_client_close(s->env), 0);
  else
    assert_error(begin_belay_close(s->env), 0);
  if (plan->what == SUBSCRIPTION)
    assert_error(belay_subscription_close(s->handle, NULL), BELAY_ECLOSING);
  else
    s->closing++; /* no further event is expected */
}

static void play(belay_topic_event_t event, what_t what) {
  env_t *env = env_open(NULL);
  plan_t plan = {.event = event, .what = what};
  subscriber_t s = {.then = end_it, .arg = &plan}, witness = {0};
  assert_error(subscribe_to(env, env->client, &s, "news", 4), 0);
  assert_error(subscribe_to(env, env->client, &witness, "news", 4), 0);
  env_until(env, plan.done || s.listening == 1);
  if (event != BELAY_TOPIC_LISTENING)
    for (int i = 0; i < 3; i++)
      (void)server_publish(env->server, "belay::topic::{news}", "hello");
  if (event == BELAY_TOPIC_GAP) {
    env_until(env, s.messages == 3);
    kill_listeners(env);
  }
  env_until(env, plan.done);
  if (what == SUBSCRIPTION) {
    env_until(env, s.closed == 1);
    (void)server_publish(env->server, "belay::topic::{news}", "hello");
    env_until(env, witness.listening == witness.gaps + 1);
  } else if (what == CLIENT) {
    env_until(env, env->client_closed == 1);
  }
  env_close(env);
}

TEST(close_in_each_callback) {
  for (belay_topic_event_t event = BELAY_TOPIC_LISTENING; event <= BELAY_TOPIC_GAP; event++)
    for (what_t what = 0; what < WHATS; what++)
      play(event, what);
}

ENV_TEST(cancel_publication) {
  publication_t p = {0};
  assert_error(belay_request_cancel(NULL), BELAY_EINVAL);
  assert_error(belay_request_cancel(&p.request), BELAY_ESTATE);
  assert_error(begin_publish(env, env->client, &p, "news", "x", 1), 0);
  assert_error(begin_publish(env, env->client, &p, "news", "x", 1), BELAY_ESTATE);
  assert_error(belay_request_cancel(&p.request), 0);
  env_until(env, p.ended == 1);
  assert_error(p.status, BELAY_ECANCELED);
  assert_error(belay_request_cancel(&p.request), BELAY_ESTATE);
  assert_error(publish(env, &p, "news", "x"), 0);

  server_pause(env->server); /* now one that was sent */
  assert_error(begin_publish(env, env->client, &p, "news", "x", 1), 0);
  env_run_for(env, 20);
  assert_error(belay_request_cancel(&p.request), 0);
  assert_error(belay_request_cancel(&p.request), 0); /* it was not connections yet */
  env_until(env, p.ended == 3);
  assert_error(p.status, BELAY_ECANCELED);
  server_resume(env->server);
}

ENV_TEST(publication_statuses) {
  publication_t p = {0};
  assert_error(publish(env, &p, "news", "x"), 0);
  p.request.timeout_ms = 50;
  server_pause(env->server);
  assert_error(publish(env, &p, "news", "x"), BELAY_EUNKNOWN);
  server_resume(env->server);
  p.request.timeout_ms = 0;
  assert_error(publish(env, &p, "news", "x"), 0);
  server_kill(env->server);
  env_run_for(env, 50);
  p.request.timeout_ms = 100;
  assert_error(publish(env, &p, "news", "x"), BELAY_EUNREACHABLE);
  server_restart(env->server);
  p.request.timeout_ms = 5000 * slow();
  assert_error(publish(env, &p, "news", "x"), 0);
}

ENV_TEST(invalid_arguments) {
  publication_t p = {0};
  subscriber_t s = {0};
  belay_subscription_t *out;
  static char name[2048];
  memset(name, 'n', sizeof name - 1);
  assert_each(BELAY_EINVAL, publish(env, &p, "", "x"), publish(env, &p, name, "x"));
  assert_error(begin_publish(env, env->client, &p, "n", NULL, 1), BELAY_EINVAL);
  assert_error(begin_publish(env, env->client, &p, "n", "", BELAY_TOPIC_MESSAGE_MAX + 1),
               BELAY_EINVAL);
  assert_error(subscribe_to(env, env->client, &s, "", 0), BELAY_EINVAL);
  assert_error(subscribe_to(env, env->client, &s, name, sizeof name), BELAY_EINVAL);
  assert_error(belay_topic_subscribe(env->client, belay_string("n"), NULL, NULL, &out),
               BELAY_EINVAL);
  assert_null(out);
  assert_error(belay_topic_subscribe(NULL, belay_string("n"), NULL, NULL, &out), BELAY_EINVAL);
  assert_error(belay_subscription_close(NULL, NULL), BELAY_EINVAL);
  belay_request_init(NULL);
}

ENV_TEST(ref_keeps_loop_alive) {
  subscriber_t s = {0};
  subscribe(env, &s, "news");
  assert_false(uv_run(&env->loop, UV_RUN_NOWAIT));
  belay_subscription_ref(s.handle);
  belay_subscription_ref(s.handle);
  assert_true(uv_run(&env->loop, UV_RUN_NOWAIT));
  belay_subscription_unref(s.handle);
  assert_false(uv_run(&env->loop, UV_RUN_NOWAIT));
  belay_subscription_ref(s.handle);
  assert_error(unsubscribe(&s), 0);
  uv_run(&env->loop, UV_RUN_DEFAULT);
  assert_int_equal(s.closed, 1);
}

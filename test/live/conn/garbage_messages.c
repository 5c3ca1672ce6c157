/* A server that says to a listener what it should not: late, twice, out of order, or nonsense. */
#include <stdatomic.h>
#include <stdio.h>
#include <strings.h>

#include "support/deployments/fake.h"
#include "support/deployments/relay.h"
#include "support/fixtures/subscriber.h"

#define NEWS "belay::topic::{news}"
#define OTHER "belay::topic::{other}"
#define WORDS3(kind, kind_len, name, name_len, rest)                                               \
  ">3\r\n$" kind_len "\r\n" kind "\r\n$" name_len "\r\n" name "\r\n" rest
#define NEWS_ON WORDS3("subscribe", "9", NEWS, "20", ":1\r\n")
#define NEWS_OFF WORDS3("unsubscribe", "11", NEWS, "20", ":0\r\n")
#define OTHER_ON WORDS3("subscribe", "9", OTHER, "21", ":1\r\n")
#define MESSAGE WORDS3("message", "7", NEWS, "20", "$5\r\nhello\r\n")

static const char hello_3[] = "%3\r\n$7\r\nversion\r\n$6\r\n7.0.15\r\n$2\r\nid\r\n:7\r\n"
                              "$4\r\nmode\r\n$10\r\nstandalone\r\n";

/* The fake server's replies, by client; used in the fake's thread. */
typedef struct script {
  const char *to_hello, *to_subscribe; /* NULL: what is right */
  atomic_uint hellos;
} script_t;

static void behave(fake_link_t *link, const char *const *words, size_t count, void *arg) {
  script_t *script = arg;
  if (strcasecmp(words[0], "HELLO") == 0 && count > 1) {
    atomic_fetch_add(&script->hellos, 1);
    fake_say(link, script->to_hello != NULL ? script->to_hello : hello_3);
  } else if (strcasecmp(words[0], "SUBSCRIBE") == 0) {
    fake_say(link, script->to_subscribe != NULL ? script->to_subscribe : NEWS_ON);
  } else if (strcasecmp(words[0], "PING") == 0) {
    fake_say(link, "+PONG\r\n");
  } else {
    fake_behave(link, words, count);
  }
}

static fake_t *start(script_t *script) {
  return fake_start(&(fake_options_t){.on_command = behave, .arg = script});
}

static belay_client_options_t quick(void) {
  belay_client_options_t options = client_options();
  options.reconnect_min_ms = 10;
  options.reconnect_max_ms = 100;
  options.stall_timeout_ms = 60000;
  return options;
}

/* ---- servers that cannot ---- */

TEST(replies_to_hello_3) {
  static const struct {
    const char *to_hello;
    int status;
  } rows[] = {
      {"-ERR unknown command 'HELLO'\r\n", BELAY_EREFUSED}, /* before Redis 6 */
      {"-NOPROTO sorry\r\n", BELAY_EREFUSED},
      {"-NOPERM no\r\n", BELAY_EPERM},
      {"+OK\r\n", BELAY_EPROTO},
      {"*2\r\n$5\r\nproto\r\n:2\r\n", 0}, /* as long as it pushes */
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    script_t script = {.to_hello = rows[i].to_hello};
    fake_t *fake = start(&script);
    belay_client_options_t options = quick();
    env_t *env = env_open_at(fake_url(fake), &options);
    subscriber_t s = {0};
    assert_error(subscribe_to(env, env->client, &s, "news", 4), 0);
    env_until(env, s.gaps + s.listening == 1);
    assert_error(s.status, rows[i].status);
    env_run_for(env, 400);
    assert_int_equal(s.gaps + s.listening, 1); /* one event */
    assert_true(atomic_load(&script.hellos) < 20);
    begin_belay_close(env);
    env_close(env);
    fake_stop(fake);
  }
}

/* The failure is logged once. A server that replaces the old one is used at once. */
TEST(server_without_resp3) {
  needs_one_server("a server of before clusters");
  script_t script = {.to_hello = "-ERR unknown command 'HELLO'\r\n"};
  fake_t *fake = start(&script);
  server_t *server = server_start(NULL);
  relay_t *relay = relay_start(fake_url(fake));
  belay_client_options_t options = quick();
  env_t *env = env_open_at(relay_url(relay), &options);
  env->server = server;
  subscriber_t s = {0};
  assert_error(subscribe_to(env, env->client, &s, "news", 4), 0);
  env_until(env, s.gaps == 1);
  env_run_for(env, 3000);
  assert_in_range(atomic_load(&script.hellos), 3, 12); /* 60 with reconnect_max_ms alone */
  assert_int_equal(env->errors, 1);
  assert_string_equal(s.story, "G");
  relay_lead(relay, server_path(server));
  publication_t p = {0};
  assert_error(publish(env, &p, "news", "who is there?"), 0);
  env_until(env, s.listening == 1);
  env_close(env);
  relay_stop(relay);
  fake_stop(fake);
}

/* ---- servers that babble ---- */

/* Each of these drops the connection, which is made again; nothing else comes of it. */
TEST(unexpected_messages) {
  static const char *const rows[] = {
      OTHER_ON,               /* another channel */
      NEWS_ON NEWS_ON,        /* twice */
      NEWS_ON "+PONG\r\n",    /* a PONG too many */
      NEWS_ON "-ERR no\r\n",  /* an error as well */
      NEWS_OFF,               /* an unsubscribe that no client asked for */
      "+PONG\r\n",            /* no answer at all */
      NEWS_ON "+OK\r\n",      /* an answer to nothing */
      NEWS_ON ":1\r\n",       /* */
      NEWS_ON "$-1\r\n",      /* */
      NEWS_ON "_\r\n",        /* */
      NEWS_ON ">0\r\n",       /* a push of nothing */
      NEWS_ON ">1\r\n:1\r\n", /* without a name */
      NEWS_ON ">1\r\n$7\r\nmessage\r\n",
      NEWS_ON ">2\r\n$7\r\nmessage\r\n$20\r\n" NEWS "\r\n",
      NEWS_ON ">3\r\n$7\r\nmessage\r\n:1\r\n$1\r\nx\r\n",
      NEWS_ON ">3\r\n$7\r\nmessage\r\n$20\r\n" NEWS "\r\n*1\r\n:1\r\n",
      NEWS_ON ">4\r\n$7\r\nmessage\r\n$20\r\n" NEWS "\r\n$1\r\nx\r\n$1\r\nx\r\n",
      NEWS_ON ">3\r\n>3\r\n>3\r\n>3\r\n>3\r\n>3\r\n>3\r\n>3\r\n>3\r\n>3\r\n>3\r\n:1\r\n",
      NEWS_ON ">3\r\n$7\r\nmessage\r\n$20\r\n" NEWS "\r\n$99999999\r\n",
      NEWS_ON ">999999999\r\n",
      NEWS_ON "?\r\n",
      "-LOADING wait\r\n",
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    script_t script = {.to_subscribe = rows[i]};
    fake_t *fake = start(&script);
    belay_client_options_t options = quick();
    options.stall_timeout_ms = 200; /* for a reply that begins and does not end */
    options.idle_timeout_ms = 300;
    options.connect_timeout_ms = 400;
    env_t *env = env_open_at(fake_url(fake), &options);
    subscriber_t s = {0};
    assert_error(subscribe_to(env, env->client, &s, "news", 4), 0);
    env_until(env, fake_connections(fake) >= 3);
    if (s.messages > 0)
      fail_msg("row %zu was taken for a message", i);
    assert_true(s.listening <= s.gaps + 1);
    env_close(env);
    fake_stop(fake);
  }
}

/* Pushes of other server features are ignored. */
TEST(unknown_pushes_are_ignored) {
  script_t script = {.to_subscribe =
                         NEWS_ON ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n" MESSAGE
                                 ">3\r\n$7\r\nunknown\r\n%1\r\n+a\r\n,1.5\r\n~2\r\n#t\r\n(12345\r\n"
                                 ">4\r\n$8\r\npmessage\r\n$1\r\np\r\n$1\r\nc\r\n$1\r\nm\r\n"
                                 ">3\r\n$7\r\nmessage\r\n$7\r\nunknown\r\n$1\r\nx\r\n" MESSAGE};
  fake_t *fake = start(&script);
  env_t *env = env_open_at(fake_url(fake), NULL);
  subscriber_t s = {0};
  assert_error(subscribe_to(env, env->client, &s, "news", 4), 0);
  env_until(env, s.messages == 2);
  assert_string_equal(s.story, "LMM");
  assert_int_equal(client_stats(env).drops, 0);
  env_close(env);
  fake_stop(fake);
}

/* ---- confirmations that come late ---- */

typedef struct late {
  atomic_uint on, off; /* subscriptions and good-byes so far */
  const char *say[4];  /* to each of them, in order */
} late_t;

static void answer_late(fake_link_t *link, const char *const *words, size_t count, void *arg) {
  late_t *late = arg;
  bool on = strcasecmp(words[0], "SUBSCRIBE") == 0, off = strcasecmp(words[0], "UNSUBSCRIBE") == 0;
  if (strcasecmp(words[0], "HELLO") == 0 && count > 1) {
    fake_say(link, hello_3);
  } else if (strcasecmp(words[0], "PING") == 0) {
    if (atomic_load(&late->on) == 0)
      fake_say(link, "+PONG\r\n");
  } else if (on || off) {
    unsigned n = atomic_load(&late->on) + atomic_load(&late->off);
    fake_say(link, late->say[n]);
    atomic_fetch_add(on ? &late->on : &late->off, 1);
  } else {
    fake_behave(link, words, count);
  }
}

/* SUBSCRIBE, UNSUBSCRIBE and SUBSCRIBE are sent before the first reply comes. The first reply does
 * not belong to the last command. */
TEST(late_reply_to_a_removed_subscription) {
  /* `other` keeps the connection; its message comes with the first replies */
  late_t late = {.say = {OTHER_ON "+PONG\r\n", "", "", NEWS_ON MESSAGE}};
  fake_t *fake = fake_start(&(fake_options_t){.on_command = answer_late, .arg = &late});
  belay_client_options_t options = quick();
  env_t *env = env_open_at(fake_url(fake), &options);
  subscriber_t other = {0}, s = {0};
  subscribe(env, &other, "other");
  assert_error(subscribe_to(env, env->client, &s, "news", 4), 0);
  env_until(env, atomic_load(&late.on) == 2);
  assert_error(unsubscribe(&s), 0);
  env_until(env, atomic_load(&late.off) == 1); /* it has lingered for long enough */
  assert_error(subscribe_to(env, env->client, &s, "news", 4), 0);
  env_until(env, atomic_load(&late.on) == 3); /* now the first answer comes, and a message */
  env_run_for(env, 100);
  assert_string_equal(s.story, "");
  assert_string_equal(other.story, "L");
  assert_int_equal(client_stats(env).drops, 0);
  env_close(env);
  fake_stop(fake);
}

TEST(late_replies_to_three_commands) {
  late_t late = {.say = {OTHER_ON "+PONG\r\n", "", "",
                         NEWS_ON "+PONG\r\n" NEWS_OFF "+PONG\r\n" MESSAGE NEWS_ON MESSAGE
                                 "+PONG\r\n"}};
  fake_t *fake = fake_start(&(fake_options_t){.on_command = answer_late, .arg = &late});
  belay_client_options_t options = quick();
  env_t *env = env_open_at(fake_url(fake), &options);
  subscriber_t other = {0}, s = {0};
  subscribe(env, &other, "other");
  assert_error(subscribe_to(env, env->client, &s, "news", 4), 0);
  env_until(env, atomic_load(&late.on) == 2);
  assert_error(unsubscribe(&s), 0);
  env_until(env, atomic_load(&late.off) == 1);
  assert_error(subscribe_to(env, env->client, &s, "news", 4), 0);
  env_until(env, s.messages == 1);
  assert_string_equal(s.story, "LM"); /* messages before it belong to the first subscription */
  env_run_for(env, 50);
  assert_int_equal(client_stats(env).drops, 0);
  env_close(env);
  fake_stop(fake);
}

/* Readers and writers under constant load: a writer is always alone, and no waiter starves. */
#include <stdio.h>

#include "support/fixtures/lease/rw.h"

enum { READERS = 6, WRITERS = 3, PARTIES = READERS + WRITERS, SECONDS = 4 };

typedef struct party {
  contender_t *contender;
  uv_timer_t timer; /* while it holds it */
  bool writes, holds;
  unsigned turns;
  unsigned writes_then; /* how often it was written when the party began to wait */
} party_t;

typedef struct play {
  env_t *env;
  party_t party[PARTIES];
  unsigned reading, writing; /* now */
  unsigned most_reading;
  unsigned writes;  /* grants to writers so far */
  unsigned longest; /* grants to writers while one reader waited */
  bool over;
} play_t;

static play_t play;

static void ask(party_t *party) {
  if (play.over)
    return;
  party->writes_then = play.writes;
  assert_error(begin_acquire(party->contender, BELAY_FOREVER), 0);
}

static void leave(uv_timer_t *timer) {
  party_t *party = timer->data;
  party->holds = false;
  *(party->writes ? &play.writing : &play.reading) -= 1;
  assert_int_equal(party->contender->lost, 0);
  assert_error(begin_release(party->contender), 0);
}

static void come(party_t *party) {
  party->holds = true;
  party->turns++;
  if (party->writes) {
    assert_int_equal(play.reading + play.writing, 0);
    play.writing++;
    play.writes++;
  } else {
    assert_int_equal(play.writing, 0);
    play.reading++;
    unsigned waited = play.writes - party->writes_then;
    play.longest = waited > play.longest ? waited : play.longest;
    play.most_reading = play.reading > play.most_reading ? play.reading : play.most_reading;
  }
  uv_timer_start(&party->timer, leave, 2, 0);
}

static void on_event(contender_t *c, event_t event) {
  party_t *party = c->arg;
  if (event != EVENT_ENDED)
    return;
  assert_error(c->status, 0);
  if (c->begun % 2 == 1)
    come(party);
  else
    ask(party);
}

static unsigned fewest(bool writes) {
  unsigned n = UINT32_MAX;
  for (int i = 0; i < PARTIES; i++)
    if (play.party[i].writes == writes && play.party[i].turns < n)
      n = play.party[i].turns;
  return n;
}

static bool all_over(void) {
  for (int i = 0; i < PARTIES; i++)
    if (play.party[i].contender->ended < play.party[i].contender->begun || play.party[i].holds)
      return false;
  return true;
}

static void run(belay_wakeup_t wakeup) {
  env_t *env = env_open(NULL);
  belay_lock_options_t options = lock_options();
  options.wakeup = wakeup;
  options.retry_min_ms = 1;
  options.retry_max_ms = options.backoff_max_ms = 4;
  play = (play_t){.env = env};
  for (int i = 0; i < PARTIES; i++) {
    party_t *party = &play.party[i];
    belay_client_t *client = env_connect(env, server_url(env->server), NULL);
    party->writes = i >= READERS;
    party->contender = (party->writes ? writer_of : reader_of)(env, client, "page", &options);
    party->contender->then = on_event;
    party->contender->arg = party;
    uv_timer_init(&env->loop, &party->timer);
    party->timer.data = party;
  }
  for (int i = 0; i < PARTIES; i++)
    ask(&play.party[i]);
  env_run_for(env, SECONDS * 1000);
  play.over = true;
  env_until(env, all_over());
  print_message("readers: at least %u turns each, %u at once, %u writers meanwhile; writers: %u\n",
                fewest(false), play.most_reading, play.longest, fewest(true));
  assert_true(fewest(false) >= 10);
  assert_true(fewest(true) >= 10);
  assert_true(play.most_reading >= 3);
  for (int i = 0; i < PARTIES; i++)
    uv_close((uv_handle_t *)&play.party[i].timer, NULL);
  env_settle(env);
  env_until(env, server_keys(env->server) == 0);
  env_close(env);
}

/* One writer may come before a reader's place is on the server, and one after it. Reports lag a
 * little behind the server's state. */
TEST(no_starvation_with_notifications) {
  run(BELAY_WAKE_NOTIFY);
  assert_true(play.longest <= 4);
}

TEST(no_starvation_with_polling) {
  run(BELAY_WAKE_POLL);
  assert_true(play.longest <= 4);
}

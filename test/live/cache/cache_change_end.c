/* Caches: changes that are canceled, or closed, or run out of memory, in each of their steps. */
#include <stdlib.h>

#include "support/base/alloc.h"
#include "support/fixtures/cache/relayed.h"
#include "support/models/scripts.h"

/* ---- requests -------------------------------------------------------------------------------- */

typedef enum ending { CANCEL, CLOSE_CACHE, CLOSE_CLIENT, CLOSE_BELAY, ENDINGS } ending_t;

static void end_it(relayed_t *relayed, change_t *change, ending_t how) {
  if (how == CANCEL) {
    relayed->bed->inside++;
    assert_error(belay_request_cancel(&change->request), 0);
    relayed->bed->inside--;
  } else {
    assert_error(how == CLOSE_CACHE    ? begin_close_cache(relayed->cache)
                 : how == CLOSE_CLIENT ? begin_client_close(relayed->bed)
                                       : begin_belay_close(relayed->bed),
                 0);
  }
}

/* The server has executed the command already. */
static void end_in_step(relayed_t *relayed, int which, const char *command, ending_t how) {
  change_t change = {0};
  bool done = command == NULL;
  relay_delay(relayed->relay, 3);
  relayed->awaited = done ? deployment_publish() : command;
  relayed->sent = 0;
  assert_error(begin_nth_change(relayed->cache, &change, which, "page"), 0);
  bed_until(relayed->bed, relayed->sent > 0);
  assert_int_equal(change.ended, 0);
  end_it(relayed, &change, how);
  assert_int_equal(change.ended, 0); /* not inside */
  bed_until(relayed->bed, change.ended == 1);
  assert_error(change.status, done ? 0 : BELAY_ECANCELED);
  assert_int_equal(change.applied, done);
  if (how == CLOSE_CACHE)
    bed_until(relayed->bed, relayed->cache->closed == 1);
  relayed->awaited = "";
}

RELAYED_TEST(end_in_each_step, true) {
  static const struct {
    int which;
    const char *command; /* NULL: that publishes */
  } steps[] = {{0, "cache_begin"}, {0, "cache_tag"},   {0, "cache_fill"}, {0, NULL},
               {1, "cache_tag"},   {1, "cache_touch"}, {2, "DEL"},        {2, NULL},
               {3, "DEL"},         {3, NULL}};
  for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
    end_in_step(relayed, steps[i].which, steps[i].command, CANCEL);
    end_in_step(relayed, steps[i].which, steps[i].command, CLOSE_CACHE);
    relayed_open_cache(relayed);
    relayed_t *closing = relayed_open(true);
    end_in_step(closing, steps[i].which, steps[i].command, i % 2 == 0 ? CLOSE_CLIENT : CLOSE_BELAY);
    relayed_close(closing);
  }
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* Changes one after the other. */
typedef struct play {
  belay_t *belay;
  belay_cache_t *cache;
  belay_request_t request;
  int next, done;
} play_t;

static size_t one_tag(const char *key, size_t key_len, belay_bytes_t tags[BELAY_CACHE_TAGS_MAX],
                      void *arg) {
  (void)key, (void)key_len, (void)arg;
  tags[0] = (belay_bytes_t){"site", 4};
  return 1;
}

static void on_played(belay_request_t *request, int status, bool applied);

static void play_on(play_t *play) {
  while (play->next < CHANGES) {
    belay_request_t *r = &play->request;
    int which = play->next++, error;
    if (which == 0)
      error = belay_cache_put(play->cache, r, belay_string("page"), belay_string("v"),
                              BELAY_DEFAULT, on_played);
    else if (which == 1)
      error = belay_cache_touch(play->cache, r, belay_string("page"), BELAY_DEFAULT, on_played);
    else if (which == 2)
      error = belay_cache_invalidate(play->cache, r, belay_string("page"), on_played);
    else
      error = belay_cache_invalidate_tag(play->cache, r, belay_string("site"), on_played);
    if (error == 0)
      return;
    assert_error(error, BELAY_ENOMEM);
  }
  assert_error(belay_close(play->belay, NULL), 0);
}

static void on_played(belay_request_t *request, int status, bool applied) {
  play_t *play = request->data;
  assert_true(applied ? status == 0 : status != 0 || play->next == 2);
  play->done += status == 0;
  play_on(play);
}

static void run(const belay_options_t *options, void *server) {
  uv_loop_t loop;
  belay_client_options_t o = client_options();
  belay_cache_options_t c = plain_options();
  belay_client_t *client;
  play_t play = {.request.data = &play};
  o.timeout_ms = (alloc_is_patient() ? 10000 : 100) * slow();
  server_do(server, "FLUSHALL", NULL);
  o.reconnect_max_ms = 20;
  c.tags = one_tag;
  c.compress_bytes = 1;
  assert_int_equal(uv_loop_init(&loop), 0);
  if (belay_open(&loop, options, &play.belay) == 0) {
    if (belay_connect(play.belay, server_url(server), &o, &client) == 0 &&
        belay_cache_new(client, &c, &play.cache) == 0)
      play_on(&play);
    else
      assert_error(belay_close(play.belay, NULL), 0);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(play.next, play.cache != NULL ? CHANGES : 0);
  }
  assert_int_equal(uv_loop_close(&loop), 0);
  expect_ttls(server);
  if (alloc_is_patient() && !alloc_has_failed())
    assert_int_equal(play.done, CHANGES);
}

TEST_ON(allocations_fail, server, server_start(NULL)) {
  assert_true(alloc_fail_each(ALLOC_BELAY, run, server) > 20);
}

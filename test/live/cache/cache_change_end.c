/* Caches: changes that are canceled, or closed, in each of their steps. */
#include "support/fixtures/cache/relayed.h"
#include "support/models/scripts.h"

/* ---- requests ---- */

typedef enum ending { CANCEL, CLOSE_CACHE, CLOSE_CLIENT, CLOSE_BELAY, ENDINGS } ending_t;

static void end_it(relayed_t *relayed, change_t *change, ending_t how) {
  if (how == CANCEL) {
    relayed->env->inside++;
    assert_error(belay_request_cancel(&change->request), 0);
    relayed->env->inside--;
  } else {
    assert_error(how == CLOSE_CACHE    ? begin_close_cache(relayed->cache)
                 : how == CLOSE_CLIENT ? begin_client_close(relayed->env)
                                       : begin_belay_close(relayed->env),
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
  env_until(relayed->env, relayed->sent > 0);
  assert_int_equal(change.ended, 0);
  end_it(relayed, &change, how);
  assert_int_equal(change.ended, 0); /* not inside */
  env_until(relayed->env, change.ended == 1);
  assert_error(change.status, done ? 0 : BELAY_ECANCELED);
  assert_int_equal(change.applied, done);
  if (how == CLOSE_CACHE)
    env_until(relayed->env, relayed->cache->closed == 1);
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

/* The lock on several names, on one server and on two: it holds all names or none. */
#include <stdio.h>

#include "support/fixtures/lease/two_servers.h"
#include "support/deployments/relay.h"

TEST_IN(all_or_none_with_plain_locks, two_servers, two_servers_open()) {
  contender_t *a = two_servers_lock(two_servers, 0, "a"),
              *b = two_servers_lock(two_servers, 0, "b"),
              *c = two_servers_lock(two_servers, 0, "c");
  holder_t *abc = holder_new(two_servers, "0:c 0:a 0:b 0:a", NULL);
  assert_error(try_lock(b), 0);
  assert_error(holder_acquire(abc, 0), BELAY_EHELD);
  assert_ok(try_lock(a), release(a), release(b), holder_acquire(abc, 0));
  assert_between(belay_multilock_remaining_us(abc->lock), 1, 10000000);
  env_settle(two_servers->env);
  assert_int_equal(server_keys(two_servers->server[0]), 3);
  assert_each(BELAY_EHELD, try_lock(a), try_lock(b), try_lock(c));
  assert_error(holder_release(abc), 0);
  assert_false(holder_holds(abc));
  assert_error(holder_release(abc), BELAY_ENOTOWNER);
  two_servers_expect_no_key(two_servers);
}

/* A release of one name wakes a waiter for several names, and the reverse. */
TEST_IN(release_of_one_name_wakes, two_servers, two_servers_open()) {
  belay_lock_options_t options = lock_options();
  options.retry_min_ms = options.retry_max_ms = 600000;
  contender_t *a = contender_of(two_servers->env, two_servers->client[0], "a", &options);
  contender_t *b = contender_of(two_servers->env, two_servers->client[0], "b", &options);
  holder_t *both = holder_new(two_servers, "0:a 0:b", &options);
  assert_ok(try_lock(a), try_lock(b), holder_begin(both, BELAY_FOREVER));
  env_run_for(two_servers->env, 200 * slow());
  assert_error(release(a), 0);
  env_run_for(two_servers->env, 50);
  assert_int_equal(both->ended, 0);
  assert_ok(release(b), holder_outcome(both), begin_acquire(a, BELAY_FOREVER));
  assert_error(begin_acquire(b, BELAY_FOREVER), 0);
  env_run_for(two_servers->env, 200 * slow());
  assert_ok(holder_release(both), outcome(a), outcome(b));
}

/* The sets of names overlap without being equal: each handle gets its turn. */
TEST_IN(overlapping_multilocks, two_servers, two_servers_open()) {
  static const char *const names[] = {"0:a 0:b", "0:b 0:c", "0:c 0:a", "0:a 0:b 0:c"};
  holder_t *h[4];
  for (int i = 0; i < 4; i++) {
    h[i] = holder_new(two_servers, names[i], NULL);
    assert_error(holder_begin(h[i], BELAY_FOREVER), 0);
  }
  for (unsigned served = 0; served < 4; served++) {
    int holder = -1, holders = 0;
    env_until(two_servers->env, h[0]->ended + h[1]->ended + h[2]->ended + h[3]->ended > 2 * served);
    for (int i = 0; i < 4; i++)
      if (holder_holds(h[i])) {
        holder = i;
        holders++;
      }
    assert_int_equal(holders, 1);
    assert_error(holder_release(h[holder]), 0);
    if (served == 3)
      break;
  }
  two_servers_expect_no_key(two_servers);
}

TEST_IN(one_lost_key_loses_all, two_servers, two_servers_open()) {
  belay_lock_options_t options = watched(kept_ttl());
  holder_t *h = holder_new(two_servers, "0:a 0:b 1:c", &options);
  for (unsigned which = 0; which < 2; which++) {
    assert_error(holder_acquire(h, 0), 0);
    server_do(two_servers->server[which], "DEL",
              which == 0 ? "belay::lock::{b}" : "belay::lock::{c}", NULL);
    env_until(two_servers->env, h->lost == which + 1);
    assert_int_equal(h->reason, BELAY_LOST_TAKEN);
    assert_int_equal(belay_multilock_remaining_us(h->lock), 0);
    assert_error(holder_release(h), BELAY_ENOTOWNER);
    two_servers_expect_no_key(two_servers); /* the others were given back */
  }
  env_run_for(two_servers->env, 100);
  assert_int_equal(h->lost, 2);
}

TEST_IN(expiry_is_reported_once, two_servers, two_servers_open()) {
  belay_lock_options_t options = with_ttl(500 * slow());
  holder_t *h = holder_new(two_servers, "0:a 1:b", &options);
  assert_error(holder_acquire(h, 0), 0);
  env_until(two_servers->env, h->lost == 1);
  assert_int_equal(h->reason, BELAY_LOST_EXPIRED);
  env_run_for(two_servers->env, 700 * slow());
  assert_int_equal(h->lost, 1);
  options = watched(kept_ttl());
  holder_t *kept = holder_new(two_servers, "0:a 1:b", &options);
  assert_error(holder_acquire(kept, 1000), 0);
  env_run_for(two_servers->env, options.ttl_ms * 5 / 4);
  assert_int_equal(kept->lost, 0);
  assert_true(holder_holds(kept));
}

static char detail[256];

static void note_detail(holder_t *h, char event) {
  if (event == 'e')
    snprintf(detail, sizeof detail, "%s", belay_detail(h->env->belay));
}

/* The error message has the key. */
TEST_IN(key_of_other_type, two_servers, two_servers_open()) {
  holder_t *h = holder_new(two_servers, "0:a 0:b 1:c", NULL);
  server_do(two_servers->server[0], "LPUSH", "belay::lock::{b}", "x", NULL);
  h->then = note_detail;
  assert_error(holder_acquire(h, 1000), BELAY_EWRONGTYPE);
  h->then = NULL;
  assert_non_null(strstr(detail, "belay::lock::{b}: Operation"));
  assert_null(strstr(detail, "{a}"));
  server_do(two_servers->server[0], "DEL", "belay::lock::{b}", NULL);
  assert_error(holder_acquire(h, 0), 0);
  server_do(two_servers->server[0], "DEL", "belay::lock::{b}", NULL);
  server_do(two_servers->server[0], "LPUSH", "belay::lock::{b}", "x", NULL);
  assert_error(holder_release(h), BELAY_ENOTOWNER);
  env_settle(two_servers->env);
  assert_int_equal(server_keys(two_servers->server[0]), 1);
  assert_int_equal(server_keys(two_servers->server[1]), 0);
}

TEST_IN(error_names_client, two_servers, two_servers_open()) {
  belay_lock_options_t options = watched(3 * lag());
  options.timeout_ms = lag();
  holder_t *h = holder_new(two_servers, "0:a 1:a", &options);
  for (int i = 0; i < 2; i++) {
    belay_client_t *where = two_servers->client[i];
    contender_t *a = two_servers_lock(two_servers, i, "a");
    assert_error(try_lock(a), 0);
    assert_each(BELAY_EHELD, holder_acquire(h, 0), belay_multilock_error(h->lock, &where));
    assert_ptr_equal(where, two_servers->client[i]);
    assert_ok(release(a), holder_acquire(h, 0), belay_multilock_error(h->lock, &where));
    assert_null(where);
    server_do(two_servers->server[i], "DEL", "belay::lock::{a}", NULL);
    env_until(two_servers->env, h->lost == (unsigned)i + 1);
    assert_error(belay_multilock_error(h->lock, &where), BELAY_ENOTOWNER);
    assert_ptr_equal(where, two_servers->client[i]);
  }
  assert_error(holder_acquire(h, 5000), 0);
  server_kill(two_servers->server[1]);
  belay_client_t *where = NULL;
  env_until(two_servers->env,
            belay_multilock_error(h->lock, &where) != 0); /* renewals do not come through */
  assert_true(holder_holds(h));
  assert_ptr_equal(where, two_servers->client[1]);
  env_until(two_servers->env, h->lost == 3);
  assert_int_equal(h->reason, BELAY_LOST_EXPIRED);
  assert_true(belay_multilock_error(h->lock, NULL) != 0);
  assert_error(belay_multilock_error(NULL, &where), BELAY_EINVAL);
  server_restart(two_servers->server[1]);
}

/* Two clients of one server: a name held through one client would block the other client. */
TEST(one_server_with_two_urls) {
  needs_one_server("databases");
  two_servers_t *two_servers = two_servers_open();
  belay_client_t *own = two_servers->client[1];
  relay_t *relay = relay_start(server_url(two_servers->server[0]));
  two_servers->client[1] = env_connect(two_servers->env, relay_url(relay), NULL);
  holder_t *h = holder_new(two_servers, "0:a 1:a 1:b", NULL);
  assert_error(holder_acquire(h, 60000), BELAY_EDUPLICATE);
  two_servers_expect_no_key(two_servers);
  assert_error(holder_acquire(h, 0), BELAY_EDUPLICATE);
  holder_t *apart = holder_new(two_servers, "0:a 1:b", NULL); /* which do not meet */
  assert_error(holder_acquire(apart, 0), 0);
  holder_t *other = holder_new(two_servers, "0:c 1:b", NULL);
  assert_error(holder_acquire(other, 0), BELAY_EHELD);
  assert_error(holder_release(apart), 0);
  belay_client_options_t elsewhere = client_options();
  elsewhere.db = 1;
  two_servers->client[1] = env_connect(two_servers->env, relay_url(relay), &elsewhere);
  contender_t *a = contender_of(two_servers->env, two_servers->client[1], "a", NULL);
  holder_t *two = holder_new(two_servers, "0:a 1:a", NULL); /* of two databases */
  assert_ok(holder_acquire(two, 0), holder_release(two), try_lock(a));
  assert_error(holder_acquire(two, 0), BELAY_EHELD);
  assert_error(release(a), 0);
  two_servers->client[1] = own;
  two_servers_expect_no_key(two_servers);
  two_servers_close(two_servers);
  relay_stop(relay);
}

TEST_IN(all_or_none_on_two_servers, two_servers, two_servers_open()) {
  holder_t *h = holder_new(two_servers, "0:a 1:a 0:b", NULL);
  for (int server = 0; server < 2; server++) {
    contender_t *a = two_servers_lock(two_servers, server, "a");
    assert_error(try_lock(a), 0);
    assert_error(holder_acquire(h, 0), BELAY_EHELD);
    assert_error(holder_acquire(h, 100), BELAY_ETIMEDOUT);
    env_settle(two_servers->env);
    assert_int_equal(server_keys(two_servers->server[server]), 2); /* and the contention flag */
    assert_int_equal(server_keys(two_servers->server[1 - server]), 0);
    assert_error(holder_begin(h, BELAY_FOREVER), 0);
    env_run_for(two_servers->env, 50);
    assert_ok(release(a), holder_outcome(h));
    assert_int_equal(server_keys(two_servers->server[0]), 2);
    assert_int_equal(server_keys(two_servers->server[1]), 1);
    assert_error(holder_release(h), 0);
  }
  two_servers_expect_no_key(two_servers);
}

#define ROUNDS 20 /* of each */

/* Both handles continue until each has its grants: with starvation the test never ends. */
static void again(holder_t *h, char event) {
  if (event != 'e' || h->status != 0)
    return;
  if (holder_holds(h)) {
    h->env->wrong += holder_holds(h->other);
    assert_error(holder_begin_release(h), 0);
  } else if (h->ended < ROUNDS || h->other->ended < ROUNDS) {
    assert_error(holder_begin(h, BELAY_FOREVER), 0);
  }
}

/* The names are in opposite orders: no handle holds one name while it waits for another. */
TEST_IN(opposite_orders, two_servers, two_servers_open()) {
  belay_lock_options_t options = watched(60000);
  holder_t *one = holder_new(two_servers, "0:a 1:z 1:c", &options);
  holder_t *other = holder_new(two_servers, "1:z 0:a 0:x", &options);
  one->then = other->then = again;
  one->other = other;
  other->other = one;
  assert_ok(holder_begin(one, BELAY_FOREVER), holder_begin(other, BELAY_FOREVER));
  env_until(two_servers->env, one->ended >= ROUNDS && one->ended == one->begun &&
                                  other->ended >= ROUNDS && other->ended == other->begun);
  two_servers_expect_no_key(two_servers);
}

/* The name on the other server is acquired first, and released in time. */
TEST_IN(failed_acquire_releases, two_servers, two_servers_open()) {
  contender_t *a[2] = {two_servers_lock(two_servers, 0, "a"),
                       two_servers_lock(two_servers, 1, "a")};
  holder_t *h = holder_new(two_servers, "0:a 1:a", NULL);
  for (int held = 0; held < 2; held++) {
    assert_ok(try_lock(a[held]), holder_begin(h, BELAY_FOREVER));
    env_run_for(two_servers->env, 100);
    assert_error(holder_cancel(h), 0);
    assert_error(holder_cancel(h), BELAY_ESTATE);
    assert_error(holder_begin(h, 0), BELAY_ESTATE); /* until its callback has run */
    assert_error(holder_outcome(h), BELAY_ECANCELED);
    assert_ok(acquire(a[1 - held], 1000), release(a[1 - held]), release(a[held]));
  }
  assert_error(holder_acquire(h, 0), 0);
  assert_error(holder_cancel(h), BELAY_ESTATE);
}

/* The lease on the first name expires during the wait for the second: the acquire starts again. */
TEST_IN(member_lost_during_acquire, two_servers, two_servers_open()) {
  belay_lock_options_t options = with_ttl(250 * slow());
  contender_t *a[2] = {two_servers_lock(two_servers, 0, "a"),
                       two_servers_lock(two_servers, 1, "a")};
  for (int held = 0; held < 2; held++) {
    holder_t *h = holder_new(two_servers, "0:a 1:a", &options);
    assert_ok(try_lock(a[held]), holder_begin(h, BELAY_FOREVER));
    env_run_for(two_servers->env, 900 * slow());
    assert_int_equal(h->ended, 0);
    assert_ok(release(a[held]), holder_outcome(h));
    assert_int_equal(h->lost, 0);
    assert_error(holder_begin_close(h), 0);
    env_until(two_servers->env, h->closed == 1);
  }
  two_servers_expect_no_key(two_servers);
}

TEST_IN(server_away_during_acquire, two_servers, two_servers_open()) {
  holder_t *h = holder_new(two_servers, "0:a 1:a", NULL);
  for (int away = 0; away < 2; away++) {
    server_kill(two_servers->server[away]);
    int status = holder_acquire(h, 300);
    assert_true(status == BELAY_EUNREACHABLE || status == BELAY_EUNKNOWN);
    assert_error(holder_begin(h, BELAY_FOREVER), 0);
    server_restart(two_servers->server[away]);
    assert_ok(holder_outcome(h), holder_release(h));
  }
  two_servers_expect_no_key(two_servers);
}

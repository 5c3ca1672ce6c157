#include "support/load/believer.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/deployments/nodes.h"

#define TTL_MS BELIEVER_TTL_MS
#define WAIT_MS 3000 /* of an acquire */

static shared_t *shared;
static int self;         /* this process's number */
static diary_t *diary;   /* and diary */
static contender_t *now; /* the handle in use */
static bool acquiring;
static belief_t *belief; /* NULL: none at present */

static int random_between(int min, int max) {
  return min + (int)(random() % (max - min + 1));
}

static void believe_until(int64_t until) {
  belief->until = until;
  atomic_store(&diary->believes, until);
}

static void believe_no_longer_than(int64_t time) {
  if (time < belief->until)
    believe_until(time);
}

/* The clock is read first, so that a process stopped between the two lines writes no longer
 * belief. */
static void check_belief(uv_check_t *check) {
  (void)check;
  if (belief == NULL)
    return;
  int64_t time = clock_now(), left = belay_lock_remaining_us(now->lock);
  if (left > 0)
    believe_until(time + left * 1000);
  else
    believe_no_longer_than(time);
}

static void begin_belief(contender_t *c) {
  uint64_t fence = belay_lock_fence(c->lock);
  int64_t time = clock_now();
  if (belay_lock_remaining_us(c->lock) == 0) { /* stopped since it was granted */
    diary->late++;
    return;
  }
  unsigned i = atomic_load(&diary->count);
  assert_true(i < shared->room);
  atomic_store(&diary->since, time);
  belief = &shared->belief[(unsigned)self * shared->room + i];
  *belief = (belief_t){.from = time, .until = time, .fence = fence, .holder = self};
  check_belief(NULL);
  atomic_store(&diary->count, i + 1);
}

static void on_event(contender_t *c, event_t event) {
  if (event == EVENT_ENDED && acquiring && c->status == 0)
    begin_belief(c);
}

static void hold_for(int min_ms, int max_ms) {
  env_run_for(now->env, random_between(min_ms, max_ms));
}

static void hold_briefly(void) {
  hold_for(0, 20);
}

static void hold_to_its_end(void) {
  hold_for(TTL_MS, TTL_MS + 50);
}

static void hold_and_renew(void) {
  hold_for(TTL_MS + TTL_MS / 5, 2 * TTL_MS);
}

/* A process stopped in here believes only until here. */
static void begin_to_extend(int64_t ttl_ms) {
  if (belief != NULL)
    believe_no_longer_than(clock_now());
  (void)begin_extend(now, ttl_ms);
  check_belief(NULL);
}

static void hold_and_extend(void) {
  hold_for(0, TTL_MS / 2);
  begin_to_extend(random_between(TTL_MS, BELIEVER_MAX_TTL_MS));
  hold_for(TTL_MS / 4, TTL_MS / 2);
}

static void hold_and_shorten(void) {
  hold_for(0, 20);
  begin_to_extend(TTL_MS / 5);
  hold_for(0, TTL_MS / 4);
}

static const struct {
  const char *name;
  bool watched;
  void (*hold)(void);
} manners[MANNERS] = {
    {"briefly", false, hold_briefly},       {"to its end", false, hold_to_its_end},
    {"renewed", true, hold_and_renew},      {"extended", false, hold_and_extend},
    {"cut short", false, hold_and_shorten},
};

static const int reasons[BELIEVER_REASONS] = {
    BELAY_EHELD,        BELAY_ETIMEDOUT, BELAY_EEXPIRED,    BELAY_EUNKNOWN,
    BELAY_EUNREACHABLE, BELAY_ENOQUORUM, BELAY_EQUARANTINED};

static void note_failure(int status) {
  for (int i = 0; i < BELIEVER_REASONS; i++)
    if (reasons[i] == status) {
      diary->vain[i]++;
      return;
    }
  fail_msg("an acquire ended with %s", belay_err_name(status));
}

static int choose_manner(void) {
  int i = 0, sum = 0;
  for (int k = 0; k < MANNERS; k++)
    sum += shared->weight[k];
  for (sum = random_between(0, sum - 1); sum >= shared->weight[i]; i++)
    sum -= shared->weight[i];
  return i;
}

/* The hold ends with this call. An expired lease is reported, once. */
static void give_back(unsigned lost_before) {
  if (belief != NULL)
    believe_no_longer_than(clock_now());
  belief = NULL;
  if (begin_release(now) == 0) {
    (void)outcome(now);
  } else {
    env_until(now->env, now->lost > lost_before);
    diary->lost++;
    lost_before++;
  }
  env_until(now->env, now->extended == now->begun_extend);
  assert_int_equal(now->lost, lost_before);
}

static void take_a_turn(contender_t *plain, contender_t *watched) {
  int i = choose_manner();
  now = manners[i].watched ? watched : plain;
  unsigned lost_before = now->lost;
  acquiring = true;
  int status = acquire(now, WAIT_MS);
  acquiring = false;
  if (status != 0) {
    note_failure(status);
  } else {
    diary->held[i]++;
    manners[i].hold();
    give_back(lost_before);
  }
  env_run_for(now->env, random_between(20, 60)); /* the others' turn */
}

static belay_lock_options_t options_of(belay_watchdog_t watchdog) {
  belay_lock_options_t options = with_ttl(TTL_MS);
  options.watchdog = watchdog;
  options.fencing = true;
  options.quarantine = shared->quarantine;
  options.max_ttl_ms = BELIEVER_MAX_TTL_MS;
  options.timeout_ms = TTL_MS / 10; /* other processes want the processor too */
  options.retry_min_ms = 5;
  options.retry_max_ms = 40;
  return options;
}

/* A node that stands still is dropped while what was sent to it lies in its socket. */
static belay_client_options_t impatient(void) {
  belay_client_options_t options = client_options();
  options.stall_timeout_ms = 600;
  options.reconnect_max_ms = 200;
  return options;
}

shared_t *believer_share(int fd, size_t size) {
  shared_t *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  assert_ptr_not_equal(at, MAP_FAILED);
  return at;
}

int believer_run(const char *fd, const char *size, const char *number) {
  belay_client_t *client[BELIEVER_NODES];
  uv_check_t check;
  shared = believer_share(atoi(fd), strtoul(size, NULL, 10));
  self = atoi(number);
  diary = &shared->diary[self];
  srandom((unsigned)getpid());

  belay_client_options_t options = impatient();
  env_t *env = env_open_at(shared->url[0], &options);
  client[0] = env->client;
  for (int i = 1; i < BELIEVER_NODES; i++)
    client[i] = env_connect(env, shared->url[i], &options);
  belay_lock_options_t plain_options = options_of(BELAY_WATCHDOG_OFF);
  belay_lock_options_t watched_options = options_of(BELAY_WATCHDOG_ON);
  contender_t *plain = contender_over(env, client, BELIEVER_NODES, "door", &plain_options);
  contender_t *watched = contender_over(env, client, BELIEVER_NODES, "door", &watched_options);
  plain->then = watched->then = on_event;
  uv_check_init(&env->loop, &check);
  uv_check_start(&check,
                 check_belief); /* whenever the loop has read what came in, a renewal perhaps */

  while (!atomic_load(&shared->over))
    take_a_turn(plain, watched);
  uv_close((uv_handle_t *)&check, NULL);
  env_close(env);
  return 0;
}

void believer_tell(const diary_t *d) {
  print_message("%u lost, %u late; held", d->lost, d->late);
  for (int k = 0; k < MANNERS; k++)
    print_message("%s %u %s", k > 0 ? "," : "", d->held[k], manners[k].name);
  print_message("; in vain:");
  for (int k = 0; k < BELIEVER_REASONS; k++)
    if (d->vain[k] > 0)
      print_message(" %u %s", d->vain[k], belay_err_name(reasons[k]));
  print_message("\n");
}

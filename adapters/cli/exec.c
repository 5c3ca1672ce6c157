/* `belay exec`: a command that runs while a lock is held. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "commands.h"
#include "errand.h"
#include "probe.h"

/* CONNECTING --enough servers answered (probe.h)--> WAITING --granted--> RUNNING --the command ended--> RELEASING --> DONE
 *     |                                                |                  |
 *     +--too few answered--> DONE: 120                 |                  +--lost: the keeper ends the command: 122
 *                                                      +--held by another, or the wait is over--> DONE: 121
 *
 * A loss may be noticed only by the release: 122 too.
 *
 * A signal: CONNECTING and WAITING end; RUNNING hands it to the command; RELEASING ignores the first one, and the second
 * one ends belay. */

#define QUARANTINE_MS 30000
#define QUORUM_TIMEOUT_MS 5 /* that the library always allows */

static struct {
  int64_t ttl_ms, grace_ms, wait_ms, permits, max_ttl_ms;
  bool try_once, redlock, fair, shared, exclusive, quiet;
} asked = {.ttl_ms = 30000, .wait_ms = BELAY_FOREVER, .max_ttl_ms = QUARANTINE_MS};

static enum { CONNECTING, WAITING, RUNNING, RELEASING } state;
static belay_lock_t *lock;
static errand_t errand;

/* ---- the end ------------------------------------------------------------------------------------------- */

static void on_released(belay_lock_t *l, int status) {
  harness_t *h = belay_lock_data(l);
  if (harness_is_done(h))
    return;
  if (status == BELAY_ENOTOWNER && errand.started)
    errand_lose(&errand, belay_lost_name(BELAY_LOST_TAKEN));
  else if (status != 0)
    harness_complain(h, "not given back, so that it is held until its lease ends", status);
  harness_done(h, errand.status);
}

static void on_ended(errand_t *e) {
  state = RELEASING;
  if ((e->lost || e->overdue) && e->started)
    errand_lose(e, "no renewal was confirmed in time");
  int error = belay_lock_release(lock, BELAY_DEFAULT, on_released);
  if (error != 0)
    on_released(lock, error);
}

static void on_lost(belay_lock_t *l, belay_lost_t reason) {
  (void)l;
  if (!errand.overdue) /* that is said at the end */
    errand_lose(&errand, belay_lost_name(reason));
  errand_look(&errand);
}

static void stop(harness_t *h, int signum) {
  bool started = state == RUNNING || state == RELEASING;
  if (started && errand_take(&errand, signum))
    return;
  probe_end();
  harness_done(h, STATUS_SIGNAL + signum);
}

/* ---- the command --------------------------------------------------------------------------------------- */

static int64_t left_us(void *data) {
  (void)data;
  return belay_lock_remaining_us(lock);
}

static void set_number(const char *name, uint64_t value) {
  char digits[24];
  (void)snprintf(digits, sizeof digits, "%" PRIu64, value);
  (void)setenv(name, digits, 1);
}

/* What was there before is of a belay around this one. */
static void set_environment(const harness_t *h) {
  struct timespec now;
  (void)clock_gettime(CLOCK_REALTIME, &now);
  int64_t ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
  (void)setenv("BELAY_NAME", h->arguments->item[0], 1);
  set_number("BELAY_DEADLINE", (uint64_t)(ms + belay_lock_remaining_us(lock) / 1000));
  if (belay_lock_fence(lock) != 0)
    set_number("BELAY_FENCE", belay_lock_fence(lock));
  else
    (void)unsetenv("BELAY_FENCE");
}

static void on_acquired(belay_lock_t *l, int status) {
  harness_t *h = belay_lock_data(l);
  if (status == BELAY_EHELD || status == BELAY_ETIMEDOUT) {
    if (!asked.quiet)
      complain("not acquired: %s", status == BELAY_EHELD ? "someone else holds it"
                                                         : "someone else held it all the time");
    harness_done(h, STATUS_NOT_ACQUIRED);
    return;
  }
  if (status != 0) {
    harness_fail(h, "cannot acquire", status);
    return;
  }
  state = RUNNING;
  set_environment(h);
  errand =
      (errand_t){.left = left_us, .grace_ms = asked.grace_ms, .on_end = on_ended, .data = lock};
  errand_start(&errand, h, h->arguments->command);
}

/* ---- the beginning ------------------------------------------------------------------------------------- */

/* One call to one of several servers: --timeout, as far as the library allows for that ttl. Its default, 50 ms, is for
 * servers nearby. */
static int64_t quorum_timeout(void) {
  int64_t most = asked.ttl_ms / 10 > QUORUM_TIMEOUT_MS ? asked.ttl_ms / 10 : QUORUM_TIMEOUT_MS;
  return common.timeout_ms < most ? common.timeout_ms : most;
}

static int make_lock(harness_t *h) {
  const char *name = h->arguments->item[0];
  size_t len = strlen(name);
  belay_lock_options_t options;
  belay_lock_options_init(&options);
  options.ttl_ms = asked.ttl_ms;
  options.watchdog = BELAY_WATCHDOG_ON;
  options.fencing = asked.permits == 0;
  options.fair = asked.fair;
  options.max_ttl_ms = asked.max_ttl_ms;
  options.quarantine = asked.redlock ? BELAY_QUARANTINE_ON : BELAY_QUARANTINE_AUTO;
  if (h->clients > 1)
    options.timeout_ms = quorum_timeout();
  options.on_lost = on_lost;
  options.data = h;
  if (asked.permits > 0)
    return belay_semaphore_new(h->client, h->clients, name, len, (unsigned)asked.permits, 1,
                               &options, &lock);
  if (asked.shared || asked.exclusive)
    return belay_rwlock_new(h->client, h->clients, name, len,
                            asked.shared ? BELAY_RWLOCK_READ : BELAY_RWLOCK_WRITE, &options, &lock);
  return asked.redlock ? belay_redlock_new(h->client, h->clients, name, len, &options, &lock)
                       : belay_lock_new(h->client[0], name, len, &options, &lock);
}

static void acquire(harness_t *h) {
  state = WAITING;
  int error = belay_lock_acquire(lock, asked.try_once ? 0 : asked.wait_ms, on_acquired);
  harness_fail(h, "cannot acquire", error);
}

/* What excludes what; NULL: nothing is wrong. */
static const char *wrong(const harness_t *h) {
  const char *name = h->arguments->item[0];
  if (asked.try_once && asked.wait_ms != BELAY_FOREVER)
    return "--try and --wait exclude each other";
  if ((asked.permits > 0) + asked.shared + asked.exclusive > 1)
    return "--semaphore, --shared and --exclusive exclude each other";
  if (asked.fair && (asked.shared || asked.exclusive || asked.redlock))
    return "--fair is for a lock or a semaphore on one server";
  if (asked.redlock != (h->clients > 1))
    return "--redlock is for several servers, each with a --url of its own, and they for it";
  if (asked.redlock && h->clients == 2)
    return "--redlock: two servers protect against nothing that one does not: at least three";
  if (asked.redlock && asked.permits > 1)
    return "--redlock: a semaphore of more than one permit cannot be had of several servers";
  if (asked.redlock && asked.ttl_ms > asked.max_ttl_ms)
    return "--ttl: longer than --max-ttl";
  if (*name == '\0' || strlen(name) > 1024)
    return "NAME: 1 to 1024 bytes";
  return errand_grace(asked.ttl_ms, &asked.grace_ms);
}

static void begin(harness_t *h) {
  const char *what = wrong(h);
  if (what != NULL) {
    harness_refuse(h, what);
    return;
  }
  int error = make_lock(h);
  if (error != 0)
    harness_fail(h, "cannot acquire", error);
  else
    probe_begin(h, "cannot acquire", acquire);
}

static const option_t options[] = {
    {.name = "ttl",
     .kind = OPTION_DURATION,
     .value = "DURATION",
     .to.number = &asked.ttl_ms,
     .min = 100,
     .max = DAY_MS,
     .help = "the lease, renewed while the command runs: if this machine dies others wait for so "
             "long; default 30s"},
    ERRAND_GRACE_OPTION(&asked.grace_ms),
    {.name = "wait",
     .letter = 'w',
     .kind = OPTION_DURATION,
     .value = "DURATION",
     .to.number = &asked.wait_ms,
     .max = YEAR_MS,
     .forever = true,
     .help = "for how long to wait for it; default forever"},
    {.name = "try",
     .kind = OPTION_FLAG,
     .to.flag = &asked.try_once,
     .help = "do not wait: if someone else holds it, that is the end"},
    {.name = "quiet",
     .letter = 'q',
     .kind = OPTION_FLAG,
     .to.flag = &asked.quiet,
     .help = "do not say that it is not acquired: the status does"},
    {.name = "fair",
     .kind = OPTION_FLAG,
     .to.flag = &asked.fair,
     .help = "first come, first served, among all who say so"},
    {.name = "shared",
     .kind = OPTION_FLAG,
     .to.flag = &asked.shared,
     .help = "as one of many readers, beside others that are --shared"},
    {.name = "exclusive",
     .kind = OPTION_FLAG,
     .to.flag = &asked.exclusive,
     .help = "as the writer, whom readers and other writers wait for; who says neither has another "
             "lock"},
    {.name = "semaphore",
     .kind = OPTION_NUMBER,
     .value = "N",
     .to.number = &asked.permits,
     .min = 1,
     .max = BELAY_SEMAPHORE_MAX,
     .help = "with up to N at a time; all say the same N; there is no BELAY_FENCE"},
    {.name = "redlock",
     .kind = OPTION_FLAG,
     .to.flag = &asked.redlock,
     .help =
         "on several independent servers, each a --url: held when most of them have granted it"},
    {.name = "max-ttl",
     .kind = OPTION_DURATION,
     .value = "DURATION",
     .to.number = &asked.max_ttl_ms,
     .min = 100,
     .max = DAY_MS,
     .help = "with --redlock: the longest --ttl in this namespace, for all the same: a server that "
             "was started does not vote for so long; default 30s"},
    {0},
};

const command_t exec_command = {
    .name = "exec",
    .arguments = "NAME",
    .summary = "run a command while holding the lock NAME, and end with its status",
    .text =
        "The lease is renewed while the command runs, and given back when it ends. If renewal does "
        "not come through, the command is ended before the lease could be someone else's: SIGTERM "
        "when --grace is left, SIGKILL to all that it has started a little before the end. "
        "That is done by a process of its own, also if belay is stopped, or killed. The status is "
        "122 then.\n\n"
        "The command finds in its environment BELAY_NAME; BELAY_FENCE, a number that "
        "is larger for each who gets the lock, for what it writes to: that is to refuse smaller "
        "ones; and BELAY_DEADLINE, when the lease ends that it begins with, in milliseconds since "
        "1970 by this machine's clock (date +%s%3N).\n\n"
        "Signals that belay gets (SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH) "
        "go to the command and its process group, those of the terminal too. Stopped by ctrl-Z, "
        "the command stands still and nothing is renewed: continued in time (fg) both go on; else "
        "the command is ended as above. What the command leaves running behind it when "
        "it ends by itself is let be, and holds no lock. When it has ended a signal does not keep "
        "belay "
        "from giving the lock back, which takes no longer than twice --timeout; a second one ends "
        "it.\n\n"
        "Where neither clocks nor servers can be trusted so far, guard what is written to with "
        "BELAY_FENCE. What belongs to another user (sudo) is not ended; nor, elsewhere than on "
        "Linux, "
        "what has left the command's process group (setsid, timeout). BELAY_PASSWORD, if it is "
        "set, "
        "is in the command's environment too: --password-file keeps the password from it.",
    .examples =
        (const example_t[]){
            {"From cron on many machines, on one of them",
             "belay exec nightly --try --quiet -- backup --all"},
            {"Wait for a minute, and then do without", "belay exec deploy --wait 1m -- ./deploy"},
            {"At most three at a time", "belay exec encoder --semaphore 3 -- encode film.mov"},
            {"On three servers of which one may fail",
             "belay exec pay --redlock -u redis://a -u redis://b -u redis://c -- pay"},
            {0}},
    .options = options,
    .least = 1,
    .most = 1,
    .runs = RUNS_ALWAYS,
    .urls = BELAY_NODES_MAX,
    .begin = begin,
    .stop = stop,
};

/* `belay exec`: run a command while a lock is held. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "run/guarded_command.h"
#include "query/query.h"
#include "run/probe.h"
#include "run/waiting.h"

/*   CONNECTING --enough servers answered (probe.h)--> WAITING --granted--> RUNNING
 *     +--too few answered--> DONE: 120                  +--held, or wait over--> DONE: 121, or -E
 *
 *   RUNNING --the command has ended--> HOLDING
 *     +--lost: the supervisor ends the command: 122
 *
 *   HOLDING --the time of --hold is over, a signal, or lost--> RELEASING --> DONE
 *
 * The exit status is that of the command, or 122 after a loss. Sometimes only the release detects a
 * loss; the status is 122 then too.
 *
 * A signal in CONNECTING, WAITING or HOLDING ends that state. RUNNING forwards the signal to the
 * command, and HOLDING is skipped. RELEASING ignores the first signal; the second one ends
 * belay. */
#define QUARANTINE_MS 30000
#define QUORUM_TIMEOUT_MS 5 /* the smallest timeout that the library accepts for any ttl */

static struct {
  int64_t ttl_ms, grace_ms, wait_ms, permits, max_ttl_ms, hold_ms, conflict;
  const char *key;
  bool try_once, redlock, fair, shared, exclusive, quiet;
} asked = {.ttl_ms = 30000,
           .wait_ms = BELAY_FOREVER,
           .max_ttl_ms = QUARANTINE_MS,
           .conflict = STATUS_NOT_ACQUIRED};

static enum { CONNECTING, WAITING, RUNNING, HOLDING, RELEASING } state;
static belay_lock_t *lock;
static guarded_t guarded;
static waiting_t waiting;
static uv_timer_t hold_timer;
static uint64_t granted_at; /* uv_now() */
static bool held_on;        /* true if --hold kept the lock after the command had ended */

static const char *name_of(const harness_t *h) {
  return asked.key != NULL ? asked.key : h->arguments->item[0];
}

/* ---- the end ---- */

static void free_state(void) {
  probe_end();
  waiting_end(&waiting);
  if (hold_timer.data != NULL)
    uv_close((uv_handle_t *)&hold_timer, NULL);
}

/* Report a loss. If the lock was held for longer than the command ran, the time of the loss is
 * unknown. */
static void report_loss(const char *why) {
  if (held_on && !guarded.lost)
    complain("lost while the command ran, or before --hold was over: %s", why);
  guarded.lost = guarded.lost || held_on;
  guarded_set_lost(&guarded, why);
}

static void on_released(belay_lock_t *l, int status) {
  harness_t *h = belay_lock_data(l);
  if (harness_is_done(h))
    return;
  if (status == BELAY_ENOTOWNER && guarded.started)
    report_loss(belay_lost_name(BELAY_LOST_TAKEN));
  else if (status != 0)
    harness_complain(h, "cannot release the lock, which stays held until its lease ends", status);
  harness_done(h, guarded.status);
}

static void release(void) {
  state = RELEASING;
  (void)uv_timer_stop(&hold_timer);
  int error = belay_lock_release(lock, BELAY_DEFAULT, on_released);
  if (error != 0)
    on_released(lock, error);
}

static void on_hold_over(uv_timer_t *timer) {
  (void)timer;
  release();
}

/* Ignore --hold if the command did not run, so that another machine can run it, and if a signal
 * ended the command. */
static void on_ended(guarded_t *e) {
  bool lost = (e->lost || e->overdue) && e->started;
  uint64_t end = granted_at + (uint64_t)asked.hold_ms, now = uv_now(&e->harness->loop);
  if (lost)
    guarded_set_lost(e, "no renewal was confirmed in time");
  state = HOLDING;
  held_on = !lost && e->started && e->end_signal == 0 && end > now;
  if (!held_on)
    release();
  else
    (void)uv_timer_start(&hold_timer, on_hold_over, end - now, 0);
}

static void on_lost(belay_lock_t *l, belay_lost_t reason) {
  (void)l;
  if (state == HOLDING) {
    report_loss(belay_lost_name(reason));
    release();
    return;
  }
  if (!guarded.overdue) /* on_ended() reports it */
    guarded_set_lost(&guarded, belay_lost_name(reason));
  guarded_check_limits(&guarded);
}

static void on_signal(harness_t *h, int signum) {
  bool started = state == RUNNING || state == RELEASING;
  if (state == HOLDING)
    release();
  else if (!started || !guarded_on_signal(&guarded, signum))
    harness_done(h, STATUS_SIGNAL + signum);
}

/* ---- the command ---- */

static int64_t left_us(void *data) {
  (void)data;
  return belay_lock_remaining_us(lock);
}

static void set_environment(const harness_t *h) {
  struct timespec now;
  (void)clock_gettime(CLOCK_REALTIME, &now);
  int64_t ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
  guarded_set_environment(name_of(h), belay_lock_fence(lock),
                          (uint64_t)(ms + belay_lock_remaining_us(lock) / 1000));
}

static void run_command(harness_t *h) {
  state = RUNNING;
  set_environment(h);
  granted_at = uv_now(&h->loop);
  (void)uv_timer_init(&h->loop, &hold_timer);
  hold_timer.data = h;
  guarded = (guarded_t){.left = left_us, .grace_ms = asked.grace_ms, .on_end = on_ended};
  guarded_start(&guarded, h, h->arguments->command);
}

/* ---- waiting ---- */

/* Returns true if a server can neither grant nor deny the lock. */
static bool is_missing(belay_vote_t vote) {
  return vote == BELAY_VOTE_UNREACHABLE || vote == BELAY_VOTE_TIMED_OUT ||
         vote == BELAY_VOTE_REFUSED || vote == BELAY_VOTE_QUARANTINED;
}

/* Name the servers that do not vote, with the reasons. Returns NULL if a quorum votes. */
static const char *describe_trouble(void) {
  static char words[1024];
  char left[QUERY_TEXT_MAX];
  unsigned missing = 0;
  size_t n = 0;
  belay_lock_tally_t tally;
  belay_lock_tally(lock, &tally);
  if (tally.nodes > 1)
    n = (size_t)snprintf(words, sizeof words, "too few of the servers vote");
  for (unsigned i = 0; i < tally.nodes; i++) {
    bool quarantined = tally.node[i].vote == BELAY_VOTE_QUARANTINED;
    int64_t ms = tally.node[i].quarantine_ms;
    if (!is_missing(tally.node[i].vote))
      continue;
    missing++;
    if (n >= sizeof words) /* the text is cut, the count is not */
      continue;
    n += (size_t)snprintf(words + n, sizeof words - n, "%s%s: %s%s", n == 0 ? "" : "; ",
                          harness_url(i),
                          quarantined ? "in quarantine after its start, votes in "
                                      : belay_strerror(tally.node[i].error),
                          quarantined ? query_time_left(left, ms > 0 ? ms : asked.max_ttl_ms) : "");
  }
  return missing > tally.nodes - tally.quorum ? words : NULL;
}

static void on_acquired(belay_lock_t *l, int status) {
  harness_t *h = belay_lock_data(l);
  waiting_end(&waiting);
  if (harness_is_done(h))
    return;
  if (status == BELAY_EHELD || status == BELAY_ETIMEDOUT) {
    if (!asked.quiet)
      complain("not acquired: %s", status == BELAY_EHELD ? "another process holds the lock"
                                                         : "other processes held the lock "
                                                           "all the time");
    harness_done(h, (int)asked.conflict);
  } else if (status == BELAY_ENOQUORUM || status == BELAY_EQUARANTINED) {
    const char *why = describe_trouble();
    complain("cannot acquire: %s", why != NULL ? why : belay_strerror(status));
    harness_done(h, STATUS_UNREACHABLE);
  } else if (harness_ok(h, status))
    run_command(h);
}

/* ---- the beginning ---- */

/* The timeout of one call to one of several servers: --timeout, within the library's limit for
 * the ttl. The library's default of 50 ms suits nearby servers only. */
static int64_t quorum_timeout(void) {
  int64_t most = asked.ttl_ms / 10 > QUORUM_TIMEOUT_MS ? asked.ttl_ms / 10 : QUORUM_TIMEOUT_MS;
  return common.timeout_ms < most ? common.timeout_ms : most;
}

static int make_lock(harness_t *h) {
  const char *name = name_of(h);
  size_t len = strlen(name);
  belay_lock_options_t options;
  belay_lock_options_init(&options);
  options.ttl_ms = asked.ttl_ms;
  options.watchdog = BELAY_WATCHDOG_ON;
  options.notice_break = true;
  options.fencing = asked.permits == 0 && asked.key == NULL;
  options.key = belay_bytes(asked.key, asked.key != NULL ? len : 0);
  options.fair = asked.fair;
  options.max_ttl_ms = asked.max_ttl_ms;
  options.quarantine = asked.redlock ? BELAY_QUARANTINE_ON : BELAY_QUARANTINE_AUTO;
  if (h->clients > 1)
    options.timeout_ms = quorum_timeout();
  options.on_lost = on_lost;
  options.data = h;
  if (asked.permits > 0)
    return belay_semaphore_new(
        h->client, h->clients, belay_bytes(name, len),
        &(belay_semaphore_size_t){.limit = (unsigned)asked.permits, .permits = 1}, &options, &lock);
  if (asked.shared || asked.exclusive)
    return belay_rwlock_new(h->client, h->clients, belay_bytes(name, len),
                            asked.shared ? BELAY_RWLOCK_READ : BELAY_RWLOCK_WRITE, &options, &lock);
  return asked.redlock
             ? belay_redlock_new(h->client, h->clients, belay_bytes(name, len), &options, &lock)
             : belay_lock_new(h->client[0], belay_bytes(name, len), &options, &lock);
}

static void acquire(harness_t *h) {
  state = WAITING;
  waiting = (waiting_t){.trouble = describe_trouble};
  waiting_start(&waiting, h);
  harness_ok(h, belay_lock_acquire(lock, asked.try_once ? 0 : asked.wait_ms, on_acquired));
}

/* Return what is wrong with the options, or NULL. */
static const char *wrong(const harness_t *h) {
  bool special = asked.permits > 0 || asked.fair || asked.shared || asked.exclusive;
  if ((h->arguments->n > 0) == (asked.key != NULL))
    return "give either a NAME or --key";
  if (asked.key != NULL && special)
    return "--key works only for a plain lock, with or without --redlock";
  if (asked.try_once && asked.wait_ms != BELAY_FOREVER)
    return "--try and --wait exclude each other";
  if ((asked.permits > 0) + asked.shared + asked.exclusive > 1)
    return "--semaphore, --shared and --exclusive exclude each other";
  if (asked.fair && (asked.shared || asked.exclusive || asked.redlock))
    return "--fair works only for a lock or a semaphore on one server";
  if (asked.redlock != (h->clients > 1))
    return "--redlock needs several servers, and several servers need --redlock: give one "
           "--url for each";
  if (asked.redlock && h->clients == 2)
    return "--redlock needs at least three servers: two protect no better than one";
  if (asked.redlock && asked.permits > 1)
    return "--redlock: a semaphore on several servers has one permit only";
  if (asked.redlock && asked.ttl_ms > asked.max_ttl_ms)
    return "--ttl: longer than --max-ttl";
  if (*name_of(h) == '\0' || strlen(name_of(h)) > 1024)
    return asked.key != NULL ? "--key: 1 to 1024 bytes" : "NAME: 1 to 1024 bytes";
  return guarded_set_grace(asked.ttl_ms, &asked.grace_ms);
}

static void begin_exec(harness_t *h) {
  const char *what = wrong(h);
  if (what != NULL)
    harness_refuse(h, what);
  else if (harness_ok(h, make_lock(h)))
    probe_begin(h, acquire);
}

static const option_t options[] = {
    DURATION("ttl", 100, DAY_MS, &asked.ttl_ms,
             "duration of the lease, which is renewed while the command runs. If this machine "
             "fails, other machines wait until the lease ends; default 30s"),
    GUARDED_GRACE_OPTION(&asked.grace_ms),
    DURATION("hold", 0, DAY_MS, &asked.hold_ms,
             "keep the lock for at least this time, even if the command ends earlier; belay "
             "itself ends after it; default 0"),
    DURATION("wait", 0, YEAR_MS, &asked.wait_ms,
             "maximum time to wait for the lock; default "
             "forever",
             .letter = 'w', .forever = true),
    FLAG("try", &asked.try_once, "do not wait: end at once if another process holds the lock"),
    FLAG("quiet", &asked.quiet,
         "print no message if the lock is not acquired; the exit status "
         "tells it",
         .letter = 'q'),
    GUARDED_CONFLICT_OPTION(&asked.conflict),
    GUARDED_LABEL_OPTION,
    TEXT("key", "KEY", &asked.key,
         "exact key on the server, instead of NAME, which stands for NAMESPACE::lock::{NAME}. "
         "Use it to share a lock with programs that do SET KEY TOKEN NX PX; BELAY_FENCE is not "
         "set"),
    FLAG("fair", &asked.fair, "first come, first served, among all processes that use --fair"),
    FLAG("shared", &asked.shared,
         "hold the lock as one of many readers, together with others "
         "that use --shared"),
    FLAG("exclusive", &asked.exclusive,
         "hold the lock as the only writer: it excludes readers and other writers. A lock "
         "without --shared or --exclusive is a separate lock"),
    NUMBER("semaphore", 1, BELAY_SEMAPHORE_MAX, &asked.permits,
           "let up to N holders run at a time. All processes must give the same N; BELAY_FENCE "
           "is not set"),
    FLAG("redlock", &asked.redlock,
         "use several independent servers, each given with --url; the lock is held when a "
         "majority has granted it"),
    DURATION("max-ttl", 100, DAY_MS, &asked.max_ttl_ms,
             "with --redlock: longest --ttl in this namespace, the same for all processes. A "
             "server that was restarted does not vote for this time; default 30s"),
    {0},
};

const command_t exec_command = {
    .name = "exec",
    .arguments = "[NAME]",
    .summary = "run a command while holding the lock NAME, and end with its status",
    .text = "belay renews the lease while the command runs, and then releases the lock. If no "
            "renewal is confirmed, belay ends the command before another process can get the lock: "
            "SIGTERM when --grace is left, and SIGKILL to all its processes shortly before the "
            "lease ends. The status is 122 then. A supervisor process sends these signals even if "
            "belay is stopped or killed. After kill -9 of belay it sends SIGTERM at once and "
            "SIGKILL after --grace.\n\n"
            "belay break, or a server that restarts without its data, can take the lock away. "
            "belay usually notices that at once, otherwise at the next renewal, after a third of "
            "--ttl. Until the command has ended, it may run at the same time as the next holder: "
            "protect the data with BELAY_FENCE or --redlock.\n\n"
            "The environment of the command contains BELAY_NAME, BELAY_FENCE and BELAY_DEADLINE. "
            "BELAY_FENCE is a number that grows with each grant; the storage that the command "
            "writes to should refuse smaller numbers. BELAY_DEADLINE is the end of the first "
            "lease, in milliseconds since 1970 by this machine's clock.\n\n"
            "For cron on many machines, --hold keeps the lock for longer than their clocks differ; "
            "--try alone is not enough. A second run while the lock is held ends with status 121. "
            "Use belay once if the command must not run again later either.\n\n"
            "belay forwards SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2 and SIGWINCH to the "
            "process group of the command. Ctrl-Z stops belay and the command, and no lease is "
            "renewed; if they are not continued in time, the command is ended as above. Processes "
            "that the command leaves behind when it ends by itself keep running, without the lock. "
            "While belay releases the lock it ignores one signal; a second signal ends belay.\n\n"
            "belay does not end processes of another user (sudo). On systems other than Linux it "
            "also does not end processes that have left the process group of the command (setsid). "
            "BELAY_PASSWORD, if it is set, is in the environment of the command too; with "
            "--password-file the password is not.",
    .examples =
        EXAMPLES({"Cron on many machines, clocks within a minute of each other: one runs it",
                  "belay exec nightly --try --hold 1m --quiet -- backup --all"},
                 {"Wait for at most a minute", "belay exec deploy --wait 1m -- ./deploy"},
                 {"At most three at a time", "belay exec encoder --semaphore 3 -- encode film.mov"},
                 {"Limit the run time, and show the output only on failure (chronic of moreutils)",
                  "chronic belay exec sync --try -q -- timeout 1h ./sync"},
                 {"Use three servers, of which one may fail",
                  "belay exec pay --redlock -u redis://a -u redis://b -u redis://c -- pay"}),
    .options = options,
    .runs = RUNS_ALWAYS,
    .urls = BELAY_NODES_MAX,
    .what = "cannot acquire",
    .begin = begin_exec,
    .stop = on_signal,
    .tidy = free_state,
    .plain = true,
};

/* `belay leader`: run a command on exactly one of many machines.
 *
 *   STANDING --elected--> RUNNING --command ended--> RESIGNING --> done; with --restart: PAUSING
 *      ^                   |  ^                                             |
 *      |  deposed: the     |  +---------- the pause is over ----------------+
 *      |  supervisor ends  |                                                |
 *      |  the command      |                                                |
 *      +-------------------+----------- deposed ----------------------------+
 *      +-- deposed while this process was stopped: no callback reports the election
 *
 * If a late renewal ended the command, but the lease is renewed after all, the state is PAUSING
 * too.
 *
 * With --observe the only state is OBSERVING.
 *
 * A signal ends OBSERVING, STANDING and PAUSING. RUNNING forwards it to the command, and belay ends
 * with the command. RESIGNING ignores the first signal. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "run/guarded_command.h"
#include "run/waiting.h"

#define CHECK_MS 100

static struct {
  int64_t ttl_ms, grace_ms, restart_ms;
  const char *as;
  bool observe;
} asked = {.ttl_ms = 30000, .restart_ms = -1};

static belay_election_t *election;
static guarded_t guarded;
static uv_timer_t pause_timer;
static waiting_t waiting;
static int unknown; /* the error of the last observation; 0: the leader is known */
static enum { STANDING, RUNNING, PAUSING, RESIGNING, OBSERVING } state;
static bool deposed;  /* true if deposed since the last election */
static bool stopping; /* true if a signal has asked belay to end */

static void start_campaign(harness_t *h);
static void run_command(harness_t *h);

/* ---- the end ---- */

static void free_state(void) {
  waiting_end(&waiting);
  if (pause_timer.data != NULL)
    uv_close((uv_handle_t *)&pause_timer, NULL);
}

static void on_resigned(belay_election_t *e, int status) {
  harness_t *h = belay_election_data(e);
  if (status == BELAY_ENOTOWNER)
    complain("deposed: %s", belay_lost_name(BELAY_LOST_TAKEN));
  else if (status != 0 && status != BELAY_ECANCELED)
    harness_complain(h, "cannot resign, so that there is no leader until the lease ends", status);
  harness_done(h, guarded.status);
}

static void resign(harness_t *h) {
  waiting_end(&waiting);
  (void)uv_timer_stop(&pause_timer);
  state = RESIGNING;
  if (belay_election_resign(election, on_resigned) != 0)
    harness_done(h, guarded.status); /* this process does not lead */
}

static void on_signal(harness_t *h, int signum) {
  stopping = true;
  if (state == STANDING || state == PAUSING) {
    guarded.status = STATUS_SIGNAL + signum;
    guarded.ignored_one = true;
    resign(h);
  } else if (state == OBSERVING || !guarded_on_signal(&guarded, signum))
    harness_done(h, STATUS_SIGNAL + signum);
}

/* ---- the command ---- */

static int64_t left_us(void *data) {
  (void)data;
  return belay_election_remaining_us(election);
}

static void pause_for(int64_t ms);

/* Do not start the command if the lease is nearly over: wait until it is renewed, or until
 * on_deposed() is called. */
static void on_pause_over(uv_timer_t *timer) {
  if (left_us(NULL) > 2000 * asked.grace_ms)
    run_command(timer->data);
  else
    pause_for(CHECK_MS);
}

static void pause_for(int64_t ms) {
  state = PAUSING;
  (void)uv_timer_start(&pause_timer, on_pause_over, (uint64_t)ms, 0);
}

static void on_ended(guarded_t *e) {
  harness_t *h = e->harness;
  bool lost = (e->overdue || deposed) && e->started;
  if (stopping || !e->started || (!lost && asked.restart_ms < 0)) {
    resign(h);
    return;
  }
  remark("the command has ended with status %d", e->status);
  if (deposed)
    start_campaign(h);
  else
    pause_for(lost ? CHECK_MS : asked.restart_ms);
}

static void run_command(harness_t *h) {
  guarded_set_environment(h->arguments->item[0], belay_election_term(election), 0);
  state = RUNNING;
  guarded = (guarded_t){.left = left_us, .grace_ms = asked.grace_ms, .on_end = on_ended};
  guarded_start(&guarded, h, h->arguments->command);
}

/* ---- the election ---- */

static void on_elected(belay_election_t *e, uint64_t term) {
  waiting_pause(&waiting);
  remark("elected, in term %" PRIu64, term);
  run_command(belay_election_data(e));
}

static void on_deposed(belay_election_t *e, belay_lost_t reason) {
  harness_t *h = belay_election_data(e);
  complain("deposed: %s", belay_lost_name(reason));
  deposed = true;
  if (state == RUNNING)
    guarded_check_limits(&guarded); /* on_ended() stands again */
  else if (state != RESIGNING) {
    (void)uv_timer_stop(&pause_timer);
    start_campaign(h);
  }
}

/* Report a campaign that ended with an error. Temporary errors do not end a campaign. */
static void on_campaign_over(belay_election_t *e, int status) {
  if (status != BELAY_ECANCELED)
    harness_ok(belay_election_data(e), status);
}

static void start_campaign(harness_t *h) {
  state = STANDING;
  deposed = false;
  if (harness_ok(h, belay_election_campaign(election, on_campaign_over)))
    waiting_start(&waiting, h);
}

/* ---- observing ---- */

static bool write_leader(const harness_t *h, const belay_leader_t *leader) {
  char term[24];
  (void)snprintf(term, sizeof term, "%" PRIu64, leader->term);
  out_begin();
  out_string("name", h->arguments->item[0]);
  if (leader->term != 0) {
    out_text("leader", leader->value, leader->value_len);
    out_string("term", term);
    out_say("%s leads, term %s", out_shown(leader->value, leader->value_len), term);
  } else {
    out_null("leader");
    out_null("term");
    out_say("no leader");
  }
  return out_end();
}

static void on_observe(belay_election_t *e, int status, const belay_leader_t *leader) {
  harness_t *h = belay_election_data(e);
  unknown = status;
  if (status == 0 && !harness_is_done(h) && !write_leader(h, leader))
    harness_done(h, STATUS_TROUBLE);
}

/* Return the error if no server answers, or NULL. An observer reports nothing else. */
static const char *observe_error(void) {
  static char words[OUT_SHOWN_MAX + 160];
  (void)snprintf(words, sizeof words, "%s: %s", harness_url(0), belay_strerror(unknown));
  return unknown != 0 ? words : NULL;
}

static void observe(harness_t *h) {
  state = OBSERVING;
  if (!harness_ok(h, belay_election_observe(election, 1)))
    return;
  waiting.trouble = observe_error;
  belay_election_ref(election);
  waiting_start(&waiting, h);
}

/* ---- the beginning ---- */

/* Return what is wrong with the options, or NULL. */
static const char *wrong(const harness_t *h) {
  bool runs = h->arguments->command != NULL;
  if (*h->arguments->item[0] == '\0' || strlen(h->arguments->item[0]) > 1024)
    return "NAME: 1 to 1024 bytes";
  if (runs == asked.observe)
    return "give either a command behind --, or --observe";
  if (common.json && !asked.observe)
    return "--json needs --observe";
  return guarded_set_grace(asked.ttl_ms, &asked.grace_ms);
}

static int new_election(harness_t *h) {
  char host[256] = "";
  belay_election_options_t options;
  belay_election_options_init(&options);
  (void)gethostname(host, sizeof host - 1);
  options.value = belay_string(asked.as != NULL ? asked.as : host);
  options.ttl_ms = asked.ttl_ms;
  options.on_elected = on_elected;
  options.on_deposed = on_deposed;
  options.on_observe = on_observe;
  options.notice_break = true;
  options.data = h;
  return belay_election_new(h->client[0], belay_string(h->arguments->item[0]), &options, &election);
}

static void begin_leader(harness_t *h) {
  if (wrong(h) != NULL) {
    harness_refuse(h, wrong(h));
    return;
  }
  if (!harness_ok(h, new_election(h)))
    return;
  (void)uv_timer_init(&h->loop, &pause_timer);
  pause_timer.data = h;
  if (asked.observe)
    observe(h);
  else
    start_campaign(h);
}

static const option_t options[] = {
    DURATION("ttl", 100, DAY_MS, &asked.ttl_ms,
             "duration of the lease, which is renewed while this machine leads. If the "
             "leader's machine fails, there is no leader until the lease ends; default 30s"),
    GUARDED_GRACE_OPTION(&asked.grace_ms),
    DURATION("restart", 0, DAY_MS, &asked.restart_ms,
             "stay leader when the command ends, and start it again after this time; default: "
             "resign, so that another machine leads"),
    TEXT("as", "TEXT", &asked.as,
         "name of this leader, up to 256 bytes; default: the machine's name"),
    FLAG("observe", &asked.observe,
         "instead of running a command: print the leader, now and at each change"),
    {0},
};

const command_t leader_command = {
    .name = "leader",
    .arguments = "NAME",
    .summary = "keep a command running on exactly one of many machines",
    .text = "Run this on each of the machines. One of them is elected and runs the command; the "
            "others wait. A leader that cannot renew its lease in time ends the command, as belay "
            "exec does, and stands for election again. If no server answers, belay reports that "
            "every minute and keeps waiting.\n\n"
            "When the command ends by itself, belay resigns and ends with the command's status. "
            "With --restart, belay stays leader and starts the command again. A signal goes to the "
            "command, and belay ends with the command. While belay resigns it ignores one signal; "
            "a second signal ends it.\n\n"
            "The environment of the command contains BELAY_NAME and BELAY_FENCE, the number of the "
            "term, which is larger for each leader. For leadership that survives the loss of a "
            "server, use belay exec --redlock.\n\n"
            "--observe reports the leader shortly after each change. Its output is news, not a "
            "permission to act: only the command runs under the lease.",
    .examples = EXAMPLES(
        {"Run one scheduler among all machines",
         "belay leader scheduler --restart 1s -- ./scheduler"},
        {"Print the leader, now and at each change", "belay leader scheduler --observe"},
        {"Point the proxy at each new leader", "belay leader db --observe --json | while read -r "
                                               "change; do ./repoint \"$change\"; done"}),
    .options = options,
    .runs = RUNS_MAYBE,
    .what = "cannot stand for election",
    .begin = begin_leader,
    .stop = on_signal,
    .tidy = free_state,
};

/* `belay leader`: a command that runs on exactly one of many machines.
 *
 *   STANDING --elected--> RUNNING --the command has ended--> RESIGNING --> done; with --restart: PAUSING
 *      ^                   |  ^                                             |
 *      |  deposed: the     |  +---------- the pause is over ----------------+
 *      |  keeper ends it   |                                                |
 *      +-------------------+----------- deposed ----------------------------+
 *      +-- deposed: elected, but stopped for so long meanwhile that we are not told
 *
 * A command that was ended since renewal was late, where we lead all the same in the end, is PAUSING too.
 *
 * A signal: STANDING and PAUSING end; RUNNING hands it on, and then ends as the command does; RESIGNING goes on in spite
 * of the first one. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "errand.h"

#define LOOK_MS 100

static struct {
  int64_t ttl_ms, grace_ms, restart_ms;
  const char *as;
} asked = {.ttl_ms = 30000, .restart_ms = -1};

static belay_election_t *election;
static errand_t errand;
static uv_timer_t pause_timer;
static enum { STANDING, RUNNING, PAUSING, RESIGNING } state;
static bool deposed;  /* since it was elected */
static bool stopping; /* somebody wants us to end */

static void stand(harness_t *h);
static void run_command(harness_t *h);

/* ---- the end ------------------------------------------------------------------------------------------- */

static void on_resigned(belay_election_t *e, int status) {
  harness_t *h = belay_election_data(e);
  if (status == BELAY_ENOTOWNER)
    complain("deposed: %s", belay_lost_name(BELAY_LOST_TAKEN));
  else if (status != 0 && status != BELAY_ECANCELED)
    harness_complain(h, "not given up, so that nobody leads until the lease ends", status);
  harness_done(h, errand.status);
}

static void finish(harness_t *h) {
  uv_close((uv_handle_t *)&pause_timer, NULL);
  state = RESIGNING;
  if (belay_election_resign(election, on_resigned) != 0)
    harness_done(h, errand.status); /* it does not lead */
}

static void stop(harness_t *h, int signum) {
  stopping = true;
  if (state == STANDING || state == PAUSING) {
    errand.status = STATUS_SIGNAL + signum;
    errand.urged = true;
    finish(h);
  } else if (!errand_take(&errand, signum))
    harness_done(h, STATUS_SIGNAL + signum);
}

/* ---- the command --------------------------------------------------------------------------------------- */

static int64_t left_us(void *data) {
  (void)data;
  return belay_election_remaining_us(election);
}

static void pause_for(int64_t ms);

/* A lease that is nearly over is no time to start: it is renewed soon, or we are deposed. */
static void on_pause_over(uv_timer_t *timer) {
  if (left_us(NULL) > 2000 * asked.grace_ms)
    run_command(timer->data);
  else
    pause_for(LOOK_MS);
}

static void pause_for(int64_t ms) {
  state = PAUSING;
  (void)uv_timer_start(&pause_timer, on_pause_over, (uint64_t)ms, 0);
}

static void on_ended(errand_t *e) {
  harness_t *h = e->harness;
  bool lost = (e->overdue || deposed) && e->started;
  if (stopping || !e->started || (!lost && asked.restart_ms < 0)) {
    finish(h);
    return;
  }
  remark("the command has ended with status %d", e->status);
  if (deposed)
    stand(h);
  else
    pause_for(lost ? LOOK_MS : asked.restart_ms);
}

static void run_command(harness_t *h) {
  char term[24];
  (void)snprintf(term, sizeof term, "%" PRIu64, belay_election_term(election));
  (void)setenv("BELAY_NAME", h->arguments->item[0], 1);
  (void)setenv("BELAY_FENCE", term, 1);
  (void)unsetenv("BELAY_DEADLINE");
  state = RUNNING;
  errand = (errand_t){.left = left_us, .grace_ms = asked.grace_ms, .on_end = on_ended};
  errand_start(&errand, h, h->arguments->command);
}

/* ---- the election -------------------------------------------------------------------------------------- */

static void on_elected(belay_election_t *e, uint64_t term) {
  remark("elected, in term %" PRIu64, term);
  run_command(belay_election_data(e));
}

static void on_deposed(belay_election_t *e, belay_lost_t reason) {
  harness_t *h = belay_election_data(e);
  complain("deposed: %s", belay_lost_name(reason));
  deposed = true;
  if (state == RUNNING)
    errand_look(&errand); /* stands again when the command is gone */
  else if (state != RESIGNING) {
    (void)uv_timer_stop(&pause_timer);
    stand(h);
  }
}

/* What passes is sat out. */
static void on_campaign_over(belay_election_t *e, int status) {
  harness_t *h = belay_election_data(e);
  if (status == 0 || status == BELAY_ECANCELED)
    return;
  uv_close((uv_handle_t *)&pause_timer, NULL);
  harness_fail(h, "cannot stand", status);
}

static void stand(harness_t *h) {
  state = STANDING;
  deposed = false;
  int error = belay_election_campaign(election, on_campaign_over);
  if (error == 0)
    return;
  uv_close((uv_handle_t *)&pause_timer, NULL);
  harness_fail(h, "cannot stand", error);
}

/* ---- the beginning ------------------------------------------------------------------------------------- */

static void begin(harness_t *h) {
  const char *name = h->arguments->item[0];
  char host[256] = "";
  const char *wrong = errand_grace(asked.ttl_ms, &asked.grace_ms);
  if (wrong != NULL) {
    harness_refuse(h, wrong);
    return;
  }
  belay_election_options_t options;
  belay_election_options_init(&options);
  (void)gethostname(host, sizeof host - 1);
  options.value = asked.as != NULL ? asked.as : host;
  options.value_len = strlen(options.value);
  options.ttl_ms = asked.ttl_ms;
  options.on_elected = on_elected;
  options.on_deposed = on_deposed;
  options.data = h;
  int error = belay_election_new(h->client, 1, name, strlen(name), &options, &election);
  if (error != 0) {
    harness_fail(h, "cannot stand", error);
    return;
  }
  (void)uv_timer_init(&h->loop, &pause_timer);
  pause_timer.data = h;
  stand(h);
}

static const option_t options[] = {
    {.name = "ttl",
     .kind = OPTION_DURATION,
     .value = "DURATION",
     .to.number = &asked.ttl_ms,
     .min = 100,
     .max = DAY_MS,
     .help = "the lease, renewed while it leads: if the leader's machine dies there is none for so "
             "long; default 30s"},
    ERRAND_GRACE_OPTION(&asked.grace_ms),
    {.name = "restart",
     .kind = OPTION_DURATION,
     .value = "DURATION",
     .to.number = &asked.restart_ms,
     .max = DAY_MS,
     .help = "start the command again so long after it has ended, and lead meanwhile; default: "
             "another machine's turn"},
    {.name = "as",
     .kind = OPTION_TEXT,
     .value = "TEXT",
     .to.text = &asked.as,
     .help = "what it calls itself while it leads, up to 256 bytes; default: the machine's name"},
    {0},
};

const command_t leader_command = {
    .name = "leader",
    .arguments = "NAME",
    .summary = "keep a command running on exactly one of many machines",
    .text =
        "Each of the machines runs this. One of them is elected, and runs the command; the others "
        "wait. A leader that is deposed, since it hears nothing of the server for too long, has "
        "ended the command by then, as belay exec does, and stands again. A server that is away is "
        "waited for.\n\n"
        "When the command ends by itself belay gives up leadership, so that another machine "
        "runs it, and ends with its status: whoever started belay may start it again. With "
        "--restart it starts the command again itself. A signal goes to the command, and belay "
        "ends with it. While leadership is given up one changes nothing; a second one ends "
        "that.\n\n"
        "The command finds in its environment BELAY_NAME, and BELAY_FENCE, the number of the term: "
        "larger for each leader. For leadership that outlasts the loss of a server there is belay "
        "exec --redlock.",
    .examples = (const example_t[]){{"One scheduler, wherever it is",
                                     "belay leader scheduler --restart 1s -- ./scheduler"},
                                    {0}},
    .options = options,
    .least = 1,
    .most = 1,
    .runs = RUNS_ALWAYS,
    .urls = 1,
    .begin = begin,
    .stop = stop,
};

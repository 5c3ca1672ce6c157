/* `belay once`: a command that is run once for each key.
 *
 *   ASKING --nobody has it--> RUNNING --status 0--> REMEMBERING --> done
 *     |                        |  |
 *     +-- done before: 0       |  +-- another status, or a signal: GIVING_BACK --> done
 *     +-- runs elsewhere: 121  +-- not extended in time, or taken over: the keeper ends it, 122
 *
 * A signal: RUNNING hands it on; REMEMBERING and GIVING_BACK go on in spite of the first one.
 *
 * While it runs the record is extended each third of its time. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "errand.h"

#define US_NS 1000

static struct {
  int64_t for_ms, ttl_ms, grace_ms;
  const char *name;
  bool forget;
} asked = {.for_ms = DAY_MS, .ttl_ms = 30000, .name = ""};

static belay_idempotency_t *records;
static belay_idempotency_token_t token;
static belay_request_t begin_request, extend_request, end_request;
static errand_t errand;
static uv_timer_t extend_timer;
static int64_t until; /* keeper_now(): it is ours for so long */
static bool taken, extending;
static size_t key_len;

static const char *key_of(const harness_t *h) {
  return h->arguments->item[0];
}

/* ---- the end ------------------------------------------------------------------------------------------- */

static void on_finished(belay_request_t *r, int status, const belay_idempotency_state_t *state) {
  harness_t *h = r->data;
  (void)state;
  if (status == 0)
    harness_done(h, STATUS_YES);
  else if (status == BELAY_ENOTOWNER) {
    complain("the command ran too long: another one has begun");
    harness_done(h, STATUS_LOST);
  } else {
    harness_complain(h, "the command has done its work, but that is not remembered", status);
    harness_done(h, STATUS_TROUBLE);
  }
}

static void on_abandoned(belay_request_t *r, int status, const belay_idempotency_state_t *state) {
  harness_t *h = r->data;
  (void)state;
  if (status != 0 && status != BELAY_ENOTOWNER && status != BELAY_ECANCELED)
    harness_complain(h, "not given back, so that it is not run again before its time is over",
                     status);
  harness_done(h, errand.status);
}

static void conclude(harness_t *h) {
  static const char done[] = "0";
  const char *key = key_of(h);
  if (belay_request_cancel(&extend_request) != 0)
    extending = false; /* it was not pending */
  uv_close((uv_handle_t *)&extend_timer, NULL);
  end_request.data = h;
  int error =
      errand.status == STATUS_YES
          ? belay_idempotency_finish(records, &end_request, key, key_len, &token, done,
                                     sizeof done - 1, asked.for_ms, on_finished)
          : belay_idempotency_abandon(records, &end_request, key, key_len, &token, on_abandoned);
  harness_fail(h, "cannot say how it ended", error);
}

static void on_ended(errand_t *e) {
  if ((e->overdue || taken) && e->started)
    errand_lose(e, taken ? "another one has begun" : "it could not be extended in time");
  conclude(e->harness);
}

static void stop(harness_t *h, int signum) {
  if (!errand_take(&errand, signum))
    harness_done(h, STATUS_SIGNAL + signum);
}

/* ---- the command --------------------------------------------------------------------------------------- */

static int64_t left_us(void *data) {
  (void)data;
  int64_t left = (until - keeper_now()) / US_NS;
  return left > 0 && !taken ? left : 0;
}

/* A record tells how long from now, and counts from when the request was sent. The server's clock may run faster than
 * ours: as much is taken off as from a lock's lease. */
static void hold(const belay_idempotency_state_t *state) {
  until = keeper_now() + (state->remaining_ms - asked.ttl_ms / 100 - 2) * US_NS * 1000;
}

static void on_extended(belay_request_t *r, int status, const belay_idempotency_state_t *state) {
  (void)r;
  extending = false;
  if (status == BELAY_ENOTOWNER)
    taken = true;
  else if (status == 0)
    hold(state);
  if (errand_runs(&errand))
    errand_look(&errand);
}

static void on_extend_timer(uv_timer_t *timer) {
  harness_t *h = timer->data;
  if (extending || taken)
    return;
  extend_request.data = h;
  extending = belay_idempotency_extend(records, &extend_request, key_of(h), key_len, &token,
                                       asked.ttl_ms, on_extended) == 0;
}

static void run_command(harness_t *h, const belay_idempotency_state_t *state) {
  uint64_t third = (uint64_t)asked.ttl_ms / 3;
  token = state->token;
  hold(state);
  if (state->outcome == BELAY_IDEMPOTENCY_TAKEN_OVER)
    remark("somebody has begun before, and has not ended in time");
  (void)setenv("BELAY_NAME", key_of(h), 1);
  (void)unsetenv("BELAY_FENCE"); /* of a belay around this one */
  (void)unsetenv("BELAY_DEADLINE");
  (void)uv_timer_init(&h->loop, &extend_timer);
  extend_timer.data = h;
  (void)uv_timer_start(&extend_timer, on_extend_timer, third, third);
  errand = (errand_t){.left = left_us, .grace_ms = asked.grace_ms, .on_end = on_ended};
  errand_start(&errand, h, h->arguments->command);
}

/* ---- the beginning ------------------------------------------------------------------------------------- */

/* Standard output is the command's: what is said to people in its stead does not go there. */
static void say(bool done, const char *owner, int64_t ms) {
  char left[UNITS_DURATION_MAX];
  if (common.quiet)
    return;
  if (done && ms < 0)
    complain("done already, by %s; remembered for ever", owner);
  else
    complain(done ? "done already, by %s; remembered for %s"
                  : "runs already, at %s, for at least %s",
             owner, units_show_duration(left, ms > 1000 ? ms - ms % 1000 : ms));
}

static void tell(const harness_t *h, const belay_idempotency_state_t *state) {
  bool done = state->outcome == BELAY_IDEMPOTENCY_DONE;
  int64_t ms = state->remaining_ms;
  if (!common.json) {
    say(done, out_shown(state->owner, strlen(state->owner)), ms);
    return;
  }
  out_begin();
  out_string("key", key_of(h));
  out_string("outcome", done ? "done" : "running");
  out_string("owner", state->owner);
  if (ms < 0)
    out_null("remaining_ms");
  else
    out_duration("remaining_ms", ms);
  (void)out_end();
}

static void on_begun(belay_request_t *r, int status, const belay_idempotency_state_t *state) {
  harness_t *h = r->data;
  if (status != 0) {
    harness_fail(h, "cannot begin", status);
    return;
  }
  if (state->outcome == BELAY_IDEMPOTENCY_STARTED ||
      state->outcome == BELAY_IDEMPOTENCY_TAKEN_OVER) {
    run_command(h, state);
    return;
  }
  tell(h, state);
  harness_done(h, state->outcome == BELAY_IDEMPOTENCY_DONE ? STATUS_YES : STATUS_NOT_ACQUIRED);
}

static void on_forgotten(belay_request_t *r, int status, const belay_idempotency_state_t *state) {
  harness_t *h = r->data;
  if (status != 0) {
    harness_fail(h, "cannot forget", status);
    return;
  }
  out_begin();
  out_string("key", key_of(h));
  out_bool("existed", state->existed);
  out_say("%s", state->existed ? "forgotten" : "not there");
  (void)out_end();
  harness_done(h, state->existed ? STATUS_YES : STATUS_NO);
}

static void begin(harness_t *h) {
  const char *key = key_of(h);
  bool runs = h->arguments->command != NULL;
  const char *wrong = runs == asked.forget ? "either a command behind --, or --forget"
                                           : errand_grace(asked.ttl_ms, &asked.grace_ms);
  if (wrong != NULL) {
    harness_refuse(h, wrong);
    return;
  }
  belay_idempotency_options_t options;
  belay_idempotency_options_init(&options);
  options.name = asked.name;
  options.name_len = strlen(asked.name);
  options.deadline_ms = asked.ttl_ms;
  key_len = strlen(key);
  begin_request.data = h;
  int error = belay_idempotency_new(h->client[0], &options, &records);
  if (error == 0)
    error = asked.forget
                ? belay_idempotency_forget(records, &begin_request, key, key_len, on_forgotten)
                : belay_idempotency_begin(records, &begin_request, key, key_len, NULL, 0,
                                          asked.ttl_ms, on_begun);
  harness_fail(h, "cannot begin", error);
}

static const option_t options[] = {
    {.name = "for",
     .kind = OPTION_DURATION,
     .value = "DURATION",
     .to.number = &asked.for_ms,
     .min = 1000,
     .max = YEAR_MS,
     .help = "for how long it is remembered that the command was run; default 1d"},
    {.name = "ttl",
     .kind = OPTION_DURATION,
     .value = "DURATION",
     .to.number = &asked.ttl_ms,
     .min = 100,
     .max = DAY_MS,
     .help = "renewed while it runs: if this machine dies another one may run it after so long; "
             "default 30s"},
    ERRAND_GRACE_OPTION(&asked.grace_ms),
    {.name = "name",
     .kind = OPTION_TEXT,
     .value = "NAME",
     .to.text = &asked.name,
     .help = "what the keys are of: others may have the same KEY under another NAME"},
    {.name = "forget",
     .kind = OPTION_FLAG,
     .to.flag = &asked.forget,
     .help = "instead of running a command: forget that one was run; the status is 1 if none was"},
    {0},
};

const command_t once_command = {
    .name = "once",
    .arguments = "KEY",
    .summary = "run a command unless that was done before, on whatever machine",
    .text =
        "If the command ends with status 0 it is remembered, and whoever comes with the same KEY "
        "is told so on standard error (with --json on standard output): \"done already\", and "
        "status 0. If it ends otherwise, or by a signal, nothing "
        "is remembered, and whoever comes next runs it. While it runs elsewhere the status is "
        "121.\n\n"
        "That a command is run and that this is remembered are two steps: where a machine dies "
        "between them the command is run again. If belay cannot extend its claim while the "
        "command runs it ends the command in time, as belay exec does, with status 122. The "
        "command finds BELAY_NAME, the KEY, in its environment.",
    .examples =
        (const example_t[]){{"The month's invoices, however often cron is told",
                             "belay once invoices-$(date +%Y-%m) --for 60d -- send-invoices"},
                            {"Once more, please", "belay once invoices-$(date +%Y-%m) --forget"},
                            {0}},
    .options = options,
    .least = 1,
    .most = 1,
    .runs = RUNS_MAYBE,
    .urls = 1,
    .reports = true,
    .begin = begin,
    .stop = stop,
};

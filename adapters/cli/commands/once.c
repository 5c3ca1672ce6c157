/* `belay once`: run a command once for each key.
 *
 *   ASKING --no record--> RUNNING --status 0--> REMEMBERING --> DONE
 *    ^ |                   |  |
 *    | +-- done before: 0  |  +-- another status, or a signal: GIVING_BACK --> DONE
 *    | +-- runs elsewhere: +-- not extended in time, taken over, or forgotten: the supervisor ends
 *    |     121                 the command, 122
 *    v
 *   WAITING (runs elsewhere, and --wait is not over)
 *
 * A signal ends ASKING and WAITING. RUNNING forwards it to the command. REMEMBERING and GIVING_BACK
 * ignore the first signal.
 *
 * While the command runs, belay extends the record each third of its time. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "run/guarded_command.h"
#include "query/query.h"

#define US_NS 1000

/* Longest pause between two queries about a run elsewhere, in milliseconds. A pause is at least
 * half of it. */
#define ASK_AGAIN_MS 1000

static struct {
  int64_t for_ms, ttl_ms, grace_ms, wait_ms, conflict;
  const char *name;
  bool forget, yes;
} asked = {.for_ms = DAY_MS, .ttl_ms = 30000, .name = "", .conflict = STATUS_NOT_ACQUIRED};

static belay_idempotency_t *records;
static belay_idempotency_token_t token;
static belay_request_t extend_request;
static guarded_t guarded;
static uv_timer_t extend_timer, wait_timer;
static uint64_t wait_until; /* uv_now(); UINT64_MAX: no limit */
static int64_t until;       /* supervisor_now() when this process's claim ends */
static const char *taken;   /* the reason why this process's claim was lost; NULL while it holds */
static bool extending;

/* ---- the end ---- */

/* Describe the record of a claim that was lost. */
static const char *why_taken(const belay_idempotency_state_t *state) {
  return state->outcome == BELAY_IDEMPOTENCY_ABSENT
             ? "its record is gone: forgotten (--forget), or lost by the server"
             : "another process has begun";
}

static void complain_not_remembered(const char *why) {
  complain("the command succeeded, but belay cannot remember it: %s", why);
}

static int begin_finish(harness_t *h, belay_idempotency_cb cb);

static void on_finished_again(belay_request_t *r, int status,
                              const belay_idempotency_state_t *state) {
  harness_t *h = r->data;
  if (harness_is_done(h))
    return;
  if (status == 0) {
    harness_done(h, STATUS_YES);
  } else if (status == BELAY_ENOTOWNER) {
    complain_not_remembered(why_taken(state));
    harness_done(h, STATUS_LOST);
  } else {
    harness_complain(h, "the command succeeded; it is unknown whether that is remembered", status);
    harness_done(h, STATUS_TROUBLE);
  }
}

/* If the outcome is unknown, a second finish reports it. */
static void on_finished(belay_request_t *r, int status, const belay_idempotency_state_t *state) {
  harness_t *h = r->data;
  if (harness_is_done(h))
    return;
  if (status != BELAY_EUNKNOWN || begin_finish(h, on_finished_again) != 0)
    on_finished_again(r, status, state);
}

static int begin_finish(harness_t *h, belay_idempotency_cb cb) {
  static const char done[] = "0";
  return belay_idempotency_finish(
      records, &h->request, h->items[0], &token,
      &(belay_idempotency_finish_t){.result = belay_bytes(done, sizeof done - 1),
                                    .ttl_ms = asked.for_ms},
      cb);
}

static void on_abandoned(belay_request_t *r, int status, const belay_idempotency_state_t *state) {
  harness_t *h = r->data;
  (void)state;
  if (status != 0 && status != BELAY_ENOTOWNER && status != BELAY_ECANCELED)
    harness_complain(h,
                     "cannot give back the record: the command cannot run again before the "
                     "record's time is over",
                     status);
  harness_done(h, guarded.status);
}

static void finish_or_abandon(harness_t *h) {
  if (belay_request_cancel(&extend_request) != 0)
    extending = false; /* the extend request was not pending */
  uv_close((uv_handle_t *)&extend_timer, NULL);
  int error =
      guarded.status == STATUS_YES
          ? begin_finish(h, on_finished)
          : belay_idempotency_abandon(records, &h->request, h->items[0], &token, on_abandoned);
  harness_fail(h, "cannot record how the command ended", error);
}

static void on_ended(guarded_t *e) {
  if ((e->overdue || taken != NULL) && e->started)
    guarded_set_lost(e, taken != NULL ? taken : "the record could not be extended in time");
  finish_or_abandon(e->harness);
}

static void free_state(void) {
  if (wait_timer.data != NULL)
    uv_close((uv_handle_t *)&wait_timer, NULL);
}

static void on_signal(harness_t *h, int signum) {
  if (!guarded_on_signal(&guarded, signum))
    harness_done(h, STATUS_SIGNAL + signum);
}

/* ---- the command ---- */

static int64_t left_us(void *data) {
  (void)data;
  int64_t left = (until - supervisor_now()) / US_NS;
  return left > 0 && taken == NULL ? left : 0;
}

/* Set the end of the claim. The record gives the time that is left, counted from when the request
 * was sent. The server's clock may be faster than this machine's: subtract the same margin as for a
 * lock's lease. */
static void set_claim_end(const belay_idempotency_state_t *state) {
  until = supervisor_now() + (state->remaining_ms - asked.ttl_ms / 100 - 2) * US_NS * 1000;
}

static void on_extended(belay_request_t *r, int status, const belay_idempotency_state_t *state) {
  (void)r;
  extending = false;
  if (status == BELAY_ENOTOWNER)
    taken = why_taken(state);
  else if (status == 0)
    set_claim_end(state);
  if (guarded_is_running(&guarded))
    guarded_check_limits(&guarded);
}

static void on_extend_timer(uv_timer_t *timer) {
  harness_t *h = timer->data;
  if (extending || taken != NULL)
    return;
  extend_request.data = h;
  extending = belay_idempotency_extend(records, &extend_request, h->items[0], &token, asked.ttl_ms,
                                       on_extended) == 0;
}

static void run_command(harness_t *h, const belay_idempotency_state_t *state) {
  uint64_t third = (uint64_t)asked.ttl_ms / 3;
  token = state->token;
  set_claim_end(state);
  if (state->outcome == BELAY_IDEMPOTENCY_TAKEN_OVER)
    remark("an earlier run has begun, and has not ended in time");
  guarded_set_environment(h->arguments->item[0], 0, 0);
  (void)uv_timer_init(&h->loop, &extend_timer);
  extend_timer.data = h;
  (void)uv_timer_start(&extend_timer, on_extend_timer, third, third);
  guarded = (guarded_t){.left = left_us, .grace_ms = asked.grace_ms, .on_end = on_ended};
  guarded_start(&guarded, h, h->arguments->command);
}

/* ---- the beginning ---- */

/* Messages go to standard error, because standard output belongs to the command. */
static void print_outcome(bool done, const char *owner, int64_t ms) {
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

static void report_outcome(const harness_t *h, const belay_idempotency_state_t *state) {
  bool done = state->outcome == BELAY_IDEMPOTENCY_DONE;
  int64_t ms = state->remaining_ms;
  if (!common.json) {
    print_outcome(done, out_shown(state->owner, strlen(state->owner)), ms);
    return;
  }
  out_begin();
  out_string("key", h->arguments->item[0]);
  out_string("outcome", done ? "done" : "running");
  out_string("owner", state->owner);
  out_duration("remaining_ms", ms);
  (void)out_end();
}

static void on_begun(belay_request_t *r, int status, const belay_idempotency_state_t *state);

static int ask_for_claim(harness_t *h) {
  return belay_idempotency_begin(records, &h->request, h->items[0], belay_bytes(NULL, 0),
                                 asked.ttl_ms, on_begun);
}

static void on_wait_timer(uv_timer_t *timer) {
  harness_ok(timer->data, ask_for_claim(timer->data));
}

/* Start the timer that asks again. Returns false if the wait is over. */
static bool wait_on(harness_t *h, const belay_idempotency_state_t *state) {
  uint64_t now = uv_now(&h->loop), left = wait_until > now ? wait_until - now : 0;
  unsigned char random = 0;
  char shown[QUERY_TEXT_MAX];
  if (left == 0 || harness_is_done(h))
    return false;
  remark("waiting for %s, %s left", out_shown(state->owner, strlen(state->owner)),
         query_time_left(shown, state->remaining_ms));
  (void)uv_random(NULL, NULL, &random, sizeof random, 0, NULL); /* any number will do */
  uint64_t pause = ASK_AGAIN_MS / 2 + (uint64_t)random * (ASK_AGAIN_MS / 2) / 255;
  (void)uv_timer_start(&wait_timer, on_wait_timer, pause < left ? pause : left, 0);
  return true;
}

static void on_begun(belay_request_t *r, int status, const belay_idempotency_state_t *state) {
  harness_t *h = r->data;
  if (status == 0 && state->outcome == BELAY_IDEMPOTENCY_IN_PROGRESS && wait_on(h, state))
    return;
  if (!harness_ok(h, status))
    return;
  if (state->outcome == BELAY_IDEMPOTENCY_STARTED ||
      state->outcome == BELAY_IDEMPOTENCY_TAKEN_OVER) {
    run_command(h, state);
    return;
  }
  report_outcome(h, state);
  harness_done(h, state->outcome == BELAY_IDEMPOTENCY_DONE ? STATUS_YES : (int)asked.conflict);
}

/* ---- forgetting ---- */

static void on_forgotten(belay_request_t *r, int status, const belay_idempotency_state_t *state) {
  harness_t *h = r->data;
  if (!harness_ok(h, status))
    return;
  out_begin();
  out_string("key", h->arguments->item[0]);
  out_bool("existed", state->existed);
  out_say("%s", state->existed ? "forgotten" : "not found");
  harness_answer(h, state->existed);
}

static int forget(harness_t *h) {
  return belay_idempotency_forget(records, &h->request, h->items[0], on_forgotten);
}

/* If a run is in progress, refuse to forget it, because the command could run twice. */
static void on_read(belay_request_t *r, int status, const belay_idempotency_state_t *state) {
  harness_t *h = r->data;
  if (status == 0 && state->outcome == BELAY_IDEMPOTENCY_IN_PROGRESS && state->remaining_ms > 0) {
    complain("the command runs at %s: nothing was done. --yes forgets it anyway: the next "
             "extend ends that run, and another one may begin before",
             out_shown(state->owner, strlen(state->owner)));
    harness_done(h, STATUS_USAGE);
  } else
    harness_ok(h, status != 0 ? status : forget(h));
}

/* Return what is wrong with the options, or NULL. */
static const char *wrong(const harness_t *h) {
  bool runs = h->arguments->command != NULL;
  if (runs == asked.forget)
    return "give either a command behind --, or --forget";
  if (asked.yes && !asked.forget)
    return "--yes needs --forget";
  return guarded_set_grace(asked.ttl_ms, &asked.grace_ms);
}

static void begin_once(harness_t *h) {
  if (wrong(h) != NULL) {
    harness_refuse(h, wrong(h));
    return;
  }
  belay_idempotency_options_t options;
  belay_idempotency_options_init(&options);
  options.name = belay_string(asked.name);
  options.deadline_ms = asked.ttl_ms;
  if (!harness_ok(h, belay_idempotency_new(h->client[0], &options, &records)))
    return;
  if (asked.forget) {
    harness_ok(h, asked.yes ? forget(h)
                            : belay_idempotency_read(records, &h->request, h->items[0], on_read));
    return;
  }
  (void)uv_timer_init(&h->loop, &wait_timer);
  wait_timer.data = h;
  wait_until =
      asked.wait_ms == BELAY_FOREVER ? UINT64_MAX : uv_now(&h->loop) + (uint64_t)asked.wait_ms;
  harness_ok(h, ask_for_claim(h));
}

static const option_t options[] = {
    DURATION("for", 1000, YEAR_MS, &asked.for_ms,
             "time for which belay remembers that the command was done; default 1d"),
    DURATION("ttl", 100, DAY_MS, &asked.ttl_ms,
             "duration of the claim, which is extended while the command runs. If this machine "
             "fails, another one may run the command after this time; default 30s"),
    GUARDED_GRACE_OPTION(&asked.grace_ms),
    DURATION("wait", 0, YEAR_MS, &asked.wait_ms,
             "maximum time to wait for a run elsewhere, until it is done or until the command "
             "can run here; default 0",
             .letter = 'w', .forever = true),
    GUARDED_CONFLICT_OPTION(&asked.conflict),
    GUARDED_LABEL_OPTION,
    TEXT("name", "NAME", &asked.name,
         "a group of keys: the same KEY under another NAME is a separate record"),
    FLAG("forget", &asked.forget,
         "instead of running a command: forget that it was done; the status is 1 if there is "
         "no record"),
    FLAG("yes", &asked.yes,
         "with --forget: forget the record even while the command runs; without --yes the "
         "status is 2 then",
         .letter = 'y'),
    {0},
};

const command_t once_command = {
    .name = "once",
    .arguments = "KEY",
    .summary = "run a command unless it was done before, on any machine",
    .text = "If the command ends with status 0, belay remembers that under KEY. A later call with "
            "KEY reports \"done already\" on standard error (with --json on standard output), and "
            "its status is 0. After another status or a signal nothing is remembered, and the next "
            "call runs it. While the command runs elsewhere, the status is 121; with --wait belay "
            "waits for that run.\n\n"
            "Running the command and remembering it are two steps: if a machine fails between "
            "them, the command is run again. If belay cannot extend its claim, or KEY is forgotten "
            "meanwhile, it ends the command in time, as belay exec does, with status 122. The "
            "environment of the command contains BELAY_NAME, which is the KEY.\n\n"
            "Use belay once for work that must not be done again, and belay exec for work that may "
            "be done again, but by one machine at a time.",
    .examples =
        EXAMPLES({"Send the month's invoices, however often cron runs",
                  "belay once invoices-$(date +%Y-%m) --for 60d -- send-invoices"},
                 {"Migrate once, before any of the servers starts",
                  "belay once migration-7 --for 365d --wait 10m -- ./migrate && exec ./server"},
                 {"Run it once more", "belay once invoices-$(date +%Y-%m) --forget"}),
    .options = options,
    .runs = RUNS_MAYBE,
    .what = "cannot begin",
    .begin = begin_once,
    .stop = on_signal,
    .tidy = free_state,
};

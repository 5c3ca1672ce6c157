/* `belay limit`: take tokens from a rate limiter. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"

static struct {
  const char *name;
  rate_t rate;
  int64_t burst, cost, wait_ms, ban_ms;
  bool reset;
} asked = {.cost = -1, .wait_ms = -1, .ban_ms = -1};

static belay_limiter_t *limiter;

/* Convert to milliseconds, rounded up so that a caller that returns then is not early. -1 if us is
 * negative: there is no such time. */
static int64_t ms_of(int64_t us) {
  return us < 0 ? -1 : us / 1000 + (us % 1000 > 0);
}

/* Describe a result in words. */
static const char *in_words(const belay_limiter_result_t *result) {
  static char words[64];
  char again[UNITS_DURATION_MAX];
  if (result->verdict == BELAY_ALLOWED)
    (void)snprintf(words, sizeof words, "allowed, %" PRId64 " left", result->remaining);
  else if (result->retry_after_us < 0)
    (void)snprintf(words, sizeof words, "denied");
  else
    (void)snprintf(words, sizeof words, "denied, again in %s",
                   units_show_duration(again, ms_of(result->retry_after_us)));
  return words;
}

/* ---- answers ---- */

static void write_result(harness_t *h, const belay_limiter_result_t *result) {
  out_begin();
  out_string("key", h->arguments->item[0]);
  out_bool("allowed", result->verdict == BELAY_ALLOWED);
  out_number("remaining", result->remaining);
  out_duration("retry_after_ms", ms_of(result->retry_after_us));
  out_duration("waited_ms", ms_of(result->wait_us));
  out_say("%s", in_words(result));
  harness_answer(h, result->verdict == BELAY_ALLOWED);
}

/* Run the command, or report the denial on standard error: standard output belongs to the
 * command. */
static void run_or_deny(harness_t *h, const belay_limiter_result_t *result) {
  if (result->verdict == BELAY_ALLOWED) {
    harness_become(h, h->arguments->command);
    return;
  }
  if (out_form() != OUT_NONE)
    complain("%s", in_words(result));
  harness_done(h, STATUS_NOT_ACQUIRED);
}

static void on_answer(belay_request_t *r, int status, const belay_limiter_result_t *result) {
  harness_t *h = r->data;
  if (result->verdict == BELAY_INDETERMINATE)
    harness_ok(h, status);
  else if (h->arguments->command != NULL)
    run_or_deny(h, result);
  else
    write_result(h, result);
}

static void on_reset(belay_request_t *r, int status, const belay_limiter_result_t *result) {
  harness_t *h = r->data;
  if (result->verdict == BELAY_INDETERMINATE) {
    harness_ok(h, status);
    return;
  }
  out_begin();
  out_string("key", h->arguments->item[0]);
  out_bool("reset", true);
  out_say("reset");
  harness_answer(h, true);
}

static void on_banned(belay_request_t *r, int status, const belay_limiter_result_t *result) {
  harness_t *h = r->data;
  char shown[UNITS_DURATION_MAX];
  if (result->verdict == BELAY_INDETERMINATE) {
    harness_ok(h, status);
    return;
  }
  out_begin();
  out_string("key", h->arguments->item[0]);
  out_duration("banned_ms", asked.ban_ms);
  if (asked.ban_ms == 0)
    out_say("not banned");
  else
    out_say("banned for %s", units_show_duration(shown, asked.ban_ms));
  harness_answer(h, true);
}

/* ---- the beginning ---- */

/* Return what is wrong with the options, or NULL. */
static const char *check_options(const harness_t *h) {
  int64_t burst = asked.burst > 0 ? asked.burst : asked.rate.count;
  bool runs = asked.wait_ms >= 0 || h->arguments->command != NULL;
  bool bans = asked.ban_ms >= 0;
  if (asked.reset && bans)
    return "--reset and --ban exclude each other";
  if ((asked.reset || bans) && (runs || asked.cost >= 0))
    return "--reset and --ban take no tokens: they exclude --cost, --wait and a command";
  if (asked.rate.count == 0 && !asked.reset)
    return "--rate is missing: give a count and a time, such as 10/s";
  if (asked.rate.per_ms > INT64_MAX / 1000)
    return "--rate: its time is too long";
  if (asked.cost > burst)
    return "--cost is more than --burst: it would never be allowed";
  if (asked.cost == 0 && runs)
    return "--cost 0 takes no tokens: it excludes --wait and a command";
  return NULL;
}

static int open_limiter(harness_t *h) {
  /* A reset deletes the key, so its rate does not matter. */
  const belay_limit_t limit = {.kind = BELAY_LIMIT_BUCKET,
                               .count = asked.rate.count > 0 ? asked.rate.count : 1,
                               .period_us =
                                   asked.rate.count > 0 ? asked.rate.per_ms * 1000 : 1000000,
                               .burst = asked.burst};
  belay_limiter_options_t options;
  belay_limiter_options_init(&options);
  options.name = belay_string(asked.name != NULL ? asked.name : "");
  options.limits = &limit;
  options.limits_len = 1;
  return belay_limiter_new(h->client[0], &options, &limiter);
}

static int start_request(harness_t *h, const char *key, size_t len) {
  belay_request_t *r = &h->request;
  int64_t cost = asked.cost < 0 ? 1 : asked.cost;
  if (asked.reset)
    return belay_limiter_reset(limiter, r, belay_bytes(key, len), on_reset);
  if (asked.ban_ms >= 0)
    return belay_limiter_ban(limiter, r, belay_bytes(key, len), asked.ban_ms * 1000, on_banned);
  if (asked.wait_ms >= 0)
    return belay_limiter_wait(limiter, r, belay_bytes(key, len), cost, asked.wait_ms * 1000,
                              on_answer);
  return belay_limiter_take(limiter, r, belay_bytes(key, len), cost, on_answer);
}

static void begin_limit(harness_t *h) {
  const char *wrong = check_options(h);
  if (wrong != NULL)
    harness_refuse(h, wrong);
  else if (harness_ok(h, open_limiter(h)))
    harness_ok(h, start_request(h, h->items[0].data, h->items[0].len));
}

static const option_t limit_options[] = {
    RATE("rate", &asked.rate, "refill rate, as COUNT/TIME: 10/s, 100/min, 5/h, 1000/d, 3/10s",
         .letter = 'r'),
    NUMBER("burst", 1, BELAY_LIMITER_UNITS_MAX, &asked.burst,
           "capacity of the bucket; default: the count of --rate", .letter = 'b'),
    NUMBER("cost", 0, BELAY_LIMITER_UNITS_MAX, &asked.cost,
           "number of tokens to take; 0: only read the state; default 1", .letter = 'c'),
    DURATION("wait", 1, DAY_MS, &asked.wait_ms,
             "wait until it is allowed, if that takes at most this time; without a time, at most "
             "a day",
             .letter = 'w', .bare = true),
    FLAG("reset", &asked.reset, "forget the tokens that were taken, and a ban"),
    DURATION("ban", 0, 10 * YEAR_MS, &asked.ban_ms,
             "deny everything for this time, by the server's clock; 0 lifts a ban"),
    TEXT("name", "NAME", &asked.name,
         "name of the policy, which is part of the keys: a KEY can have several limits"),
    {0},
};

const command_t limit_command = {
    .name = "limit",
    .arguments = "KEY",
    .summary = "limit a rate among all machines: take tokens, or be denied",
    .text = "The server has a token bucket for KEY. It holds up to --burst tokens and is refilled "
            "at --rate; each call takes --cost tokens. The status is 0 if there were enough "
            "tokens, and 1 if not; then nothing was taken. All callers that share a KEY should "
            "give the same rate and burst.\n\n"
            "With --wait belay reserves the tokens, in the order of the requests, and waits for "
            "them. If that would take longer than the given time, the request is denied at once. "
            "If belay is interrupted, it gives the tokens back.\n\n"
            "If a COMMAND is given and allowed, it replaces belay. If it is denied, the status is "
            "121. If no server answers, the status is 120: the caller decides whether that means "
            "yes or no.\n\n"
            "--reset and --ban change KEY, and take no tokens.",
    .examples =
        EXAMPLES({"Send at most ten mails per minute, from all machines together",
                  "belay limit mails --rate 10/min --wait -- sendmail -t < mail"},
                 {"In a script: three tries per hour for each user",
                  "belay limit \"login::$USER\" --rate 3/h --quiet || exit 1"},
                 {"Ban a user for a day", "belay limit \"login::$USER\" --rate 3/h --ban 1d"}),
    .options = limit_options,
    .runs = RUNS_MAYBE,
    .what = "cannot ask",
    .begin = begin_limit,
};

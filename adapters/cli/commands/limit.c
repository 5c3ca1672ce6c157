/* `belay limit`: whether something may be done now. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"

static struct {
  const char *name, *refund;
  rate_t rate;
  int64_t burst, cost, wait_ms, ban_ms;
  bool reset;
} asked = {.cost = -1, .wait_ms = -1, .ban_ms = -1};

static belay_limiter_t *limiter;
static belay_request_t request;

/* Rounded up: who comes back then is not early. */
static int64_t ms_of(int64_t us) {
  return us / 1000 + (us % 1000 > 0);
}

static void out_ms(const char *name, int64_t us) {
  if (us < 0)
    out_null(name);
  else
    out_duration(name, ms_of(us));
}

/* For people. */
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

/* ---- receipts ------------------------------------------------------------------------------------------ */

/* How many tokens it is for, and what the library gave for them. */
#define RECEIPT_WORDS (1 + sizeof(belay_receipt_t) / sizeof(int64_t))
#define RECEIPT_MAX                                                                                \
  (RECEIPT_WORDS * 17) /* bytes of its text: hexadecimal numbers with dots between them */

static const char *receipt_text(const belay_receipt_t *receipt) {
  static char text[RECEIPT_MAX + 1];
  int64_t word[RECEIPT_WORDS] = {asked.cost};
  size_t len = 0, n = RECEIPT_WORDS;
  memcpy(word + 1, receipt, sizeof *receipt);
  while (n > 1 && word[n - 1] == 0)
    n--;
  for (size_t i = 0; i < n; i++)
    len += (size_t)snprintf(text + len, sizeof text - len, "%s%" PRIx64, i > 0 ? "." : "",
                            (uint64_t)word[i]);
  return text;
}

static bool read_receipt(const char *text, belay_receipt_t *out, int64_t *tokens) {
  int64_t word[RECEIPT_WORDS] = {0};
  for (size_t i = 0; i < RECEIPT_WORDS; i++) {
    size_t len = strspn(text, "0123456789abcdef");
    if (len == 0 || len > 16)
      return false;
    word[i] = (int64_t)strtoull(text, NULL, 16);
    text += len;
    if (*text == '\0') {
      memcpy(out, word + 1, sizeof *out);
      *tokens = word[0];
      return word[0] > 0;
    }
    if (*text++ != '.')
      return false;
  }
  return false;
}

/* ---- answers -------------------------------------------------------------------------------------------- */

static void say(const harness_t *h, const belay_limiter_result_t *result) {
  out_begin();
  out_string("key", h->arguments->item[0]);
  out_bool("allowed", result->verdict == BELAY_ALLOWED);
  out_number("remaining", result->remaining);
  out_ms("retry_after_ms", result->retry_after_us);
  out_ms("waited_ms", result->wait_us);
  if (out_form() == OUT_JSON) {
    static const belay_receipt_t none;
    bool has =
        result->verdict == BELAY_ALLOWED && memcmp(&result->receipt, &none, sizeof none) != 0;
    out_string("receipt", has ? receipt_text(&result->receipt) : NULL);
  }
  out_say("%s", in_words(result));
  (void)out_end();
}

/* What a command writes is its own: why it was not run is said beside that. */
static void run_it(harness_t *h, const belay_limiter_result_t *result) {
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
  if (result->verdict == BELAY_INDETERMINATE) {
    harness_fail(h, "cannot ask", status);
    return;
  }
  if (h->arguments->command != NULL) {
    run_it(h, result);
    return;
  }
  say(h, result);
  harness_done(h, result->verdict == BELAY_ALLOWED ? STATUS_YES : STATUS_NO);
}

/* ---- the beginning ------------------------------------------------------------------------------------- */

/* How many of them that exclude each other were given. */
static int changes(void) {
  return asked.reset + (asked.ban_ms >= 0) + (asked.refund != NULL);
}

/* What is wrong with what was asked for; NULL: nothing. */
static const char *check(const harness_t *h) {
  int64_t burst = asked.burst > 0 ? asked.burst : asked.rate.count;
  bool runs = asked.wait_ms >= 0 || h->arguments->command != NULL;
  if (changes() > 1)
    return "--reset, --ban and --refund exclude each other";
  if (changes() == 1 && (runs || asked.cost >= 0))
    return "--reset, --ban and --refund take nothing: there is no --cost, nothing to wait for, or "
           "to "
           "run";
  if (asked.rate.count == 0 && !asked.reset)
    return "--rate is missing: how much in what time";
  if (asked.rate.per_ms > INT64_MAX / 1000)
    return "--rate: its time is too long";
  if (asked.cost > burst)
    return "--cost is more than --burst: that would never be allowed";
  if (asked.cost == 0 && runs)
    return "--cost 0 only looks: there is nothing to wait for, or to run";
  return NULL;
}

static int open_limiter(harness_t *h) {
  /* A reset deletes the key, whatever the rate. */
  const belay_limit_t limit = {.kind = BELAY_LIMIT_BUCKET,
                               .count = asked.rate.count > 0 ? asked.rate.count : 1,
                               .period_us =
                                   asked.rate.count > 0 ? asked.rate.per_ms * 1000 : 1000000,
                               .burst = asked.burst};
  belay_limiter_options_t options;
  belay_limiter_options_init(&options);
  options.name = asked.name != NULL ? asked.name : "";
  options.name_len = strlen(options.name);
  options.limits = &limit;
  options.limits_len = 1;
  request.data = h;
  return belay_limiter_new(h->client[0], &options, &limiter);
}

/* ---- reset, ban, refund -------------------------------------------------------------------------------- */

static void on_changed(belay_request_t *r, int status, const belay_limiter_result_t *result) {
  harness_t *h = r->data;
  char shown[UNITS_DURATION_MAX];
  if (result->verdict == BELAY_INDETERMINATE) {
    harness_fail(h, "cannot change", status);
    return;
  }
  out_begin();
  out_string("key", h->arguments->item[0]);
  if (asked.refund != NULL) {
    out_fraction("returned", result->returned);
    out_say("%.3g given back", result->returned);
  } else if (asked.reset) {
    out_bool("reset", true);
    out_say("reset");
  } else {
    out_duration("banned_ms", asked.ban_ms);
    if (asked.ban_ms == 0)
      out_say("not banned");
    else
      out_say("banned for %s", units_show_duration(shown, asked.ban_ms));
  }
  (void)out_end();
  harness_done(h, asked.refund != NULL && !(result->returned > 0) ? STATUS_NO : STATUS_YES);
}

static int change(const char *key) {
  belay_receipt_t receipt;
  int64_t tokens;
  if (asked.reset)
    return belay_limiter_reset(limiter, &request, key, strlen(key), on_changed);
  if (asked.ban_ms >= 0)
    return belay_limiter_ban(limiter, &request, key, strlen(key), asked.ban_ms * 1000, on_changed);
  if (!read_receipt(asked.refund, &receipt, &tokens))
    return BELAY_EINVAL; /* check() has refused it */
  return belay_limiter_refund(limiter, &request, key, strlen(key), &receipt, tokens, on_changed);
}

/* ---- the beginning ------------------------------------------------------------------------------------- */

static void begin(harness_t *h) {
  const char *key = h->arguments->item[0], *wrong = check(h);
  belay_receipt_t receipt;
  int64_t tokens;
  if (wrong == NULL && asked.refund != NULL && !read_receipt(asked.refund, &receipt, &tokens))
    wrong = "--refund: that is no receipt; --json writes the receipt of what was taken";
  if (wrong != NULL) {
    harness_refuse(h, wrong);
    return;
  }
  if (asked.cost < 0)
    asked.cost = 1;
  int error = open_limiter(h);
  if (error == 0 && changes() > 0)
    error = change(key);
  else if (error == 0 && asked.wait_ms >= 0)
    error = belay_limiter_wait(limiter, &request, key, strlen(key), asked.cost,
                               asked.wait_ms * 1000, on_answer);
  else if (error == 0)
    error = belay_limiter_take(limiter, &request, key, strlen(key), asked.cost, on_answer);
  harness_fail(h, "cannot ask", error);
}

static const option_t limit_options[] = {
    RATE("rate", &asked.rate, "how much comes in what time: 10/s, 100/min, 5/h, 1000/d, 3/10s",
         .letter = 'r'),
    NUMBER("burst", 1, BELAY_LIMITER_UNITS_MAX, &asked.burst,
           "how much may be saved up; default: as much as comes in that time", .letter = 'b'),
    NUMBER("cost", 0, BELAY_LIMITER_UNITS_MAX, &asked.cost,
           "so much is taken; 0: only look; default 1", .letter = 'c'),
    DURATION("wait", 1, DAY_MS, &asked.wait_ms,
             "until it is allowed, if that is within this time; default, if none is given: a day",
             .letter = 'w', .bare = true, .value = "[DURATION]"),
    FLAG("reset", &asked.reset, "forget what was taken, and a ban"),
    DURATION("ban", 0, 10 * YEAR_MS, &asked.ban_ms,
             "deny everything for this time, by the server's clock; 0 lifts a ban"),
    TEXT("refund", "RECEIPT", &asked.refund,
         "give back what was taken: the receipt is in what --json wrote then, and good for one "
         "refund; the status is 1 if nothing could be given back"),
    TEXT("name", "NAME", &asked.name,
         "of which policy: part of the keys, so that KEY may be limited in several ways"),
    {0},
};

const command_t limit_command = {
    .name = "limit",
    .arguments = "KEY",
    .summary = "whether something may be done now: so much in so long, among all machines",
    .text =
        "A token bucket for KEY on the server: it holds --burst and is filled at --rate, and what "
        "is "
        "done takes --cost. The status is 0 if there was enough, and 1 if not: nothing was taken "
        "then. Those who share a KEY should say the same rate and burst."
        "\n\n"
        "With --wait it is reserved, in the order in which the server was asked, and the time "
        "waited "
        "out; what would not come within that time is denied at once. Who is interrupted gives it "
        "back."
        "\n\n"
        "A COMMAND is run in the place of belay when it is allowed: its status is the command's. "
        "Otherwise that is 121, so that it can be told from the command's own. With no server it "
        "is "
        "120: whether that means yes or no is yours to decide.\n\n"
        "--reset, --ban and --refund change KEY, and take nothing.",
    .examples =
        EXAMPLES({"At most ten mails in a minute, whoever sends them",
                  "belay limit mails --rate 10/min --wait -- sendmail -t < mail"},
                 {"In a script: three tries in an hour for each user",
                  "belay limit \"login::$USER\" --rate 3/h --quiet || exit 1"},
                 {"No tries for a day", "belay limit \"login::$USER\" --rate 3/h --ban 1d"}),
    .options = limit_options,
    .runs = RUNS_MAYBE,
    .begin = begin,
};

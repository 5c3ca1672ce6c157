/* `belay sweep`: delete the keys that match a pattern.
 *
 *   CHECKING: is something held? --no--> DELETING --> write the totals
 *      |  |
 *      |  +--yes: refuse
 *      +--skipped with --held, or if no key of a lock can match
 *
 *   LISTING, with --dry-run
 *
 * Ctrl-C ends the pass, and belay prints its progress. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "harness.h"
#include "ui/text.h"

typedef enum pass { CHECKING, LISTING, DELETING } pass_t;

static struct {
  const char *type;
  bool dry, yes, held;
  int64_t keys_per_s, patience_ms, progress_ms;
} asked = {.keys_per_s = 50000, .patience_ms = 60000, .progress_ms = 10000};

static struct {
  pass_t pass;
  belay_sweep_t *sweep;
  const char *objects;            /* the pattern of CHECKING */
  uint64_t held;                  /* number of held objects that CHECKING has found */
  uint64_t written_at;            /* when the last progress line was written, by the loop's clock */
  int signum;                     /* the signal that ended the pass; 0: none */
  char first[OUT_SHOWN_MAX + 16]; /* kind and name of the first held object */
} work;

static void begin_pass(harness_t *h, pass_t pass);

/* ---- output ---- */

/* Write the progress, or the totals if the pass is over. */
static bool write_totals(const harness_t *h, const belay_sweep_totals_t *totals, bool over) {
  out_begin();
  out_string("pattern", h->arguments->item[0]);
  out_bool("complete", over);
  out_number("scanned", (int64_t)totals->scanned);
  out_number("matched", (int64_t)totals->matched);
  out_number("deleted", (int64_t)totals->deleted);
  if (over)
    out_say("%" PRIu64 " deleted of %" PRIu64 " that matched", totals->deleted, totals->matched);
  else
    out_say("%s: %" PRIu64 " deleted of %" PRIu64 " that matched; up to %" PRIu64 " keys visited",
            work.signum != 0 ? "stopped" : "so far", totals->deleted, totals->matched,
            totals->scanned);
  return out_end();
}

static void on_progress(belay_sweep_t *sweep, const belay_sweep_totals_t *totals) {
  harness_t *h = belay_sweep_data(sweep);
  uint64_t now = uv_now(&h->loop);
  if (now - work.written_at < (uint64_t)asked.progress_ms)
    return;
  work.written_at = now;
  if (!write_totals(h, totals, false))
    (void)belay_sweep_cancel(sweep);
}

/* --dry-run: write each key, as it is on the server. */
static void on_keys(belay_sweep_t *sweep, const belay_bytes_t *keys, size_t n) {
  for (size_t i = 0; i < n; i++) {
    out_begin();
    out_text("key", keys[i].data, keys[i].len);
    if (!out_end()) {
      (void)belay_sweep_cancel(sweep);
      return;
    }
  }
}

static void on_held(belay_sweep_t *sweep, const belay_held_t *held) {
  (void)sweep;
  if (work.held++ == 0)
    (void)snprintf(work.first, sizeof work.first, "%s %s", belay_held_kind_name(held->kind),
                   out_shown(held->name, held->name_len));
}

/* Returns true if the pattern may match the key of a held object: those keys are KIND::{NAME}. */
static bool may_be_held(const char *pattern) {
  size_t plain = strcspn(pattern, "*?[\\");
  for (int kind = 0; kind < BELAY_HELD_KINDS; kind++) {
    char key[32];
    int len = snprintf(key, sizeof key, "%s::{", belay_held_kind_name((belay_held_kind_t)kind));
    if (memcmp(pattern, key, plain < (size_t)len ? plain : (size_t)len) == 0)
      return true;
  }
  return false;
}

/* Return a pattern for the keys of objects whose parts may match the pattern: lock::{NAME}::holds
 * belongs to lock::{NAME}. If the pattern does not show which objects these are, the result matches
 * more. NULL: out of memory. */
static const char *objects_pattern(const char *pattern) {
  size_t len = strlen(pattern), plain = strcspn(pattern, "*[\\");
  const char *close = strchr(pattern, '}');
  if (close != NULL)
    return text_keep(pattern, (size_t)(close + 1 - pattern));
  if (len > 0 && pattern[len - 1] == '*')
    return pattern;
  char *cut = text_keep(pattern, len + 1);
  if (cut != NULL)
    (void)memcpy(cut + plain, plain < len ? "*" : "", plain < len ? 2 : 1);
  return cut;
}

/* ---- passes ---- */

static void refuse_held(harness_t *h) {
  complain("nothing was deleted: %" PRIu64 " matching object%s held, such as %s; belay ls lists "
           "the holders, and --held deletes these too",
           work.held, work.held == 1 ? " is" : "s are", work.first);
  harness_done(h, STATUS_TROUBLE);
}

static int status_at_end(const belay_sweep_totals_t *totals) {
  return work.pass == LISTING && totals->matched == 0 ? STATUS_NO : STATUS_YES;
}

static void on_swept(belay_sweep_t *sweep, int status, const belay_sweep_totals_t *totals) {
  harness_t *h = belay_sweep_data(sweep);
  if (harness_is_done(h))
    return;
  if (work.pass == CHECKING && work.held == 0 && status == 0) {
    (void)belay_sweep_close(sweep, NULL);
    begin_pass(h, DELETING);
    return;
  }
  if (work.pass == CHECKING && status == 0) {
    refuse_held(h);
    return;
  }
  if (work.pass != LISTING)
    (void)write_totals(h, totals, status == 0);
  if (work.signum != 0)
    harness_done(h, STATUS_SIGNAL + work.signum);
  else if (status == BELAY_ECANCELED)
    harness_done(h, STATUS_TROUBLE); /* the output could not be written */
  else if (status == BELAY_EPERM && work.pass == CHECKING)
    harness_fail(h, "cannot check what is held (--held skips the check)", status);
  else if (status != 0)
    harness_fail(h, "cannot continue", status);
  else
    harness_done(h, status_at_end(totals));
}

static void begin_pass(harness_t *h, pass_t pass) {
  belay_sweep_options_t options;
  belay_sweep_options_init(&options);
  work.pass = pass;
  work.written_at = uv_now(&h->loop);
  options.pattern = belay_string(pass == CHECKING ? work.objects : h->arguments->item[0]);
  /* a key that belongs to the object may have another type */
  options.type = pass == CHECKING ? NULL : asked.type;
  options.remove = pass == DELETING;
  options.keys_per_s = (uint32_t)asked.keys_per_s;
  options.patience_ms = asked.patience_ms;
  options.on_keys = pass == LISTING ? on_keys : NULL;
  options.on_held = pass == CHECKING ? on_held : NULL;
  options.on_progress = pass == LISTING ? NULL : on_progress;
  options.data = h;
  if (harness_ok(h, belay_sweep_new(h->client[0], &options, &work.sweep)))
    harness_ok(h, belay_sweep_start(work.sweep, on_swept));
}

/* Return what is wrong with the options, or NULL. */
static const char *wrong(void) {
  if (asked.dry && asked.yes)
    return "--dry-run and --yes exclude each other";
  if (!asked.dry && !asked.yes)
    return "this would delete all matching keys: check with --dry-run, then give --yes";
  return asked.dry && asked.held ? "--held needs --yes" : NULL;
}

static void begin_sweep(harness_t *h) {
  const char *pattern = h->arguments->item[0];
  if (wrong() != NULL) {
    harness_refuse(h, wrong());
    return;
  }
  work.objects = objects_pattern(pattern);
  bool checks = !asked.held && may_be_held(pattern);
  if (harness_ok(h, work.objects != NULL ? 0 : BELAY_ENOMEM))
    begin_pass(h, asked.dry ? LISTING : checks ? CHECKING : DELETING);
}

static void on_signal(harness_t *h, int signum) {
  work.signum = signum;
  if (work.sweep == NULL || belay_sweep_cancel(work.sweep) != 0)
    harness_done(h, STATUS_SIGNAL + signum);
}

static const option_t sweep_options[] = {
    FLAG("dry-run", &asked.dry,
         "delete nothing: print the keys that match, unsorted; a key may be printed twice; the "
         "status is 1 if there are none"),
    FLAG("yes", &asked.yes, "delete the keys"),
    FLAG("held", &asked.held,
         "delete keys of locks, readers and writers, semaphores and elections even if they are "
         "held, and skip the check for them"),
    TEXT("type", "TYPE", &asked.type,
         "only keys of this type: string, hash, list, set, zset, stream",
         .choices = "string list set zset hash stream"),
    NUMBER("keys-per-s", 1, 10000000, &asked.keys_per_s,
           "maximum number of keys visited and deleted per second; default 50000"),
    DURATION("patience", 0, DAY_MS, &asked.patience_ms,
             "time to keep trying while a server does not answer; default 1m"),
    DURATION("progress", 1, DAY_MS, &asked.progress_ms, "time between progress lines; default 10s"),
    {0},
};

const command_t sweep_command = {
    .name = "sweep",
    .arguments = "PATTERN",
    .summary = "delete the keys in the namespace that match a pattern",
    .text = "PATTERN selects keys by their text behind the namespace and two colons. Its wildcards "
            "are * ? [a-z] [^a-z]; a backslash makes the next character literal. Put it in quotes. "
            "Keys outside of the namespace never match. A whole key is FAMILY::NAME::{KEY}, such "
            "as limit::login::{ada}, or FAMILY::{KEY} if there is no NAME.\n\n"
            "If keys of locks may match, belay first checks whether one of them is held. If so, it "
            "deletes nothing, and the status is 123. --held skips this check, which needs the "
            "rights of belay acl held sweep. The check does not see locks that are acquired after "
            "it, or in a namespace inside of this one. All other keys are deleted without a check, "
            "with the protection that they give: fencing numbers, idempotency records, ids. Keys "
            "that are created or deleted meanwhile may be found or not.\n\n"
            "belay queries the server page by page, with pauses. Ctrl-C stops it, and it prints "
            "its progress; keys that were deleted stay deleted.",
    .examples = EXAMPLES({"List the keys of all limits", "belay sweep 'limit::*' --dry-run"},
                         {"Delete the sessions of the old site, slowly",
                          "belay sweep 'session::old::*' -n shop --yes --keys-per-s 1000"}),
    .options = sweep_options,
    .what = "cannot begin",
    .begin = begin_sweep,
    .stop = on_signal,
};

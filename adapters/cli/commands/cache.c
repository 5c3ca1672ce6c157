/* `belay cache`: keep the output of a command for all machines.
 *
 *   ASKING --fresh--> written --> done
 *     |  |
 *     |  +--stale--> written, SEEKING --lease taken--> start `belay cache --refresh` --> done
 *     |                            +-- another process loads it --> done
 *     |  ^
 *     |  +-- another machine runs the command: wait for it
 *     v
 *   LOADING: the command runs --status 0--> kept, written --> done
 *                             --otherwise--> written, not kept --> done, with its status */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "run/guarded_command.h"

#define CHECK_MS 2
#define LONGEST_MAX_MS 300000
#define GET_MAX_MS 600000 /* the longest timeout of a request */
#define SLACK_MS 1000     /* the supervisor ends the command before the library's load times out */

static struct {
  int64_t ttl_ms, stale_ms, longest_ms, max_size;
  const char *name;
  bool anyway, forget, refresh;
} asked = {.ttl_ms = 300000, .longest_ms = 60000, .max_size = 8 << 20, .name = ""};

static belay_cache_t *cache;
static belay_cache_load_t *load;
static guarded_t guarded;
static text_t output;
static int64_t until; /* supervisor_now() when the command must have ended */
static int ends_with; /* the exit status, once the command has ended too */
static uv_timer_t check_timer;
static bool over;
static bool served_stale; /* true while it is undecided which process loads the value again */

/* ---- the end ---- */

/* End belay. A command that still runs is killed first. */
static void finish(harness_t *h, int status) {
  ends_with = status;
  over = true;
  if (guarded_is_running(&guarded))
    guarded_signal(&guarded, SIGKILL);
  else
    harness_done(h, status);
}

/* Start this command again in the background, with --refresh. The default of uv_spawn() is
 * /dev/null for standard input, output and error. */
static void start_refresh(harness_t *h) {
  static uv_process_t process;
  char **line = h->arguments->item;
  size_t n = 0;
  while (line[n] != NULL)
    n++;
  char **args = calloc(n + 4, sizeof *args);
  if (args == NULL)
    return;
  args[0] = "belay";
  args[1] = "cache";
  args[2] = "--refresh";
  memcpy(args + 3, line, n * sizeof *args);
  const uv_process_options_t options = {
      .file = guarded_own_path(), .args = args, .flags = UV_PROCESS_DETACHED};
  int error = uv_spawn(&h->loop, &process, &options);
  if (error != 0)
    remark("cannot run the command again in the background: %s", uv_strerror(error));
  else
    remark("stale: the command runs again in the background");
  uv_close((uv_handle_t *)&process, NULL);
  free(args);
}

/* Wait until the cache is idle. The cache serves a loaded value before it is stored, and a stale
 * value before it is known which process loads it again. */
static void on_check_timer(uv_timer_t *timer) {
  belay_cache_stats_t stats;
  belay_cache_stats(cache, &stats);
  if (stats.loading > 0)
    return;
  if (served_stale && stats.loads > 0)
    start_refresh(timer->data);
  else if (!served_stale && stats.fills == 0 && !asked.anyway)
    remark("the output of the command could not be kept");
  uv_close((uv_handle_t *)timer, NULL);
  finish(timer->data, STATUS_YES);
}

static void finish_when_settled(harness_t *h) {
  (void)uv_timer_init(&h->loop, &check_timer);
  check_timer.data = h;
  (void)uv_timer_start(&check_timer, on_check_timer, 0, CHECK_MS);
}

static void on_signal(harness_t *h, int signum) {
  if (guarded_on_signal(&guarded, signum))
    return;
  if (uv_is_active((uv_handle_t *)&check_timer))
    uv_close((uv_handle_t *)&check_timer, NULL);
  finish(h, STATUS_SIGNAL + signum);
}

/* ---- the command ---- */

/* Time from SIGTERM, when the command has taken longer than --longest, until SIGKILL has ended
 * it. */
static int64_t grace_ms(void) {
  return asked.longest_ms / 6;
}

static int64_t left_us(void *data) {
  (void)data;
  int64_t left = (until - supervisor_now()) / 1000;
  return left > 0 ? left : 0;
}

static void on_ended(guarded_t *e) {
  if (e->too_much)
    complain("the command writes more than --max-size allows");
  else if (e->overdue)
    complain("the command has taken longer than --longest allows, and was ended");
  else if (e->not_all && e->status == STATUS_YES)
    complain("the command has ended, but a process that it left behind keeps its output open");
  if (e->too_much || e->overdue || output.spoiled || (e->not_all && e->status == STATUS_YES))
    e->status = STATUS_TROUBLE;
  /* an error is reported to the callbacks of the gets */
  if (e->status == STATUS_YES)
    (void)belay_cache_load_done(load, belay_bytes(output.bytes, output.len));
  else
    (void)belay_cache_load_failed(load, e->status);
  if (over)
    harness_done(e->harness, ends_with);
}

static void on_load(belay_cache_load_t *l, const char *key, size_t key_len, void *arg) {
  harness_t *h = arg;
  (void)key;
  (void)key_len;
  if (over || served_stale) { /* of a stale value: the process in the background loads it */
    (void)belay_cache_load_failed(l, STATUS_TROUBLE);
    return;
  }
  load = l;
  text_clear(&output);
  until = supervisor_now() + (asked.longest_ms + grace_ms()) * 1000000;
  guarded = (guarded_t){.left = left_us,
                        .grace_ms = grace_ms(),
                        .on_end = on_ended,
                        .output = &output,
                        .output_max = (size_t)asked.max_size};
  guarded_start(&guarded, h, h->arguments->command);
}

/* ---- reading ---- */

static void on_got(belay_request_t *r, int status, const belay_cache_result_t *result) {
  harness_t *h = r->data;
  if (harness_is_done(h))
    return;
  /* the command of this process failed: failures on other machines are not kept */
  if (result->load_error > 0) {
    (void)out_raw(output.bytes, output.len);
    finish(h, result->load_error);
  } else if (status == 0 && result->stale && asked.refresh) {
    harness_complain(h, "cannot refresh", result->reason);
    finish(h, status_of(result->reason));
  } else if (status == 0) {
    (void)out_raw(result->data, result->len);
    served_stale = result->stale;
    if (served_stale || result->from == BELAY_CACHE_FROM_LOAD)
      finish_when_settled(h);
    else
      finish(h, STATUS_YES);
  } else if (status == BELAY_ETIMEDOUT) {
    bool runs_here = guarded.harness != NULL;
    if (runs_here && guarded_is_running(&guarded) && !guarded.overdue)
      complain("the command has not ended in time");
    else if (!runs_here)
      complain("another machine runs the command, and has not ended in time");
    finish(h, runs_here ? STATUS_TROUBLE : STATUS_NOT_ACQUIRED);
  } else {
    harness_complain(h, "cannot ask", status);
    finish(h, status_of(status));
  }
}

static void on_forgotten(belay_request_t *r, int status, bool applied) {
  (void)applied;
  if (harness_ok(r->data, status))
    harness_answer_changed(r->data, "key", "forgotten");
}

/* ---- the beginning ---- */

/* The timeout of a get: time for a failing run on another machine, and for a run here. */
static int64_t get_ms(void) {
  int64_t ms = 2 * (asked.longest_ms + grace_ms());
  return ms < GET_MAX_MS ? ms : GET_MAX_MS;
}

/* Open the cache. With --refresh a stale value is kept, but not served. */
static int open_cache(harness_t *h) {
  belay_cache_options_t options;
  belay_cache_options_init(&options);
  options.name = belay_string(asked.name);
  options.load = on_load;
  options.arg = h;
  options.ttl_ms = asked.ttl_ms;
  options.jitter_percent = 0;
  options.stale_ms = asked.refresh ? 0 : asked.stale_ms;
  options.keep_ms = asked.stale_ms;
  options.load_timeout_ms = asked.longest_ms + grace_ms() + SLACK_MS;
  options.max_value_bytes = (size_t)asked.max_size;
  options.late = BELAY_CACHE_LATE_FAIL;
  options.away = asked.anyway ? BELAY_CACHE_AWAY_LOAD : BELAY_CACHE_AWAY_FAIL;
  options.quiet = true;
  return belay_cache_new(h->client[0], &options, &cache);
}

static void begin_cache(harness_t *h) {
  const char *key = h->arguments->item[0];
  bool runs = h->arguments->command != NULL;
  if (runs == asked.forget) {
    harness_refuse(h, "give either a command behind --, or --forget");
    return;
  }
  if (runs && out_form() == OUT_JSON) {
    harness_refuse(h, "--json needs --forget: the output of the command is written unchanged");
    return;
  }
  h->request.timeout_ms = asked.forget ? 0 : get_ms();
  if (harness_ok(h, open_cache(h)))
    harness_ok(h, asked.forget
                      ? belay_cache_invalidate(cache, &h->request, belay_string(key), on_forgotten)
                      : belay_cache_get(cache, &h->request, belay_string(key), on_got));
}

static const option_t options[] = {
    DURATION("ttl", 1, YEAR_MS, &asked.ttl_ms,
             "time for which the output of the command is fresh; default 5m"),
    DURATION("stale", 0, YEAR_MS, &asked.stale_ms,
             "time after --ttl in which the old output is still written, while one machine "
             "runs the command again in the background; default 0s"),
    DURATION("longest", 100, LONGEST_MAX_MS, &asked.longest_ms,
             "maximum run time of the command; then it is ended; default 1m"),
    NUMBER("max-size", 1, (int64_t)BELAY_CACHE_VALUE_MAX, &asked.max_size,
           "maximum output of the command; then it is ended; default 8388608", .value = "BYTES"),
    FLAG("anyway", &asked.anyway, "if no server answers: run the command, and keep nothing"),
    FLAG("refresh", &asked.refresh,
         "write no stale output: run the command, or wait for its output"),
    FLAG("forget", &asked.forget, "instead of running a command: forget the output that is kept"),
    TEXT("name", "NAME", &asked.name,
         "a group of keys: the same KEY under another NAME is separate"),
    {0},
};

const command_t cache_command = {
    .name = "cache",
    .arguments = "KEY",
    .summary = "write the output of a command without running it each time",
    .text = "belay keeps the standard output of the command under KEY if its status is 0. "
            "Until it is too old, all calls with KEY write it, byte for byte. One machine at a "
            "time runs the command; the others wait for its output.\n\n"
            "If the command fails, its output is written, belay ends with its status, and "
            "nothing is kept. Standard error of the command is that of belay.",
    .examples = EXAMPLES({"Write a slow report that is at most five minutes old; at worst an hour",
                          "belay cache report --ttl 5m --stale 55m -- ./report"},
                         {"Forget it after a change", "belay cache report --forget"}),
    .options = options,
    .runs = RUNS_MAYBE,
    .what = "cannot ask",
    .begin = begin_cache,
    .stop = on_signal,
};

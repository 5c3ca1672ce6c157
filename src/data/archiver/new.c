/* The archiver: how one is made, and what it says of itself. */
#include <string.h>

#include "data/archiver/archiver.h"

#define KEPT_MIN_MS (2 * BELAY__DAY_MS)
static const char election_head[] = "active/";

void belay_archiver_options_init(belay_archiver_options_t *options) {
  if (options == NULL)
    return;
  *options = (belay_archiver_options_t){
      .delay_ms = 10000, .jitter_ms = 5000, .retry_ms = 10000, .lease_ms = 10000};
}

static int check_options(const belay_active_t *active, const belay_archiver_options_t *o) {
  belay_t *belay = active->handle.client->belay;
  const struct {
    const char *what;
    int64_t value, min, max;
  } ranges[] = {
      {"from_ms", o->from_ms, 0, BELAY_ACTIVE_TIME_MAX},
      {"delay_ms", o->delay_ms, 0, BELAY__HOUR_MS},
      {"jitter_ms", o->jitter_ms, 0, BELAY__HOUR_MS},
      {"retry_ms", o->retry_ms, 10, BELAY__HOUR_MS},
      {"lease_ms", o->lease_ms, 1000, 600000},
  };
  int error = 0;
  for (size_t i = 0; i < sizeof ranges / sizeof *ranges && error == 0; i++)
    error =
        belay__check_range(belay, ranges[i].what, ranges[i].value, ranges[i].min, ranges[i].max);
  if (error != 0)
    return error;
  if (o->on_day == NULL && !o->months) {
    belay__detail(belay, "on_day: NULL, and months is false: nothing would be done");
    return BELAY_EINVAL;
  }
  if (active->ttl_ms < KEPT_MIN_MS) {
    belay__detail(belay, "active: its ttl_ms is less than 2 days");
    return BELAY_EINVAL;
  }
  return 0;
}

static int make_election(belay_archiver_t *archiver, const belay_archiver_options_t *o) {
  const belay_active_t *active = archiver->active;
  const size_t head_len = sizeof election_head - 1;
  char name[sizeof election_head + BELAY__HANDLE_NAME_MAX];
  memcpy(name, election_head, head_len);
  memcpy(name + head_len, active->name, active->name_len);
  belay_election_options_t options;
  belay_election_options_init(&options);
  options.ttl_ms = o->lease_ms;
  options.retry_min_ms =
      o->lease_ms / 4; /* who leads does so for weeks: a vacancy is told, or timed */
  options.retry_max_ms = options.backoff_max_ms = o->lease_ms / 2;
  options.on_elected = belay__archiver_elected;
  options.on_deposed = belay__archiver_deposed;
  options.data = archiver;
  belay_client_t *client = active->handle.client;
  return belay_election_new(&client, 1, name, head_len + active->name_len, &options,
                            &archiver->election);
}

int belay_archiver_new(belay_active_t *active, const belay_archiver_options_t *options,
                       belay_archiver_t **out) {
  if (out == NULL)
    return BELAY_EINVAL;
  *out = NULL;
  int error = belay__handle_check((const belay__handle_t *)active);
  belay_archiver_options_t o;
  belay_archiver_options_init(&o);
  if (options != NULL)
    o = *options;
  if (error == 0)
    error = check_options(active, &o);
  if (error != 0)
    return error;
  belay_t *belay = active->handle.client->belay;
  belay_archiver_t *archiver = belay__alloc(belay, sizeof *archiver);
  if (archiver == NULL)
    return BELAY_ENOMEM;
  *archiver = (belay_archiver_t){
      .child = {.close = belay__archiver_child_close},
      .active = active,
      .timer = {.fire = belay__archiver_on_timer},
      .request = {.data = archiver},
      .day = BELAY__ARCHIVER_NONE,
      .done = BELAY__ARCHIVER_NONE,
      .skipped_to = BELAY__ARCHIVER_NONE,
      .on_day = o.on_day,
      .data = o.data,
      .months = o.months,
      .from_ms = o.from_ms,
      .delay_ms = o.delay_ms,
      .jitter_ms = o.jitter_ms,
      .retry_ms = o.retry_ms,
  };
  error = make_election(archiver, &o);
  if (error != 0) {
    belay__free(belay, archiver, sizeof *archiver);
    return error;
  }
  belay__task_init(&archiver->task, belay__archiver_on_task);
  belay__handle_attach(&active->handle, &archiver->child);
  belay__hold_loop(belay);
  belay__archiver_start(archiver);
  *out = archiver;
  return 0;
}

/* ---- questions ----------------------------------------------------------------------------------------- */

uint64_t belay_archiver_term(const belay_archiver_t *archiver) {
  return archiver == NULL ? 0 : belay_election_term(archiver->election);
}

void belay_archiver_stats(const belay_archiver_t *archiver, belay_archiver_stats_t *stats) {
  *stats = archiver == NULL ? (belay_archiver_stats_t){0} : archiver->stats;
}

void *belay_archiver_data(const belay_archiver_t *archiver) {
  return archiver == NULL ? NULL : archiver->data;
}

#include "measure.h"

#include <stdio.h>
#include <unistd.h>

#include "query.h"
#include "load/driver/meter.h"
#include "load/subjects/peer.h"
#include "load/driver/worker.h"
#include "server.h"

#define WARM_UP 0.1 /* of the time that is measured */

static bool there[SUBJECTS]; /* the peers that can be run here */

/* The measurements that can be chosen. */
static void look_for_peers(const options_t *o, results_t *results) {
  for (subject_t s = SUBJECT_NODE_REDLOCK; s < SUBJECTS; s++) {
    char text[128];
    bool wanted = false;
    for (unsigned i = 0; i < scenarios_len; i++)
      wanted |=
          scenarios[i].peers[s] > 0 && options_name(o, &scenarios[i]) && options_include(o, s);
    if (!wanted)
      continue;
    there[s] = peer_is_there(s, text, sizeof text);
    results_fact(results, subject_names[s], text);
  }
}

static bool takes_part(const options_t *o, const scenario_t *scenario, const cell_t *cell,
                       subject_t subject) {
  if (!options_include(o, subject))
    return false;
  if (subject == SUBJECT_BELAY || subject == SUBJECT_LIMIT)
    return true;
  if (subject == SUBJECT_SINGLE)
    return scenario->joined && cell->concurrency > 1 && cell->in != IN_CURVE;
  if (subject == SUBJECT_NAIVE)
    return scenario->naive != NULL;
  return there[subject] && cell->concurrency <= scenario->peers[subject] && o->rate == 0 &&
         cell->in != IN_CURVE;
}

typedef struct plan {
  unsigned n;
  cell_t cells[CELLS_MAX];
} plan_t;

/* Servers of others stay where they are; and with a concurrency of its own a scenario's first size
 * is the only one. */
static bool is_wanted(const options_t *o, const scenario_t *scenario, const cell_t *cell) {
  if (o->concurrency > 0)
    return cell == &scenario->cells[0];
  if ((cell->in & o->in) == 0)
    return false;
  if (cell->placement == PLACE_ANYWHERE || cell->placement == o->placement)
    return true;
  return o->placement == PLACE_ANYWHERE && o->urls == 0 && place_can(cell->placement);
}

static placement_t placement_of(const options_t *o, const scenario_t *scenario,
                                const cell_t *cell) {
  placement_t placement = o->placement;
  if (placement == PLACE_ANYWHERE && o->concurrency == 0)
    placement = cell->placement;
  if (placement == PLACE_ANYWHERE && o->urls == 0 && place_can(scenario->placement))
    placement = scenario->placement;
  return placement;
}

static cell_t settled(const options_t *o, const scenario_t *scenario, const cell_t *cell) {
  cell_t c = *cell;
  c.in &= o->in;
  if (o->concurrency > 0)
    c.concurrency = o->concurrency;
  if (c.keys == 0)
    c.keys = c.concurrency;
  if (c.batch == 0)
    c.batch = 1;
  if (c.processes == 0)
    c.processes = 1;
  c.placement = placement_of(o, scenario, cell);
  return c;
}

/* A measurement that several reports need runs once. */
static void add(plan_t *plan, const cell_t *cell) {
  for (unsigned i = 0; i < plan->n; i++) {
    cell_t *c = &plan->cells[i];
    if (c->concurrency == cell->concurrency && c->keys == cell->keys && c->batch == cell->batch &&
        c->placement == cell->placement) {
      c->in |= cell->in;
      return;
    }
  }
  plan->cells[plan->n++] = *cell;
}

static plan_t plan_of(const options_t *o, const scenario_t *scenario) {
  plan_t plan = {0};
  for (unsigned i = 0; i < CELLS_MAX && scenario->cells[i].concurrency > 0; i++)
    if (is_wanted(o, scenario, &scenario->cells[i])) {
      cell_t cell = settled(o, scenario, &scenario->cells[i]);
      add(&plan, &cell);
    }
  return plan;
}

static job_t job_of(const options_t *o, const scenario_t *scenario, const cell_t *cell,
                    subject_t subject) {
  job_t job = {.servers = scenario->servers,
               .concurrency = cell->concurrency,
               .keys = cell->keys,
               .batch = cell->batch,
               .fill = scenario->fill,
               .load = o->rate > 0 ? LOAD_OPEN : LOAD_CLOSED,
               .rate = o->rate,
               .warm_up = o->seconds * WARM_UP,
               .seconds = o->seconds,
               .placement = cell->placement,
               .processes = cell->processes,
               .hold = cell->hold};
  (void)snprintf(job.scenario, sizeof job.scenario, "%s", scenario->name);
  (void)snprintf(job.subject, sizeof job.subject, "%s", subject_names[subject]);
  for (unsigned i = 0; i < job.servers; i++)
    (void)snprintf(job.urls[i], JOB_URL_MAX, "%s", o->urls > 0 ? o->url[i] : server_url(i));
  return job;
}

static void forget_all(const job_t *job) {
  meter_t meter;
  meter_open(&meter, job);
  for (unsigned i = 0; i < meter.servers; i++)
    query_flush(meter.server[i]);
  meter_close(&meter);
}

static void run_once(const scenario_t *scenario, subject_t s, const job_t *job,
                     outcome_t *outcome) {
  forget_all(job);
  worker_run(scenario, s, job, outcome);
}

/* At a rate, beside what does the same and nothing. */
static void run_beside_control(const scenario_t *scenario, subject_t s, const job_t *job,
                               outcome_t *outcome) {
  job_t control = *job;
  control.fill = false;
  worker_run(scenario, SUBJECTS, &control, outcome);
  double p99 = (double)hist_at(&outcome->latency, 0.99) / 1e9;
  run_once(scenario, s, job, outcome);
  outcome->control_p99 = p99;
}

/* belay and naive-c at the same rate, one after the other. */
static void run_half(const options_t *o, results_t *results, const scenario_t *scenario,
                     const cell_t *cell, double rate, unsigned round) {
  static outcome_t outcome;
  static const subject_t subjects[] = {SUBJECT_BELAY, SUBJECT_NAIVE};
  for (unsigned i = 0; i < 2; i++) {
    subject_t s = subjects[(i + round) % 2];
    job_t job = job_of(o, scenario, cell, s);
    job.load = LOAD_HALF;
    job.rate = rate;
    if (!takes_part(o, scenario, cell, s))
      continue;
    run_beside_control(scenario, s, &job, &outcome);
    results_add(results, scenario, s, &job, &outcome);
  }
}

static void measure_cell(const options_t *o, results_t *results, const scenario_t *scenario,
                         const cell_t *cell, unsigned round) {
  static outcome_t outcome;
  double half = 0; /* of the rate that belay reaches; without belay, that naive-c reaches */
  servers_place(cell->placement);
  for (unsigned i = 0; i < SUBJECTS; i++) {
    subject_t s = (i + round - 1) % SUBJECTS;
    if (!takes_part(o, scenario, cell, s))
      continue;
    job_t job = job_of(o, scenario, cell, s);
    if (isatty(STDERR_FILENO))
      fprintf(stderr, "\r\033[Kround %u of %u: %s, %s, %u at once", round, o->rounds,
              scenario->name, subject_names[s], job.concurrency);
    run_once(scenario, s, &job, &outcome);
    results_add(results, scenario, s, &job, &outcome);
    if (s == SUBJECT_BELAY || (s == SUBJECT_NAIVE && !options_include(o, SUBJECT_BELAY)))
      half = (double)outcome.operations / outcome.elapsed / job.batch / 2;
  }
  if (o->half && scenario->half && half > 0 && o->rate == 0)
    run_half(o, results, scenario, cell, half, round);
}

static void note_times(const options_t *o, results_t *results) {
  char text[128];
  (void)snprintf(text, sizeof text,
                 "%g s, after %g s of warming up; each until all that are at once have ended some",
                 o->seconds, o->seconds * WARM_UP);
  results_fact(results, "measured for", text);
}

void measure(const options_t *o, results_t *results) {
  note_times(o, results);
  look_for_peers(o, results);
  for (unsigned round = 1; round <= o->rounds; round++)
    for (unsigned i = 0; i < scenarios_len; i++) {
      const scenario_t *scenario = &scenarios[i];
      if (!options_name(o, scenario) || (o->urls > 0 && o->urls < scenario->servers))
        continue;
      plan_t plan = plan_of(o, scenario);
      for (unsigned c = 0; c < plan.n; c++)
        measure_cell(o, results, scenario, &plan.cells[c], round);
    }
  if (isatty(STDERR_FILENO))
    fputs("\r\033[K", stderr);
}

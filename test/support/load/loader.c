/* The parent's side of a load. */
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/base/clock.h"
#include "support/load/load.h"
#include "support/base/unit.h"

#define END_MS 30000

void load_start(load_t *load, const char *url, unsigned replicas) {
  char number[12];
  snprintf(number, sizeof number, "%u", replicas);
  const char *argv[] = {process_self(), LOAD_ROLE, url, number, NULL};
  *load = (load_t){.process = process_start(argv)};
}

void load_begin(load_t *load, const char *name) {
  char line[64];
  snprintf(line, sizeof line, "begin %s", name);
  load->rests = false;
  process_write_line(&load->process, line);
}

void load_rest(load_t *load) {
  process_write_line(&load->process, "rest");
}

void load_go_on(load_t *load) {
  load->rests = false;
  process_write_line(&load->process, "go on");
}

static void read_line(load_t *load, const char *line) {
  if (sscanf(line, "up %" SCNd64 " %40s", &load->since, load->server) == 2)
    return;
  if (sscanf(line, "rest %" SCNu64 " %" SCNu64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64,
             &load->operations, &load->confirmed, &load->gap_us, &load->held_us, &load->busy_us,
             &load->idle_us) == 6) {
    load->rests = true;
    return;
  }
  if (sscanf(line,
             "over %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
             " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64,
             &load->grants, &load->writes, &load->refused, &load->backwards, &load->twins,
             &load->ids, &load->same_ids, &load->allowed, &load->bound, &load->burst,
             &load->unconfirmed, &load->lost) != 12)
    fail_msg("a load says: %s", line);
  load->over = true;
}

void load_read(load_t *load, int64_t ms) {
  char line[256];
  struct pollfd input = {.fd = load->process.out, .events = POLLIN};
  if (poll(&input, 1, (int)ms) <= 0)
    return;
  if (!process_read_line(&load->process, line, sizeof line))
    fail_msg("a load has ended: %d", process_wait(&load->process));
  read_line(load, line);
}

double load_gap_ms(const load_t *load) {
  return load->held_us > load->idle_us ? (double)(load->held_us - load->idle_us) / 1000 : 0;
}

void load_end(load_t *load) {
  int64_t began = clock_now();
  process_write_line(&load->process, "end");
  while (!load->over) {
    load_read(load, 100);
    assert_true(clock_since_ms(began) < END_MS * slow());
  }
  assert_int_equal(process_wait(&load->process), 0);
}

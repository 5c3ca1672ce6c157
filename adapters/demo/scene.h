/* The surroundings of a chapter: a loop, two clients of the demo's server, and the output. */
#ifndef BELAY_DEMO_SCENE_H
#define BELAY_DEMO_SCENE_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "belay.h"

#define DEMO_MS UINT64_C(1000000) /* in the nanoseconds of uv_hrtime() */

/* The two contenders of a chapter. Each has its own client. A child process has only A. */
typedef enum demo_who { DEMO_A, DEMO_B, DEMO_CONTENDERS } demo_who_t;

typedef struct demo {
  uv_loop_t loop;
  bool fancy;        /* standard output is a terminal, and NO_COLOR is not set */
  uv_timer_t clock;  /* wakes the loop while DEMO_WAIT() waits for a condition */
  uint64_t deadline; /* of DEMO_WAIT() */
  bool is_child;     /* this process prints nothing; it sends its failures to its parent */
  belay_t *belay;
  belay_client_t *client[DEMO_CONTENDERS];
  const char *url;    /* of the demo's server */
  const char *name;   /* of the chapter's locks and other handles */
  const char *folder; /* for files of a chapter */
  uint64_t began;     /* when the text of the chapter was printed */
  unsigned facts, failed;

  /* One operation at a time: see demo_await(). */
  belay_request_t request; /* its data is the demo */
  bool done;               /* the callback was called */
  int status;              /* the argument of the callback */
  int64_t number;          /* set by demo_on_number() */
  void *out;               /* where a callback of the chapter copies its result */
} demo_t;

/* Open the loop. Returns false if it cannot. */
bool demo_open(demo_t *demo);

/* Open a client of the server. Returns false if it cannot connect, which is printed. */
bool demo_connect(demo_t *demo, demo_who_t who);

/* Close the clients and the loop. An open handle counts as a failure. */
void demo_close(demo_t *demo);

/* ---- output ---- */

typedef enum demo_style { DEMO_NORMAL, DEMO_BOLD, DEMO_DIM, DEMO_GOOD, DEMO_BAD } demo_style_t;

/* The text that switches a style on; DEMO_NORMAL switches all off. "" without colours. */
const char *demo_style(const demo_t *demo, demo_style_t style);

/* As printf(), and flush. */
void demo_print(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Print an event, with the time since the chapter began. at: when it happened; 0: now. */
void demo_event(demo_t *demo, uint64_t at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Print a fact that was checked. */
void demo_fact(demo_t *demo, bool holds, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Print a failure, which counts as a fact that does not hold. error: belay's, or 0. */
void demo_trouble(demo_t *demo, const char *what, int error);

/* In a child process: print a line for the parent. Exits if the parent does not read any more.
 * DEMO_FAILED: the child cannot go on. Its parent prints the number, an error of belay or 0. */
#define DEMO_FAILED "failed"
void demo_report(const char *word, int64_t number);

/* Seconds between two uv_hrtime()s; negative if the second is the earlier one. */
double demo_seconds(uint64_t from, uint64_t to);

/* ---- waiting ---- */

/* Run the loop until no active handle keeps it running. */
void demo_run(demo_t *demo);

/* Run the loop until the condition is true, for at most ms. A statement. */
#define DEMO_WAIT(demo, ms, condition)                                                             \
  for (demo_wait_start(demo, ms); !(condition) && demo_wait_step(demo);) {                         \
  }
void demo_wait_start(demo_t *demo, uint64_t ms);
bool demo_wait_step(demo_t *demo);

/* Run the loop until the callback of an operation was called. begun: the return value of the
 * operation. Returns 0 or the error of the operation. demo_await() prints the error, demo_status()
 * does not. */
int demo_status(demo_t *demo, int begun);
bool demo_await(demo_t *demo, const char *what, int begun);

/* Each callback calls this. */
void demo_done(demo_t *demo, int status);

/* A callback of demo->request that keeps the number. */
void demo_on_number(belay_request_t *request, int status, int64_t number);

/* Print an error. Returns true if there was none. */
bool demo_check(demo_t *demo, const char *what, int error);

#endif /* BELAY_DEMO_SCENE_H */

#include "load/driver/driver.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "bench.h"
#include "load/driver/meter.h"

#define PATIENCE_NS INT64_C(120000000000) /* limit for filling and for pending operations */
#define PATIENCE_S 20.0                   /* for the first that is done */
#define SETTLE_NS INT64_C(50000000) /* for connections that the first operation did not need */
#define FILL_AT_ONCE 64             /* few enough that no operation waits */
#define GATHER_S 0.001              /* until it looks again */
#define ROUNDS 4                    /* of all runners: to warm up, and to measure at least */
#define ROUNDS_S 5.0                /* if it takes no longer than that */
#define TICK_MIN_NS INT64_C(100000) /* of an open loop: more often is what it would do all day */

typedef enum phase {
  PHASE_FIRST,
  PHASE_FILLING,
  PHASE_GATHERING,
  PHASE_WARMING,
  PHASE_MEASURING,
  PHASE_DRAINING
} phase_t;

/* A timer that knows less than milliseconds. */
typedef struct alarm {
  int fd;
  uv_poll_t poll;
} alarm_t;

typedef struct course {
  phase_t phase;
  unsigned under_way;
  int64_t gathers;      /* since when it waits for the others */
  int64_t warms;        /* since when it warms up */
  int64_t began, ended; /* to measure; INT64_MAX: not yet */
  uint64_t first;       /* turn, of those that are measured */
  int64_t due,
      apart; /* an open loop: when the next one begins, and how long after the one before */
  alarm_t schedule, hold;
  runner_t *later;                /* runners that go on in the next turn */
  runner_t *holder, *last_holder; /* runners that hold, in the order in which they end */
  void (*over)(runner_t *runner); /* called at the end of a hold */
  uv_idle_t idle;                 /* active: the loop does not wait */
  uv_timer_t timer;
  uv_prepare_t prepare;
  int64_t turned;  /* when the loop's last turn was over, */
  uint64_t waited; /* and how long it had waited by then */
  runner_t *free;  /* an open loop's, which have nothing to do */
  meter_t meter;
  reading_t before, after;
  uint64_t belay_before; /* allocations */
} course_t;

unsigned driver_next_key(driver_t *driver) {
  return (unsigned)(driver->turn++ % driver->job->keys);
}

void driver_next_key_text(driver_t *driver, char out[DRIVER_KEY_LEN]) {
  unsigned key = driver_next_key(driver);
  for (int i = DRIVER_KEY_LEN; i-- > 0; key /= 10)
    out[i] = (char)('0' + key % 10);
}

static void alarm_open(driver_t *driver, alarm_t *alarm, uv_poll_cb on_alarm) {
  alarm->fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
  if (alarm->fd < 0 || uv_poll_init(&driver->loop, &alarm->poll, alarm->fd) != 0)
    bench_die("no timer: %s", strerror(errno));
  alarm->poll.data = driver;
  uv_poll_start(&alarm->poll, UV_READABLE, on_alarm);
}

/* Start the timer: it expires after ns nanoseconds, then after each `every`; 0: once. */
static void alarm_set(const alarm_t *alarm, int64_t ns, int64_t every) {
  struct itimerspec when = {{every / 1000000000, every % 1000000000},
                            {ns / 1000000000, ns % 1000000000}};
  if (timerfd_settime(alarm->fd, 0, &when, NULL) != 0)
    bench_die("no timer: %s", strerror(errno));
}

static bool alarm_is_due(const alarm_t *alarm) {
  uint64_t times;
  return read(alarm->fd, &times, sizeof times) > 0;
}

static void alarm_close(alarm_t *alarm) {
  uv_close((uv_handle_t *)&alarm->poll, NULL);
  close(alarm->fd);
}

static void begin(runner_t *runner, int64_t when) {
  runner->began = when;
  runner->driver->course->under_way++;
  runner->driver->doer->begin(runner);
}

/* Start the operations that are due while there are free runners. */
static void keep_up(driver_t *driver) {
  course_t *in = driver->course;
  int64_t now = bench_now();
  while (in->due <= now && in->due < in->ended && in->free != NULL) {
    runner_t *runner = in->free;
    in->free = runner->next;
    begin(runner, in->due);
    in->due += in->apart;
  }
}

static void on_schedule(uv_poll_t *poll, int status, int events) {
  driver_t *driver = poll->data;
  (void)events;
  if (status == 0 && alarm_is_due(&driver->course->schedule))
    keep_up(driver);
}

static void open_schedule(driver_t *driver) {
  course_t *in = driver->course;
  in->apart = (int64_t)(1e9 / driver->job->rate);
  int64_t tick = in->apart > TICK_MIN_NS ? in->apart : TICK_MIN_NS;
  alarm_open(driver, &in->schedule, on_schedule);
  alarm_set(&in->schedule, tick, tick);
  in->due = bench_now();
}

static void on_time(uv_timer_t *timer);

static void enter(driver_t *driver, phase_t phase, double seconds) {
  driver->course->phase = phase;
  uv_timer_start(&driver->course->timer, on_time, (uint64_t)(seconds * 1e3), 0);
}

static void start_all(driver_t *driver) {
  course_t *in = driver->course;
  if (driver->quiet != NULL)
    driver->quiet(driver, true);
  enter(driver, PHASE_WARMING, driver->job->warm_up);
  in->warms = bench_now();
  for (unsigned i = driver->job->concurrency; i-- > 0;) {
    runner_t *runner = &driver->runners[i];
    runner->next = in->free;
    in->free = runner;
  }
  if (driver->job->rate > 0) {
    open_schedule(driver);
    return;
  }
  int64_t now = bench_now();
  for (unsigned i = 0; i < driver->job->concurrency; i++)
    begin(&driver->runners[i], now);
}

/* All processes measure the same time: else one after the other could have for itself what is to be
 * shared. */
static void gather(driver_t *driver) {
  int64_t waited = bench_now() - driver->course->gathers;
  if (waited > SETTLE_NS && atomic_load(&driver->shared->gathered) >= driver->job->processes)
    start_all(driver);
  else if (waited > PATIENCE_NS)
    bench_die("%s of %s: a process does not begin", driver->job->scenario, driver->job->subject);
  else
    enter(driver, PHASE_GATHERING, GATHER_S);
}

static void arrive(driver_t *driver) {
  driver->course->gathers = bench_now();
  atomic_fetch_add(&driver->shared->gathered, 1);
  gather(driver);
}

static void begin_filling(runner_t *runner) {
  const doer_t *doer = runner->driver->doer;
  runner->began = 0;
  runner->driver->course->under_way++;
  (doer->fill != NULL ? doer->fill : doer->begin)(runner);
}

/* Where each runner has a key of its own each does it once; else whoever is free. */
static runner_t *next_to_fill(driver_t *driver, runner_t *is_free) {
  return driver->job->keys == driver->job->concurrency ? &driver->runners[driver->turn] : is_free;
}

/* Nobody measures: they go on by themselves until each key was used. */
static void fill(driver_t *driver) {
  if (!driver->job->fill) {
    arrive(driver);
    return;
  }
  enter(driver, PHASE_FILLING, (double)PATIENCE_NS / 1e9);
  unsigned most = driver->job->concurrency < FILL_AT_ONCE ? driver->job->concurrency : FILL_AT_ONCE;
  for (unsigned i = 0; i < most && driver->turn < driver->job->keys; i++)
    begin_filling(next_to_fill(driver, &driver->runners[i]));
  if (driver->course->under_way == 0)
    arrive(driver);
}

/* Alone: connections are made with it. */
static void begin_first(runner_t *runner) {
  if (runner->driver->job->fill)
    begin_filling(runner);
  else
    begin(runner, 0);
}

static void filled_one(runner_t *runner) {
  driver_t *driver = runner->driver;
  if (driver->turn < driver->job->keys)
    begin_filling(next_to_fill(driver, runner));
  else if (driver->course->under_way == 0)
    arrive(driver);
}

/* true if the runners have ended enough operations that their first ones are a small part. Not
 * required with a schedule, or for a recording. */
static bool is_through(const driver_t *driver, uint64_t ended, int64_t since) {
  const job_t *job = driver->job;
  return job->rate > 0 || driver->quiet != NULL || ended >= (uint64_t)ROUNDS * job->concurrency ||
         (double)(bench_now() - since) / 1e9 > ROUNDS_S;
}

static void start_measuring(driver_t *driver) {
  course_t *in = driver->course;
  enter(driver, PHASE_MEASURING, driver->job->seconds);
  meter_ask(&in->meter, &in->before);
  in->belay_before = driver->allocations != NULL ? driver->allocations(driver) : 0;
  in->first = driver->turn;
  in->began = in->turned = bench_now();
}

/* Until something was done, however busy the machine is; and until all keys were used, where that
 * is wanted. Where no turns are counted each runner has a key of its own. */
static bool goes_on(const driver_t *driver) {
  const course_t *in = driver->course;
  double seconds = (double)(bench_now() - in->began) / 1e9;
  bool covers = driver->turn > in->first && driver->turn - in->first < driver->job->keys;
  return (driver->outcome->operations == 0 && seconds < PATIENCE_S) ||
         !is_through(driver, driver->outcome->operations / driver->job->batch, in->began) ||
         (covers && seconds < driver->job->cover);
}

static void end_measuring(driver_t *driver) {
  course_t *in = driver->course;
  outcome_t *o = driver->outcome;
  in->ended = bench_now();
  meter_ask(&in->meter, &in->after);
  o->elapsed = (double)(in->ended - in->began) / 1e9;
  if (driver->allocations != NULL)
    o->belay_allocations = driver->allocations(driver) - in->belay_before;
  enter(driver, PHASE_DRAINING, (double)PATIENCE_NS / 1e9);
  if (driver->job->rate > 0)
    keep_up(driver);
}

static void read_servers(driver_t *driver) {
  course_t *in = driver->course;
  meter_receive(&in->meter, &in->before);
  meter_receive(&in->meter, &in->after);
  meter_add(&in->meter, &in->before, &in->after, driver->outcome);
}

static void close_course(driver_t *driver) {
  course_t *in = driver->course;
  uv_close((uv_handle_t *)&in->timer, NULL);
  uv_close((uv_handle_t *)&in->prepare, NULL);
  uv_close((uv_handle_t *)&in->idle, NULL);
  read_servers(driver);
  if (driver->job->rate > 0)
    alarm_close(&in->schedule);
  alarm_close(&in->hold);
  if (driver->quiet != NULL)
    driver->quiet(driver, false);
  driver->doer->close(driver);
}

static void end_if_idle(driver_t *driver) {
  const course_t *in = driver->course;
  bool begun = driver->job->rate == 0 || in->due >= in->ended;
  if (in->phase == PHASE_DRAINING && in->under_way == 0 && begun)
    close_course(driver);
}

static void on_time(uv_timer_t *timer) {
  driver_t *driver = timer->data;
  switch (driver->course->phase) {
  case PHASE_FIRST:
  case PHASE_FILLING:
    bench_die("%s of %s: nothing is answered", driver->job->scenario, driver->job->subject);
  case PHASE_GATHERING:
    gather(driver);
    break;
  case PHASE_WARMING:
    if (is_through(driver, driver->ended, driver->course->warms))
      start_measuring(driver);
    else
      enter(driver, PHASE_WARMING, GATHER_S);
    break;
  case PHASE_MEASURING:
    if (goes_on(driver)) {
      enter(driver, PHASE_MEASURING, driver->job->seconds);
      break;
    }
    end_measuring(driver);
    end_if_idle(driver);
    break;
  case PHASE_DRAINING:
    bench_die("%s of %s: %u operations do not end", driver->job->scenario, driver->job->subject,
              driver->course->under_way);
  }
}

void driver_done(runner_t *runner) {
  driver_t *driver = runner->driver;
  course_t *in = driver->course;
  int64_t now = bench_now();
  in->under_way--;
  if (in->phase == PHASE_MEASURING)
    driver->outcome->operations += driver->job->batch;
  if (runner->began >= in->began && runner->began < in->ended)
    hist_add(&driver->outcome->latency, (uint64_t)(now - runner->began));
  if (in->phase == PHASE_FIRST) {
    fill(driver);
    return;
  }
  if (in->phase == PHASE_FILLING) {
    filled_one(runner);
    return;
  }
  driver->ended++;
  if (driver->job->rate > 0) {
    runner->next = in->free;
    in->free = runner;
    keep_up(driver);
  } else if (in->phase != PHASE_DRAINING) {
    begin(runner, now);
  }
  end_if_idle(driver);
}

static void let_go(runner_t *runner) {
  driver_t *driver = runner->driver;
  atomic_fetch_sub(&driver->shared->inside, 1);
  driver->course->over(runner);
}

static void wait_for_holder(driver_t *driver) {
  course_t *in = driver->course;
  int64_t left = in->holder != NULL ? in->holder->until - bench_now() : 0;
  if (in->holder != NULL)
    alarm_set(&in->hold, left > 0 ? left : 1, 0);
}

static void on_held(uv_poll_t *poll, int status, int events) {
  driver_t *driver = poll->data;
  course_t *in = driver->course;
  (void)events;
  if (status != 0 || !alarm_is_due(&in->hold))
    return;
  for (runner_t *runner; (runner = in->holder) != NULL && runner->until <= bench_now();) {
    in->holder = runner->next;
    let_go(runner);
  }
  wait_for_holder(driver);
}

static void on_idle(uv_idle_t *idle) {
  driver_t *driver = idle->data;
  runner_t *next, *runner = driver->course->later;
  driver->course->later = NULL;
  uv_idle_stop(idle);
  for (; runner != NULL; runner = next) {
    next = runner->next;
    let_go(runner);
  }
}

static void hold_for(driver_t *driver, runner_t *runner, double seconds) {
  course_t *in = driver->course;
  runner->until = bench_now() + (int64_t)(seconds * 1e9);
  runner->next = NULL;
  if (in->holder != NULL) {
    in->last_holder->next = runner;
    in->last_holder = runner;
    return;
  }
  in->holder = in->last_holder = runner;
  wait_for_holder(driver);
}

void driver_hold(runner_t *runner, int most, double seconds, void (*over)(runner_t *runner)) {
  driver_t *driver = runner->driver;
  course_t *in = driver->course;
  if (atomic_fetch_add(&driver->shared->inside, 1) >= most)
    bench_die("%s of %s: %d have it at once", driver->job->scenario, driver->job->subject,
              most + 1);
  in->over = over;
  if (seconds > 0) {
    hold_for(driver, runner, seconds);
  } else {
    runner->next = in->later;
    in->later = runner;
    uv_idle_start(&in->idle, on_idle);
  }
}

static void control_begin(runner_t *runner) {
  driver_hold(runner, INT_MAX, 0, driver_done);
}

static void control_nothing(driver_t *driver) {
  (void)driver;
}

const doer_t driver_control = {control_nothing, control_begin, control_nothing, NULL};

/* Runs once in each turn. The loop computed in the time in which it did not wait. */
static void on_prepare(uv_prepare_t *prepare) {
  driver_t *driver = prepare->data;
  course_t *in = driver->course;
  int64_t now = bench_now();
  uint64_t waited = uv_metrics_idle_time(&driver->loop);
  double gap = (double)(now - in->turned) / 1e9 - (double)(waited - in->waited) / 1e9;
  if (in->phase == PHASE_MEASURING && gap > driver->outcome->gap)
    driver->outcome->gap = gap;
  in->turned = now;
  in->waited = waited;
}

static void open_course(driver_t *driver) {
  course_t *in = driver->course;
  uv_timer_init(&driver->loop, &in->timer);
  uv_prepare_init(&driver->loop, &in->prepare);
  uv_idle_init(&driver->loop, &in->idle);
  in->timer.data = in->prepare.data = in->idle.data = driver;
  uv_prepare_start(&in->prepare, on_prepare);
  alarm_open(driver, &in->hold, on_held);
}

static uint64_t run(driver_t *driver) {
  const job_t *job = driver->job;
  course_t *in = driver->course;
  if (uv_loop_init(&driver->loop) != 0 ||
      uv_loop_configure(&driver->loop, UV_METRICS_IDLE_TIME) != 0)
    bench_die("no loop");
  driver->runners = bench_alloc(job->concurrency, sizeof *driver->runners);
  for (unsigned i = 0; i < job->concurrency; i++) {
    driver->runners[i].driver = driver;
    driver->runners[i].number = i;
    driver->runners[i].request.data = &driver->runners[i];
  }
  if (driver->quiet == NULL) /* recording: no figures, and the servers are behind taps */
    meter_open(&in->meter, job);
  driver->doer->open(driver);
  open_course(driver);
  enter(driver, PHASE_FIRST, (double)PATIENCE_NS / 1e9);
  begin_first(&driver->runners[0]);
  (void)uv_run(&driver->loop, UV_RUN_DEFAULT);
  if (uv_loop_close(&driver->loop) != 0)
    bench_die("something is left in the loop");
  meter_close(&in->meter);
  free(driver->runners);
  driver->outcome->done = true;
  return driver->ended;
}

uint64_t driver_run_watched(const job_t *job, job_shared_t *shared, const doer_t *doer,
                            void (*quiet)(driver_t *driver, bool before)) {
  course_t course = {.phase = PHASE_FIRST, .began = INT64_MAX, .ended = INT64_MAX};
  driver_t driver = {.job = job,
                     .outcome = &shared->outcome[0],
                     .doer = doer,
                     .shared = shared,
                     .course = &course,
                     .quiet = quiet};
  return run(&driver);
}

void driver_run(const job_t *job, job_shared_t *shared, unsigned process, const doer_t *doer) {
  course_t course = {.phase = PHASE_FIRST, .began = INT64_MAX, .ended = INT64_MAX};
  driver_t driver = {.job = job,
                     .outcome = &shared->outcome[process],
                     .doer = doer,
                     .shared = shared,
                     .course = &course};
  (void)run(&driver);
}

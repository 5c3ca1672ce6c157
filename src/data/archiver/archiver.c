/* The archiver: a candidate who, while he leads, does the days that are over, one after the other.
 *
 *   STANDING --elected--> LOOKING: claims the record, and hears what the last day in it is
 *                           |  ^
 *       no day is over yet  |  |  time; something failed, and retry_ms is over
 *                           v  |
 *                         SLEEPING <--not done well--+
 *                                                    |
 *   LOOKING --a day is--> MERGING --> TELLING --> TOLD --done--> MARKING --written; the next one--> as from LOOKING
 *               into its month's archive,   |  on_day                ^
 *               if that is wanted           +--there is no on_day----+--the day was done before, and is not written
 *
 *   any question that fails --> SLEEPING;  any --deposed--> STANDING;  any --close--> CLOSING --> gone
 *
 * The clock is the server's: the script that reads and writes the record tells it. What the archiver sleeps through is
 * measured by the host's; it wakes once an hour at least, and looks. */
#include "data/archiver/archiver.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "scripts.gen.h"

#define RECORD_MORE_MS (366 * BELAY__DAY_MS) /* that the record outlives what it is about */

enum {
  STANDING, /* made, or deposed; the campaign is on, or was refused and is begun again by the timer */
  LOOKING,  /* elected, or woken: claims the record */
  SLEEPING, /* nothing is to be done, or something failed: the timer is set */
  MERGING,  /* a day is to be done: it goes into its month */
  TELLING,  /* it has: on_day is being told */
  TOLD,     /* on_day was told: belay_archiver_done() is waited for */
  MARKING,  /* it is done: it goes into the record */
  CLOSING   /* closed; what is pending ends */
};

typedef enum event {
  EV_BARRED, /* standing was refused */
  EV_ELECTED,
  EV_DEPOSED,
  EV_WAKE,
  EV_DUE,    /* a day is to be done */
  EV_IDLE,   /* none is */
  EV_MERGED, /* into its month */
  EV_AWAIT,  /* on_day has returned */
  EV_DONE,
  EV_UNDONE,
  EV_FAILED, /* a question */
  EV_CLOSE
} event_t;

static void step(belay_archiver_t *archiver, event_t event);
static void consider(belay_archiver_t *archiver, const belay__archived_t *record);

static belay_t *host_of(const belay_archiver_t *archiver) {
  return archiver->active->handle.client->belay;
}

/* ---- days ---------------------------------------------------------------------------------------------- */

static int64_t day_of(const belay_archiver_t *archiver, int64_t time_ms) {
  return belay__date_floor(time_ms + archiver->active->offset_ms, BELAY__DAY_MS);
}

static int64_t begins_ms(const belay_archiver_t *archiver, int64_t day) {
  return day * BELAY__DAY_MS - archiver->active->offset_ms;
}

int64_t belay__archiver_next(const belay_archiver_t *archiver, int64_t last, int64_t now_ms,
                             int64_t *over) {
  const belay_active_t *active = archiver->active;
  *over = day_of(archiver, now_ms - archiver->delay_ms) - 1;
  /* All periods of it are kept: its first one ends less than the ttl ago. */
  int64_t kept = day_of(archiver, now_ms - active->ttl_ms - active->unit_ms) + 1;
  int64_t next = *over;
  if (last != BELAY__ARCHIVER_NONE)
    next = last + 1;
  else if (archiver->from_ms != 0)
    next = day_of(archiver, archiver->from_ms);
  return next < kept ? kept : next;
}

/* ---- questions ----------------------------------------------------------------------------------------- */

enum { HOW, DAY, NOW_MS, VALUES }; /* of a request about the record */

static int read_record(belay__pending_t *pending, const belay__call_t *call,
                       const belay__reply_t *reply) {
  static const int64_t max[VALUES] = {2, 99991231, BELAY_ACTIVE_TIME_MAX};
  int64_t what, day;
  if (belay__reply_integer(reply, -1, -1, &what))
    return belay__handle_mismatch(call, "it is no record of an archiver's");
  if (reply->type != BELAY__REPLY_ARRAY || reply->count != VALUES)
    return BELAY_EPROTO;
  for (int i = 0; i < VALUES; i++)
    if (!belay__reply_integer(reply->items[i], 0, max[i], &pending->values[i]))
      return BELAY_EPROTO;
  if (pending->values[DAY] != 0 && !belay__date_days(pending->values[DAY], &day))
    return belay__handle_mismatch(call, "it is no record of an archiver's");
  return 0;
}

/* A question is over. False: nobody waits for its answer any more. */
static bool heard(belay_archiver_t *archiver, int status, const char *what) {
  archiver->asking = false;
  if (archiver->state == CLOSING) {
    belay__defer(host_of(archiver), &archiver->task);
    return false;
  }
  bool waits =
      archiver->state == LOOKING || archiver->state == MERGING || archiver->state == MARKING;
  if (waits && status != 0) {
    belay__log(host_of(archiver), BELAY_LOG_WARNING, "archiver: %s: %s", what,
               belay_strerror(status));
    archiver->stats.failed++;
    step(archiver, EV_FAILED);
  }
  return waits && status == 0;
}

static void tell_record(belay_request_t *request, void (*cb)(void), const belay__answer_t *answer) {
  belay_archiver_t *archiver = request->data;
  (void)cb;
  if (!heard(archiver, answer->status, "the record"))
    return;
  consider(archiver, &(belay__archived_t){.how = answer->values[HOW],
                                          .day = answer->values[DAY],
                                          .now_ms = answer->values[NOW_MS] +
                                                    archiver->active->time.shift_us / 1000});
}

static const belay__request_ops_t record_ops = {
    .read = read_record, .tell = tell_record, .idempotent = true};

/* Claims the record, or writes into it that a day is done; 0 or an error. */
static int ask_record(belay_archiver_t *archiver, int32_t done) {
  belay_active_t *active = archiver->active;
  char term[24];
  int term_len = snprintf(term, sizeof term, "%llu", (unsigned long long)archiver->term);
  belay__call_t *call = belay__call_new(active->handle.client, BELAY__LANE_DATA);
  if (call == NULL)
    return BELAY_ENOMEM;
  belay__call_script(call, &belay__script_active_archived, 1, 3);
  belay__active_put_record(active, call);
  belay__call_arg(call, term, (size_t)term_len);
  belay__call_arg_int(call, done);
  belay__call_arg_int(call, active->ttl_ms + RECORD_MORE_MS);
  return belay__handle_start(&active->handle, &archiver->request, call, &record_ops, NULL);
}

static void on_merged(belay_request_t *request, int status, const int64_t *counts, size_t n) {
  belay_archiver_t *archiver = request->data;
  (void)counts, (void)n;
  if (heard(archiver, status, "merging"))
    step(archiver, EV_MERGED);
}

static int ask_merge(belay_archiver_t *archiver) {
  char label[16];
  int n = snprintf(label, sizeof label, "%06d", belay__date_of(archiver->day) / 100);
  return belay_active_archive(
      archiver->active, &archiver->request, begins_ms(archiver, archiver->day),
      begins_ms(archiver, archiver->day + 1) - 1, label, (size_t)n, on_merged);
}

/* ---- what happens -------------------------------------------------------------------------------------- */

static void on_campaigned(belay_election_t *election, int status) {
  belay_archiver_t *archiver = belay_election_data(election);
  if (archiver != NULL && archiver->state == STANDING && status != 0)
    step(archiver, EV_BARRED);
}

void belay__archiver_elected(belay_election_t *election, uint64_t term) {
  belay_archiver_t *archiver = belay_election_data(election);
  if (archiver == NULL || archiver->state == CLOSING)
    return;
  archiver->term = term;
  archiver->stats.elections++;
  step(archiver, EV_ELECTED);
}

void belay__archiver_deposed(belay_election_t *election, belay_lost_t reason) {
  belay_archiver_t *archiver = belay_election_data(election);
  (void)reason;
  if (archiver != NULL && archiver->state != CLOSING)
    step(archiver, EV_DEPOSED);
}

void belay__archiver_on_timer(belay__timer_t *timer) {
  step(BELAY__CONTAINER(timer, belay_archiver_t, timer), EV_WAKE);
}

static void sleep_for(belay_archiver_t *archiver, int64_t ms) {
  belay__timer_set(host_of(archiver), BELAY__RANK_OTHER, &archiver->timer,
                   belay__after_ms(host_of(archiver), ms));
}

static void skip_to(belay_archiver_t *archiver, int64_t last, int64_t next) {
  if (last != BELAY__ARCHIVER_NONE && next > last + 1 && next > archiver->skipped_to) {
    int64_t from = last + 1 > archiver->skipped_to ? last + 1 : archiver->skipped_to;
    archiver->stats.skipped += (uint64_t)(next - from);
    archiver->skipped_to = next;
  }
}

/* The record has been looked at, or written: what comes next. */
static void consider(belay_archiver_t *archiver, const belay__archived_t *record) {
  int64_t last = BELAY__ARCHIVER_NONE, over;
  if (record->how == 0) {
    archiver->stats.fenced++; /* he does what we have not written */
    archiver->done = BELAY__ARCHIVER_NONE;
  }
  if (record->how != 1) {
    step(archiver, EV_FAILED);
    return;
  }
  archiver->stats.last = (int32_t)record->day;
  if (record->day != 0)
    (void)belay__date_days(record->day, &last); /* it was looked at when it was read */
  archiver->stats.completed += archiver->state == MARKING && last == archiver->done;
  if (last >= archiver->done)
    archiver->done = BELAY__ARCHIVER_NONE;
  archiver->day = belay__archiver_next(archiver, last, record->now_ms, &over);
  if (archiver->done != BELAY__ARCHIVER_NONE)
    archiver->day =
        archiver->done; /* it is not in the record: that failed, or the record was lost */
  else
    skip_to(archiver, last, archiver->day);
  if (archiver->day <= over) {
    step(archiver, EV_DUE);
    return;
  }
  int64_t begins = begins_ms(archiver, over + 2) + archiver->delay_ms - record->now_ms;
  begins += (int64_t)belay__random_below(host_of(archiver), (uint64_t)archiver->jitter_ms + 1);
  archiver->day = BELAY__ARCHIVER_NONE;
  step(archiver, EV_IDLE);
  sleep_for(archiver, begins < BELAY__HOUR_MS ? begins : BELAY__HOUR_MS);
}

static void tell_day(belay_archiver_t *archiver) {
  const belay_archiver_day_t day = {
      .date = belay__date_of(archiver->day),
      .from_ms = begins_ms(archiver, archiver->day),
      .to_ms = begins_ms(archiver, archiver->day + 1) - 1,
      .term = archiver->term,
  };
  archiver->stats.told++;
  step(archiver, EV_AWAIT);
  archiver->on_day(archiver, &day);
}

static bool is_through(const belay_archiver_t *archiver) {
  return archiver->election == NULL && !archiver->asking;
}

static void finish(belay_archiver_t *archiver) {
  belay_t *belay = host_of(archiver);
  if (archiver->close_cb != NULL)
    archiver->close_cb(archiver, archiver->data);
  belay__handle_detach(&archiver->active->handle, &archiver->child);
  belay__free_loop(belay);
  belay__free(belay, archiver, sizeof *archiver);
}

/* on_day is told from here, and the end. */
void belay__archiver_on_task(belay__task_t *task) {
  belay_archiver_t *archiver = BELAY__CONTAINER(task, belay_archiver_t, task);
  if (archiver->state == TELLING)
    tell_day(archiver);
  else if (archiver->state == CLOSING && is_through(archiver))
    finish(archiver);
}

static void on_election_closed(belay_election_t *election, void *data) {
  belay_archiver_t *archiver = data;
  (void)election;
  archiver->election = NULL;
  belay__defer(host_of(archiver), &archiver->task);
}

/* ---- the machine --------------------------------------------------------------------------------------- */

/* What each state begins with; returns the state to be in. */

static int doze(belay_archiver_t *archiver) {
  sleep_for(archiver, archiver->retry_ms);
  return SLEEPING;
}

static int stand(belay_archiver_t *archiver) {
  if (belay_election_campaign(archiver->election, on_campaigned) != 0)
    sleep_for(archiver, archiver->retry_ms);
  return STANDING;
}

static int ask(belay_archiver_t *archiver, int state) {
  int error = BELAY_ESTATE; /* an old question was canceled, and is not told yet */
  if (!archiver->asking && state == MERGING)
    error = ask_merge(archiver);
  else if (!archiver->asking)
    error = ask_record(archiver, state == MARKING ? belay__date_of(archiver->day) : 0);
  if (error != 0)
    return doze(archiver);
  archiver->asking = true;
  return state;
}

/* It is in its month. */
static int tell(belay_archiver_t *archiver) {
  if (archiver->on_day != NULL) {
    belay__defer(host_of(archiver), &archiver->task);
    return TELLING;
  }
  archiver->done = archiver->day;
  return ask(archiver, MARKING);
}

static int due(belay_archiver_t *archiver) {
  if (archiver->done == archiver->day)
    return ask(archiver, MARKING);
  return archiver->months ? ask(archiver, MERGING) : tell(archiver);
}

/* Whatever it was about to do. */
static void leave_off(belay_archiver_t *archiver) {
  belay__timer_stop(host_of(archiver), BELAY__RANK_OTHER, &archiver->timer);
  belay__task_stop(host_of(archiver), &archiver->task);
  if (archiver->asking)
    (void)belay_request_cancel(&archiver->request);
}

/* Where the client closes the election does not tell when it is gone: nothing more is heard of it. */
static int start_close(belay_archiver_t *archiver) {
  leave_off(archiver);
  if (belay_election_close(archiver->election, on_election_closed) != 0) {
    belay_election_set_data(archiver->election, NULL);
    archiver->election = NULL;
  }
  belay__defer(host_of(archiver), &archiver->task);
  return CLOSING;
}

static int next_state(belay_archiver_t *archiver, event_t event) {
  switch (event) {
  case EV_BARRED:
    sleep_for(archiver, archiver->retry_ms);
    return STANDING;
  case EV_ELECTED:
    return ask(archiver, LOOKING);
  case EV_DEPOSED:
    leave_off(archiver);
    return stand(archiver);
  case EV_WAKE:
    return archiver->state == STANDING ? stand(archiver) : ask(archiver, LOOKING);
  case EV_DUE:
    return due(archiver);
  case EV_IDLE:
    return SLEEPING;
  case EV_MERGED:
    return tell(archiver);
  case EV_AWAIT:
    return TOLD;
  case EV_DONE:
    return ask(archiver, MARKING);
  case EV_UNDONE:
  case EV_FAILED:
    return doze(archiver);
  case EV_CLOSE:
    return start_close(archiver);
  }
  return archiver->state;
}

/* All transitions. */
static void step(belay_archiver_t *archiver, event_t event) {
  assert(archiver->state != CLOSING);
  archiver->state = (uint8_t)next_state(archiver, event);
}

/* ---- from outside -------------------------------------------------------------------------------------- */

void belay__archiver_start(belay_archiver_t *archiver) {
  archiver->state = (uint8_t)stand(archiver);
}

void belay__archiver_child_close(belay__child_t *child) {
  belay_archiver_t *archiver = BELAY__CONTAINER(child, belay_archiver_t, child);
  if (archiver->state != CLOSING)
    step(archiver, EV_CLOSE);
}

static int check(const belay_archiver_t *archiver) {
  int error = archiver == NULL ? BELAY_EINVAL
                               : belay__handle_check((const belay__handle_t *)archiver->active);
  return error == 0 && archiver->state == CLOSING ? BELAY_ECLOSING : error;
}

int belay_archiver_done(belay_archiver_t *archiver, int32_t date, bool well) {
  int error = check(archiver);
  if (error != 0)
    return error;
  if (archiver->state != TOLD || belay__date_of(archiver->day) != date)
    return BELAY_ESTATE;
  archiver->done = well ? archiver->day : BELAY__ARCHIVER_NONE;
  step(archiver, well ? EV_DONE : EV_UNDONE);
  return 0;
}

int belay_archiver_close(belay_archiver_t *archiver, belay_archiver_close_cb cb) {
  int error = check(archiver);
  if (error != 0)
    return error;
  archiver->close_cb = cb;
  step(archiver, EV_CLOSE);
  return 0;
}

/* A command that is run while something is held that may be lost, and that is gone before it could
 * be someone else's. */
#ifndef BELAY_CLI_RUN_GUARDED_COMMAND_H
#define BELAY_CLI_RUN_GUARDED_COMMAND_H

#include <uv.h>

#include "run/capture.h"
#include "harness.h"
#include "run/supervisor.h"
#include "ui/text.h"

typedef struct guarded guarded_t;

/* It is over, and the struct the caller's again. */
typedef void (*guarded_end_cb)(guarded_t *guarded);

/* For how long what it needs is held for certain, in microseconds; 0: it is not. */
typedef int64_t (*guarded_left_fn)(void *data);

enum {
  GUARDED_SIGNALS = 6,
  GUARDED_NOTES = GUARDED_SIGNALS + HARNESS_SIGNALS + 2 /* each signal, SIGKILL, and the limits */
};

/* The caller zeroes it and fills in these: */
struct guarded {
  guarded_left_fn left;
  /* SIGTERM comes so long before it is not held any more; SIGKILL a tenth of that before */
  int64_t grace_ms;
  /* SIGTERM after so many milliseconds, and SIGKILL when nine tenths of grace_ms are over; 0: no
   * limit */
  int64_t max_runtime_ms;
  /* where its standard output and error go; NULL: they are ours. Beside `output` NULL */
  capture_t *capture;
  guarded_end_cb on_end;
  void *data;     /* handed to left */
  text_t *output; /* what it writes to standard output; NULL: it has ours. What is there is kept */
  size_t output_max;

  /* At the end: */
  int status;   /* of status.h: what it returned, 128 + N, or 126, 127, 123, which were said */
  bool started; /* it was run */
  bool overdue; /* it was ended since its time was over */
  /* it was ended since max_runtime_ms were over, and its status is STATUS_TIMED_OUT */
  bool timed_out;
  bool too_much; /* since it has written more than output_max */
  /* its output was not read to the end: something that it has left behind kept it open */
  bool not_all;

  /* Of the errand's own. */
  harness_t *harness;
  const char *name;
  int64_t until;     /* supervisor_now(): what the keeper was told */
  int64_t run_until; /* supervisor_now(): when max_runtime_ms are over */
  pid_t command;
  uv_process_t process;
  uv_pipe_t channel, pipe;
  uv_timer_t timer;
  uv_signal_t signal[GUARDED_SIGNALS];
  unsigned handles, waiting; /* that are not closed; whose end is waited for */
  bool has_status;           /* how it ended is known */
  bool lost;                 /* guarded_set_lost() */
  bool ignored_one;          /* a signal has come after its end */
  int end_signal;            /* the signal by which somebody wants it to end; 0: nobody does */
  int supervisor_signal;     /* a signal; 0: of none */
  size_t len;
  supervisor_note_t note;
  supervisor_note_t queued[GUARDED_NOTES]; /* to the keeper, in order; each kind of note once */
  size_t queued_n;
  supervisor_note_t writing; /* that the channel had no room for */
  uv_write_t write;
  bool is_writing;
  char buffer[65536];
};

/* The grace that goes with a ttl: 0 becomes the default, a sixth. NULL; or what is wrong, in words:
 * it is too long. */
const char *guarded_set_grace(int64_t ttl_ms, int64_t *grace_ms);

#define GUARDED_GRACE_OPTION(where)                                                                \
  DURATION("grace", 1, DAY_MS / 3, (where),                                                        \
           "if no renewal is confirmed, SIGTERM this time before the lease ends, and SIGKILL "     \
           "when nine tenths of it are over; at most a third of --ttl; default a sixth")

#define GUARDED_MAX_RUNTIME_OPTION(where)                                                          \
  DURATION("max-runtime", 1, YEAR_MS, (where),                                                     \
           "SIGTERM when the command has run for this time, SIGKILL when nine tenths of --grace "  \
           "are over too; the status is 124; default: no limit")

/* Of the command line: the status where another holds it, guarded_t's capture, and who we are to
 * others. */
#define GUARDED_CONFLICT_OPTION(where)                                                             \
  NUMBER("conflict-exit-code", 0, 255, (where),                                                    \
         "the status if someone else holds it, or the wait is over; default 121", .letter = 'E',   \
         .value = "STATUS")
#define GUARDED_QUIET_OPTION(where)                                                                \
  FLAG("quiet-unless-failed", (where),                                                             \
       "show what the command writes only if the status is not 0, at the end: standard output, "   \
       "then standard error")
#define GUARDED_LABEL_OPTION                                                                       \
  TEXT("as", "LABEL", &common.label,                                                               \
       "who holds it, as others are shown it: 1 to 64 printable characters without spaces; "       \
       "default HOST:PID")

/* Runs a command, NULL-ended, in a process group of its own under a keeper. on_end comes in any
 * case, later. */
void guarded_start(guarded_t *guarded, harness_t *harness, char **command);

/* What it needs is held for longer, or shorter, than before: it would be noticed soon in any
 * case. */
void guarded_check_limits(guarded_t *guarded);

/* Hands a signal on to it: SIGKILL, or one that the harness watches. If only its output is waited
 * for any more, that is given up, and a status of 0 becomes the signal's. Nothing happens if it is
 * over. */
void guarded_signal(guarded_t *guarded, int signum);

/* Whether it was started and is not over. */
bool guarded_is_running(const guarded_t *guarded);

/* What it needs was lost: says why, once, and its status is STATUS_LOST. */
void guarded_set_lost(guarded_t *guarded, const char *why);

/* A signal that the harness watches, in whatever state: while the command runs it is handed on. When that has ended, what is
 * held for it is being given back, or is noted, within --timeout: the first one is let pass, since that is not to be
 * dropped. false: it is to end belay. */
bool guarded_on_signal(guarded_t *guarded, int signum);

/* Where this very program is: what lies where it was started may be another one by now. */
const char *guarded_own_path(void);

#endif /* BELAY_CLI_RUN_GUARDED_COMMAND_H */

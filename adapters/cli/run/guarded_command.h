/* Guarded commands: a command that runs under a lease, and is ended before another process can get
 * the lease. */
#ifndef BELAY_CLI_RUN_GUARDED_COMMAND_H
#define BELAY_CLI_RUN_GUARDED_COMMAND_H

#include <uv.h>

#include "harness.h"
#include "run/supervisor.h"
#include "ui/text.h"

typedef struct guarded guarded_t;

/* Called when the command has ended and all handles are closed. The struct belongs to the caller
 * again. */
typedef void (*guarded_end_cb)(guarded_t *guarded);

/* Return the time that the lease is certain to last, in microseconds; 0: it is lost. */
typedef int64_t (*guarded_left_fn)(void *data);

enum {
  GUARDED_SIGNALS = 6,
  GUARDED_NOTES = GUARDED_SIGNALS + HARNESS_SIGNALS + 2 /* each signal, SIGKILL, and the limits */
};

/* The caller zeroes the struct and sets these fields: */
struct guarded {
  guarded_left_fn left;
  /* Milliseconds from SIGTERM to the end of the lease. SIGKILL follows when nine tenths of it are
   * over. */
  int64_t grace_ms;
  guarded_end_cb on_end;
  void *data; /* argument of left */
  /* Buffer to which standard output of the command is appended; NULL: the command shares that of
   * belay. */
  text_t *output;
  size_t output_max;

  /* Results, valid in on_end: */
  /* Exit status as in status.h: the status of the command, 128 + its signal, or 126, 127 or 123,
   * for which a message was printed. */
  int status;
  bool started;  /* true if the command was started */
  bool overdue;  /* true if it was ended because the lease was nearly over */
  bool too_much; /* true if it was ended because it wrote more than output_max */
  /* true if its output was not read to the end, because a process that it left behind kept it
   * open */
  bool not_all;

  /* Private fields. */
  harness_t *harness;
  const char *name;
  /* supervisor_now(): the end of the lease as it was last sent to the supervisor */
  int64_t until;
  pid_t command;
  uv_process_t process;
  uv_pipe_t channel, pipe;
  uv_timer_t timer;
  uv_signal_t signal[GUARDED_SIGNALS];
  /* number of open handles; number of event sources (process, channel, output) that have not
   * ended */
  unsigned handles, waiting;
  bool has_status;       /* true if the status is known */
  bool lost;             /* set by guarded_set_lost() */
  bool ignored_one;      /* true if one signal was ignored after the command had ended */
  int end_signal;        /* the last signal that asks the command to end; 0: none */
  int supervisor_signal; /* the signal that ended the supervisor; 0: none */
  size_t len;
  supervisor_note_t note;
  /* notes for the supervisor, in order; each kind of note at most once */
  supervisor_note_t queued[GUARDED_NOTES];
  size_t queued_n;
  supervisor_note_t writing; /* the note that the channel could not take at once */
  uv_write_t write;
  bool is_writing;
  char buffer[65536];
};

/* Set the default grace if it is 0: a sixth of the ttl. Returns NULL, or a message if the grace is
 * too long. */
const char *guarded_set_grace(int64_t ttl_ms, int64_t *grace_ms);

#define GUARDED_GRACE_OPTION(where)                                                                \
  DURATION("grace", 1, DAY_MS / 3, (where),                                                        \
           "if no renewal is confirmed, send SIGTERM this time before the lease ends, and "        \
           "SIGKILL when nine tenths of it are over; at most a third of --ttl; default a sixth "   \
           "of --ttl")

/* Options of the command line: the status if another process holds the lock, and the label of this
 * process. */
#define GUARDED_CONFLICT_OPTION(where)                                                             \
  NUMBER("conflict-exit-code", 0, 255, (where),                                                    \
         "exit status if another process holds it, or the wait is over; default 121",              \
         .letter = 'E', .value = "STATUS")
#define GUARDED_LABEL_OPTION                                                                       \
  TEXT("as", "LABEL", &common.label,                                                               \
       "label of this process for belay ls and show: 1 to 64 printable characters without "        \
       "spaces; default HOST:PID")

/* Set BELAY_NAME, BELAY_FENCE and BELAY_DEADLINE of the command. A number of 0 removes the
 * variable, which an outer belay may have set. */
void guarded_set_environment(const char *name, uint64_t fence, uint64_t deadline);

/* Run a command (NULL-terminated) in its own process group under a supervisor. on_end is called
 * later in any case. */
void guarded_start(guarded_t *guarded, harness_t *harness, char **command);

/* Send the new end of the lease to the supervisor after the lease was renewed or lost. A timer does
 * so too, a little later. */
void guarded_check_limits(guarded_t *guarded);

/* Forward a signal to the command: SIGKILL, or one that the harness watches. If the command has
 * ended and only its output is still open, stop reading; a status of 0 then becomes that of the
 * signal. Does nothing if everything has ended. */
void guarded_signal(guarded_t *guarded, int signum);

/* Return true if the command was started and has not ended. */
bool guarded_is_running(const guarded_t *guarded);

/* Report once that the lease was lost, and set the status to STATUS_LOST. */
void guarded_set_lost(guarded_t *guarded, const char *why);

/* Handle a signal that the harness watches, in any state. While the command runs, the signal is
 * forwarded. After that the caller releases the lease within --timeout, and the first signal is
 * ignored so that the release can finish. Returns false if the signal has to end belay. */
bool guarded_on_signal(guarded_t *guarded, int signum);

/* Return the path of this program's file. The path that was used to start belay may name another
 * file by now. */
const char *guarded_own_path(void);

#endif /* BELAY_CLI_RUN_GUARDED_COMMAND_H */

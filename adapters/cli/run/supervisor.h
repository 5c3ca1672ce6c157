/* The keeper: a process of its own, between belay and a command that it runs, which ends the
 * command in time whatever becomes of belay: guarded_command.h is who starts it. */
#ifndef BELAY_CLI_RUN_SUPERVISOR_H
#define BELAY_CLI_RUN_SUPERVISOR_H

#include <stdint.h>

/* What belay and its keeper write to each other, whole, on a stream socket. */
typedef enum supervisor_word {
  SUPERVISOR_LIMITS = 1, /* belay: end it at term_at, and in any case at kill_at */
  SUPERVISOR_SIGNAL,     /* belay: hand signal `number` on to it */
  SUPERVISOR_CONTINUE,   /* belay: it was continued itself */
  /* keeper: it is process `number`, which leads a group of its own; 0: it was too late for that */
  SUPERVISOR_STARTED,
  SUPERVISOR_FAILED,  /* keeper: it cannot be run after all: errno `number` */
  SUPERVISOR_STOPPED, /* keeper: the terminal has stopped it */
  SUPERVISOR_OVERDUE, /* keeper: its time is over, and it is being ended */
  SUPERVISOR_ENDED    /* keeper: it has ended, with the status `number` of waitpid() */
} supervisor_word_t;

typedef struct supervisor_note {
  int32_t word, number;
  int64_t term_at, kill_at; /* supervisor_now() */
} supervisor_note_t;

/* Nanoseconds of a clock that all processes share, that nobody sets, and that runs on while the
 * machine sleeps. */
int64_t supervisor_now(void);

#define SUPERVISOR_NAME "keep-command"

/* belay keep-command SOCKET IGNORED TERM_AT KILL_AT COMMAND...: IGNORED has bit N of each signal N
 * that the command is to ignore. */
int command_supervisor(int argc, char **argv);

#endif /* BELAY_CLI_RUN_SUPERVISOR_H */

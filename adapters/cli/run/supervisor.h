/* The supervisor: a separate process between belay and a guarded command. It ends the command in
 * time even if belay is stopped or killed. guarded_command.h starts it. */
#ifndef BELAY_CLI_RUN_SUPERVISOR_H
#define BELAY_CLI_RUN_SUPERVISOR_H

#include <stdint.h>

/* Notes between belay and the supervisor, sent whole on a stream socket. */
typedef enum supervisor_word {
  SUPERVISOR_LIMITS = 1, /* from belay: end the command at term_at, and kill it at kill_at */
  SUPERVISOR_SIGNAL,     /* from belay: forward signal `number` to the command */
  SUPERVISOR_CONTINUE,   /* from belay: belay was continued */
  /* from the supervisor: the command is process `number`, which leads its own group; 0: it was too
   * late to start it */
  SUPERVISOR_STARTED,
  SUPERVISOR_FAILED,  /* from the supervisor: the command cannot be run; errno is `number` */
  SUPERVISOR_STOPPED, /* from the supervisor: the terminal has stopped the command */
  SUPERVISOR_OVERDUE, /* from the supervisor: the time is over, and the command is being ended */
  /* from the supervisor: the command has ended; `number` is the status of waitpid() */
  SUPERVISOR_ENDED
} supervisor_word_t;

typedef struct supervisor_note {
  int32_t word, number;
  int64_t term_at, kill_at; /* supervisor_now() */
} supervisor_note_t;

/* Return the time in nanoseconds. All processes share this clock, no process can set it, and it
 * runs while the machine sleeps. */
int64_t supervisor_now(void);

#define SUPERVISOR_NAME "supervise"

/* belay supervise SOCKET IGNORED TERM_AT KILL_AT COMMAND...: bit N of IGNORED is set if the
 * command has to ignore signal N. */
int command_supervisor(int argc, char **argv);

#endif /* BELAY_CLI_RUN_SUPERVISOR_H */

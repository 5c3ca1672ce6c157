/* The exit statuses. The manual prints the same list. */
#ifndef BELAY_CLI_UI_STATUS_H
#define BELAY_CLI_UI_STATUS_H

/* X(NAME, value, text). The status of a guarded command is passed on; commands rarely use the high
 * values. */
#define STATUSES(X)                                                                                \
  X(YES, 0, "success; or the answer is yes")                                                       \
  X(NO, 1, "the answer is no: denied, not found, not allowed; no error occurred")                  \
  X(USAGE, 2, "the command line, the environment or the configuration is wrong; nothing was done") \
  X(UNREACHABLE, 120, "no server could be reached, or too few can vote; nothing was done")         \
  X(NOT_ACQUIRED, 121,                                                                             \
    "not acquired: another process holds it, or the wait is over; -E sets another status")         \
  X(LOST, 122, "the lease was lost while the command ran, or before --hold was over")              \
  X(TROUBLE, 123, "another error: refused, unknown outcome, or the output could not be written")   \
  X(CANNOT_RUN, 126, "the command was found but cannot be run")                                    \
  X(NO_COMMAND, 127, "the command was not found")                                                  \
  X(SIGNAL, 128, "and N: the command, or belay itself, was ended by signal N")

/* STATUS_YES and so on. */
enum {
#define STATUS_ENUM(name, value, text) STATUS_##name = (value),
  STATUSES(STATUS_ENUM)
#undef STATUS_ENUM
};

/* Return the status for an error of belay: _USAGE, _UNREACHABLE or _TROUBLE; _YES for 0. Each
 * command itself handles errors that are normal results (BELAY_EHELD, BELAY_EABSENT, ...). */
int status_of(int error);

#endif /* BELAY_CLI_UI_STATUS_H */

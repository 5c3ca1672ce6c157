/* The table of refusals: the meaning of a server's error replies. */
#ifndef BELAY_CORE_CALL_REFUSAL_H
#define BELAY_CORE_CALL_REFUSAL_H

#include <stdbool.h>
#include <stddef.h>

typedef enum belay__remedy {
  BELAY__REMEDY_NONE,      /* the call ends with the error */
  BELAY__REMEDY_RETRY,     /* back off, then send the call again, until the deadline */
  BELAY__REMEDY_RECONNECT, /* drop the connection, then as RETRY */
  /* as RECONNECT, because the next connection begins with AUTH; a second such error in a row ends
   * the call */
  BELAY__REMEDY_REAUTH,
  /* send the call to the server that the error names, at most five times */
  BELAY__REMEDY_REDIRECT,
  BELAY__REMEDY_EVAL /* send the script's text, on the same connection */
} belay__remedy_t;

typedef struct belay__refusal {
  const char *prefix; /* Start of the error text; it must be followed by a space or by the end */
  int error;
  belay__remedy_t remedy;
  bool may_have_written; /* true if a script may stop with this error after a write */
} belay__refusal_t;

/* Return the row of the table for an error reply. Errors without a row of their own get the last
 * row: prefix "", BELAY_EREFUSED. */
const belay__refusal_t *belay__refusal_find(const char *text, size_t len);

/* Return the number of the script line that raised the error; 0: no script raised it, or the server
 * does not report the line. */
unsigned belay__refusal_line(const char *text, size_t len);

/* True for an error that a retry would get again: one that is neither retryable
 * (belay_err_retryable()) nor BELAY_EUNKNOWN nor BELAY_EPROTO. */
bool belay__refusal_is_lasting(int status);

#endif /* BELAY_CORE_CALL_REFUSAL_H */

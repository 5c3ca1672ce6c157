/* What a server's refusal means: one table. */
#ifndef BELAY_CORE_CALL_REFUSAL_H
#define BELAY_CORE_CALL_REFUSAL_H

#include <stdbool.h>
#include <stddef.h>

typedef enum belay__remedy {
  BELAY__REMEDY_NONE,      /* the call ends with the error */
  BELAY__REMEDY_RETRY,     /* back off, ask again until the deadline */
  BELAY__REMEDY_RECONNECT, /* drop the connection, then as RETRY */
  BELAY__REMEDY_REAUTH,    /* the same, but once: the next connection begins with AUTH */
  BELAY__REMEDY_REDIRECT,  /* ask the server that it names, at most five times */
  BELAY__REMEDY_EVAL       /* send the script's text, on the same connection */
} belay__remedy_t;

typedef struct belay__refusal {
  const char *prefix; /* the reply begins with this and ends or goes on with a space after it */
  int error;
  belay__remedy_t remedy;
  bool may_have_written; /* a script may stop with this error after a write */
} belay__refusal_t;

/* The row for an error reply. One that no row names is BELAY_EREFUSED, whose prefix is "". */
const belay__refusal_t *belay__refusal_find(const char *text, size_t len);

/* The line of the script on which the error was raised; 0: it was not, or the server does not tell. */
unsigned belay__refusal_line(const char *text, size_t len);

/* true for a refusal that will be the same next time. */
bool belay__refusal_is_lasting(int status);

#endif /* BELAY_CORE_CALL_REFUSAL_H */

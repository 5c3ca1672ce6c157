/* What a command says while it waits for something that another process holds. */
#ifndef BELAY_CLI_RUN_WAITING_H
#define BELAY_CLI_RUN_WAITING_H

#include "harness.h"

typedef struct waiting waiting_t;

/* Why the wait cannot end at present, in words: no server answers, say. NULL: it can. Valid to the
 * next call. */
typedef const char *(*waiting_trouble_fn)(const waiting_t *waiting);

/* The caller zeroes it and fills in these: */
struct waiting {
  belay_held_kind_t kind; /* of what it waits for */
  /* its name; NULL: the holder cannot be asked for, since the key is an exact one */
  const char *name;
  /* NULL: the servers are asked who holds it, and trouble is that they do not answer */
  waiting_trouble_fn trouble;

  /* Of waiting.c. */
  harness_t *harness; /* NULL: it has not begun, or has ended */
  uv_timer_t timer;
  belay_request_t request;
  bool asking;          /* request, or a ping, is pending */
  size_t next;          /* the server that is asked next */
  char words[1024];     /* of an answer that is an error */
  uint64_t reported_at; /* uv_now() when trouble was told last; 0: there is none */
  uint64_t named_at;    /* uv_now() when the holder was named last */
  uint64_t mark;        /* the holder that was named last */
};

/* Says on standard error, from now on and until waiting_pause():
 *
 *   - trouble: at once, and then every minute; and when it is over;
 *   - with --verbose who holds it, and for how long: when the holder changes, and then every ten seconds.
 *
 * The first look is after a second, but at once where trouble is NULL. */
void waiting_begin(waiting_t *waiting, harness_t *harness);

/* Says nothing more until waiting_begin() is called again. */
void waiting_pause(waiting_t *waiting);

/* Before the harness is done; does nothing if it has not begun, or has ended. */
void waiting_end(waiting_t *waiting);

#endif /* BELAY_CLI_RUN_WAITING_H */

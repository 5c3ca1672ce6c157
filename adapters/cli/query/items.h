/* The items of a command: its arguments, or the lines of standard input if there are no arguments
 * or the only one is "-". Items come in batches. No input is read while a batch is processed, so
 * the writer waits. */
#ifndef BELAY_CLI_QUERY_ITEMS_H
#define BELAY_CLI_QUERY_ITEMS_H

#include "harness.h"

#define ITEMS_BATCH 1024                     /* most items of a batch */
#define ITEMS_LINE_MAX ((size_t)1024 * 1024) /* bytes of a line */

typedef struct items items_t;

/* Receives the next n items, at least one; valid until items_next(). An item is a line without its
 * end; the last line needs no end. Input from a pipe is passed on as soon as it arrives. */
typedef void (*items_batch_cb)(items_t *items, const belay_bytes_t *batch, size_t n);

/* Called at the end. wrong: the text of an error, or NULL. */
typedef void (*items_end_cb)(items_t *items, const char *wrong);

typedef enum items_source {
  ITEMS_NONE, /* stopped, or not started */
  ITEMS_ARGUMENTS,
  ITEMS_FILE,  /* standard input, which can be read at any time */
  ITEMS_STREAM /* standard input, which is readable now and then */
} items_source_t;

/* Must be valid until the loop has ended. */
struct items {
  harness_t *harness;
  items_batch_cb on_batch;
  items_end_cb on_end;

  items_source_t source;
  size_t next;    /* of the arguments */
  bool over;      /* true if standard input has ended */
  uint64_t lines; /* number of lines that were passed on */
  /* A buffer of size bytes. The bytes from..to were read and not passed on yet. There is no line
   * end between from and looked. */
  char *bytes;
  size_t size, from, to, looked;
  belay_bytes_t batch[ITEMS_BATCH];
  int flags; /* of standard input before; -1: unknown */
  uv_poll_t input;
};

/* Start with the arguments from `first` on, or with lines. The first batch, or the end, may come
 * inside this call. */
void items_start(items_t *items, harness_t *harness, size_t first, items_batch_cb on_batch,
                 items_end_cb on_end);

/* Ask for the next batch. Must not be called inside on_batch. */
void items_next(items_t *items);

/* Stop without calling on_end, and close the handles. Call it before harness_done(). Legal any
 * number of times, also if nothing was started. */
void items_stop(items_t *items);

#endif /* BELAY_CLI_QUERY_ITEMS_H */

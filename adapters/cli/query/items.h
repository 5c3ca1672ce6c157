/* A command's items: its arguments, or the lines of standard input if there are no arguments or
 * one is "-". Items come in batches. No input is read while a batch is processed, so the writer
 * waits. */
#ifndef BELAY_CLI_QUERY_ITEMS_H
#define BELAY_CLI_QUERY_ITEMS_H

#include "harness.h"

#define ITEMS_BATCH 1024                     /* at most */
#define ITEMS_LINE_MAX ((size_t)1024 * 1024) /* bytes of a line */

typedef struct items items_t;

/* The next n items, at least one; valid until items_next(). An item of a line is the text before
 * its end; the last line needs no end. Input from a pipe is passed on as soon as it arrives. */
typedef void (*items_batch_cb)(items_t *items, const belay_bytes_t *batch, size_t n);

/* There are no more; wrong: why not, in words, or NULL. */
typedef void (*items_end_cb)(items_t *items, const char *wrong);

typedef enum items_source {
  ITEMS_NONE, /* stopped, or not begun */
  ITEMS_ARGUMENTS,
  ITEMS_FILE,  /* standard input, which can be read at any time */
  ITEMS_STREAM /* standard input, which is readable now and then */
} items_source_t;

/* Lives until the loop has ended. */
struct items {
  harness_t *harness;
  items_batch_cb on_batch;
  items_end_cb on_end;

  items_source_t source;
  size_t next; /* of the arguments */
  char separator;
  bool over;      /* nothing more will be read */
  uint64_t lines; /* lines given */
  /* What was read: size bytes, of which from..to are not given yet. There is no line end between
   * from and looked. */
  char *bytes;
  size_t size, from, to, looked;
  belay_bytes_t batch[ITEMS_BATCH];
  int flags; /* of standard input before; -1: unknown */
  uv_poll_t input;
};

/* Begins with the arguments from `first` on, or with lines; null: lines end with a 0 byte.
 * `data` is for the caller. The first batch, or the end, may come inside this call. */
void items_begin(items_t *items, harness_t *harness, size_t first, bool null,
                 items_batch_cb on_batch, items_end_cb on_end);

/* The batch was dealt with. Not inside on_batch. */
void items_next(items_t *items);

/* No more, and on_end does not come either; closes what is open. Before harness_done(), whatever
 * has ended it; legal any number of times, also if nothing was begun. */
void items_stop(items_t *items);

#endif /* BELAY_CLI_QUERY_ITEMS_H */

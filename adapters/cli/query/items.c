#include "query/items.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHUNK ((size_t)64 * 1024) /* bytes of a read() */

/* ---- the end ---- */

void items_stop(items_t *items) {
  if (items->source == ITEMS_STREAM) {
    uv_close((uv_handle_t *)&items->input, NULL);
    /* other processes may share the pipe, and expect blocking reads */
    if (items->flags != -1)
      (void)fcntl(STDIN_FILENO, F_SETFL, items->flags);
  }
  items->source = ITEMS_NONE;
  free(items->bytes);
  items->bytes = NULL;
}

static void end(items_t *items, const char *wrong) {
  items_stop(items);
  items->on_end(items, wrong);
}

/* ---- lines ---- */

static bool too_long(const items_t *items) {
  return items->to - items->from > ITEMS_LINE_MAX;
}

/* Take a line from the buffer. Returns false if it is not complete, or too long. */
static bool take_line(items_t *items, belay_bytes_t *out) {
  const char *from = items->bytes + items->from, *end = items->bytes + items->to;
  const char *found = NULL;
  if (items->looked < items->to)
    found = memchr(items->bytes + items->looked, '\n', items->to - items->looked);
  if (found != NULL)
    end = found;
  else
    items->looked = items->to;
  if ((found == NULL && (!items->over || from == end)) || (size_t)(end - from) > ITEMS_LINE_MAX)
    return false;
  *out = (belay_bytes_t){from, (size_t)(end - from)};
  items->from = items->looked = (size_t)(end - items->bytes) + (found != NULL);
  items->lines++;
  return true;
}

/* Make room for a read, and move the bytes to the front. */
static bool make_room(items_t *items) {
  size_t rest = items->to - items->from;
  if (items->size < rest + CHUNK) {
    size_t size = 2 * rest + CHUNK;
    char *bytes = malloc(size);
    if (bytes == NULL)
      return false;
    if (rest > 0)
      memcpy(bytes, items->bytes + items->from, rest);
    free(items->bytes);
    items->bytes = bytes;
    items->size = size;
  } else
    memmove(items->bytes, items->bytes + items->from, rest);
  items->looked -= items->from;
  items->from = 0;
  items->to = rest;
  return true;
}

static void read_more(items_t *items);

/* Handle the result of a read: a number of bytes, 0 at the end, or an error. */
static void on_bytes(items_t *items, ssize_t n) {
  static char wrong[96];
  if (n < 0) {
    (void)snprintf(wrong, sizeof wrong, "standard input cannot be read: %s", uv_strerror((int)n));
    end(items, wrong);
    return;
  }
  items->over = n == 0;
  items->to += (size_t)n;
  items_next(items);
}

static void next_lines(items_t *items) {
  static char wrong[96];
  size_t n = 0;
  while (n < ITEMS_BATCH && take_line(items, &items->batch[n]))
    n++;
  if (n > 0)
    items->on_batch(items, items->batch, n);
  else if (too_long(items)) {
    (void)snprintf(wrong, sizeof wrong, "line %" PRIu64 " is longer than %zu bytes",
                   items->lines + 1, ITEMS_LINE_MAX);
    end(items, wrong);
  } else if (items->over)
    end(items, NULL);
  else
    read_more(items);
}

/* ---- standard input ---- */

/* Returns the number of bytes, 0 at the end, or an error. */
static ssize_t read_some(items_t *items) {
  ssize_t n;
  do
    n = read(STDIN_FILENO, items->bytes + items->to, CHUNK);
  while (n < 0 && errno == EINTR);
  return n < 0 ? uv_translate_sys_error(errno) : n;
}

static void on_readable(uv_poll_t *poll, int status, int events) {
  items_t *items = poll->data;
  (void)events;
  ssize_t n = status < 0 ? status : read_some(items);
  if (n == UV_EAGAIN)
    return;
  (void)uv_poll_stop(poll);
  on_bytes(items, n);
}

static void read_more(items_t *items) {
  if (!make_room(items))
    on_bytes(items, UV_ENOMEM);
  else if (items->source == ITEMS_FILE)
    on_bytes(items, read_some(items));
  else
    (void)uv_poll_start(&items->input, UV_READABLE, on_readable);
}

/* Returns 0 or an error. Files, and devices such as /dev/null, cannot be polled: their reads do not
 * block. */
static int open_input(items_t *items) {
  items->flags = fcntl(STDIN_FILENO, F_GETFL);
  int error = uv_poll_init(&items->harness->loop, &items->input, STDIN_FILENO);
  items->input.data = items;
  if (error == 0 && isatty(STDIN_FILENO)) /* the shell expects a blocking terminal */
    (void)fcntl(STDIN_FILENO, F_SETFL, items->flags);
  items->source = error == 0 ? ITEMS_STREAM : error == UV_EPERM ? ITEMS_FILE : ITEMS_NONE;
  return items->source == ITEMS_NONE ? error : 0;
}

/* ---- batches ---- */

static void next_arguments(items_t *items) {
  size_t left = items->harness->arguments->n - items->next,
         n = left < ITEMS_BATCH ? left : ITEMS_BATCH;
  for (size_t i = 0; i < n; i++)
    items->batch[i] = items->harness->items[items->next++];
  if (n > 0)
    items->on_batch(items, items->batch, n);
  else
    end(items, NULL);
}

void items_next(items_t *items) {
  if (items->source == ITEMS_ARGUMENTS)
    next_arguments(items);
  else if (items->source != ITEMS_NONE)
    next_lines(items);
}

void items_start(items_t *items, harness_t *harness, size_t first, items_batch_cb on_batch,
                 items_end_cb on_end) {
  const arguments_t *arguments = harness->arguments;
  *items = (items_t){.harness = harness, .on_batch = on_batch, .on_end = on_end, .next = first};
  size_t n = arguments->n - first;
  int error = 0;
  if (n > 1 || (n == 1 && strcmp(arguments->item[first], "-") != 0))
    items->source = ITEMS_ARGUMENTS;
  else
    error = open_input(items);
  if (error != 0)
    on_bytes(items, error);
  else
    items_next(items);
}

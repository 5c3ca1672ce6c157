#include "query/items.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHUNK ((size_t)64 * 1024) /* that is read at once */

/* ---- the end ------------------------------------------------------------------------------------------- */

void items_stop(items_t *items) {
  if (items->source == ITEMS_STREAM) {
    uv_close((uv_handle_t *)&items->input.stream, NULL);
    /* Others may have the same pipe, and expect to wait for it. */
    if (items->flags != -1)
      (void)fcntl(STDIN_FILENO, F_SETFL, items->flags);
  }
  items->source = ITEMS_NONE;
  if (!items->reading) { /* else it may be written to just now */
    free(items->bytes);
    items->bytes = NULL;
  }
}

static void end(items_t *items, const char *wrong) {
  items_stop(items);
  items->on_end(items, wrong);
}

/* ---- lines --------------------------------------------------------------------------------------------- */

static bool too_long(const items_t *items) {
  return items->to - items->from > ITEMS_LINE_MAX;
}

/* Up to a line end, or, of the last one, without it; false: that is not there yet, or too far away. */
static bool take_line(items_t *items, belay_bytes_t *out) {
  const char *from = items->bytes + items->from, *end = items->bytes + items->to;
  const char *found = NULL;
  if (items->looked < items->to)
    found = memchr(items->bytes + items->looked, items->separator, items->to - items->looked);
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

/* Room behind what is there, which moves to the front. */
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

/* So many bytes were read; 0: the end; or an error. */
static void got(items_t *items, ssize_t n) {
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

/* ---- standard input ------------------------------------------------------------------------------------ */

static void on_file(uv_fs_t *file) {
  items_t *items = file->data;
  ssize_t n = file->result;
  uv_fs_req_cleanup(file);
  items->reading = false;
  if (items->source == ITEMS_FILE)
    got(items, n);
  else
    items_stop(items);
}

static void on_room(uv_handle_t *handle, size_t suggested, uv_buf_t *out) {
  items_t *items = handle->data;
  (void)suggested;
  *out = uv_buf_init(items->bytes + items->to, (unsigned)(items->size - items->to));
}

static void on_stream(uv_stream_t *stream, ssize_t n, const uv_buf_t *buffer) {
  (void)buffer;
  if (n == 0)
    return; /* nothing is there yet */
  (void)uv_read_stop(stream);
  got(stream->data, n == UV_EOF ? 0 : n);
}

static int read_file(items_t *items) {
  uv_buf_t buffer = uv_buf_init(items->bytes + items->to, (unsigned)CHUNK);
  int error =
      uv_fs_read(&items->harness->loop, &items->file, STDIN_FILENO, &buffer, 1, -1, on_file);
  items->reading = error == 0;
  return error;
}

static void read_more(items_t *items) {
  int error = UV_ENOMEM;
  if (make_room(items))
    error = items->source == ITEMS_FILE ? read_file(items)
                                        : uv_read_start(&items->input.stream, on_room, on_stream);
  if (error != 0)
    got(items, error);
}

/* 0 or an error. */
static int open_input(items_t *items) {
  uv_loop_t *loop = &items->harness->loop;
  items->flags = -1;
  int error = 0;
  switch (uv_guess_handle(STDIN_FILENO)) {
  case UV_FILE:
    items->source = ITEMS_FILE;
    items->file.data = items;
    return 0;
  case UV_TTY:
    error = uv_tty_init(loop, &items->input.terminal, STDIN_FILENO, 1);
    break;
  case UV_NAMED_PIPE:
  case UV_TCP:
    items->flags = fcntl(STDIN_FILENO, F_GETFL);
    error = uv_pipe_init(loop, &items->input.pipe, 0);
    if (error == 0) {
      items->source = ITEMS_STREAM;
      error = uv_pipe_open(&items->input.pipe, STDIN_FILENO);
    }
    break;
  default:
    return UV_EBADF;
  }
  if (error == 0)
    items->source = ITEMS_STREAM;
  items->input.stream.data = items;
  return error;
}

/* ---- batches ------------------------------------------------------------------------------------------- */

static void next_arguments(items_t *items) {
  const arguments_t *arguments = items->harness->arguments;
  size_t n = 0;
  for (; n < ITEMS_BATCH && items->next < arguments->n; n++, items->next++) {
    const char *item = arguments->item[items->next];
    items->batch[n] = (belay_bytes_t){item, strlen(item)};
  }
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

void items_begin(items_t *items, harness_t *harness, size_t first, bool null,
                 items_batch_cb on_batch, items_end_cb on_end) {
  const arguments_t *arguments = harness->arguments;
  *items = (items_t){.harness = harness,
                     .on_batch = on_batch,
                     .on_end = on_end,
                     .next = first,
                     .separator = null ? '\0' : '\n'};
  size_t n = arguments->n - first;
  int error = 0;
  if (n > 1 || (n == 1 && strcmp(arguments->item[first], "-") != 0))
    items->source = ITEMS_ARGUMENTS;
  else
    error = open_input(items);
  if (error != 0)
    got(items, error);
  else
    items_next(items);
}

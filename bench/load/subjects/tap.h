/* A tap: stands between belay and a server, passes everything on, and writes down the commands that
 * go by; not those that listen. It has a thread of its own. */
#ifndef BENCH_LOAD_SUBJECTS_TAP_H
#define BENCH_LOAD_SUBJECTS_TAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tap tap_t;

typedef struct tape {
  char *bytes;
  size_t len, size;
  uint64_t commands;
} tape_t;

typedef struct tape_word {
  const char *at;
  size_t len;
} tape_word_t;

/* The length of the command at the beginning, 0: it is not all there. */
size_t tape_command_len(const char *bytes, size_t len);

/* The same, and its words, up to max of them. */
size_t tape_words(const char *bytes, size_t len, tape_word_t *words, size_t max, size_t *n);

/* Append bytes; the header of a command with this number of words; one word. */
void tape_append(tape_t *tape, const char *bytes, size_t n);
void tape_command(tape_t *tape, size_t words);
void tape_word(tape_t *tape, const char *text, size_t len);

/* Opens a tap to a server; url is where it is reached. */
tap_t *tap_open(const char *server, char *url, size_t size);

/* Start to record, or stop: then nothing is forwarded any more, and the server keeps its state when
 * belay closes. Nothing may be pending. */
void tap_write(tap_t *tap, bool on);

/* Closes it, and hands over what it has written: to be freed. */
tape_t tap_close(tap_t *tap);

#endif /* BENCH_LOAD_SUBJECTS_TAP_H */

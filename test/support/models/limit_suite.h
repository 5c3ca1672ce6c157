/* A model beside a script, in any engine: batches of random cases as words of an EVALSHA, and
 * checked replies.
 *
 *    limit_suite_t --next()--> limit_words_t --an engine, or a server--> reply --check()
 *
 * A seed decides all cases. Replies change nothing, so that many batches may be in flight. */
#ifndef TEST_SUPPORT_MODELS_LIMIT_SUITE_H
#define TEST_SUPPORT_MODELS_LIMIT_SUITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/call/script.h"

struct redisReply; /* hiredis's */

#define LIMIT_SLOTS 8  /* batches that are under way at most */
#define LIMIT_BATCH 40 /* cases of one */
#define LIMIT_ARGC 400

/* A command. */
typedef struct limit_words {
  size_t argc;
  const char *argv[LIMIT_ARGC];
  size_t len[LIMIT_ARGC];
  size_t used;
  char bytes[LIMIT_BATCH * 512];
} limit_words_t;

typedef struct limit_suite {
  const belay__script_t *script;
  const char *head, *tail; /* the text before and after the script in its batch form */
  void (*begin)(uint64_t seed);
  void (*next)(size_t slot, limit_words_t *words);
  /* Fails the test if the reply is not what the model says. done: how many cases were before. */
  void (*check)(size_t slot, const struct redisReply *reply, uint64_t seed, size_t done);
} limit_suite_t;

/* limit/limit.lua (limit_encoding.c), limit/log.lua (limit_log.c). */
extern const limit_suite_t limit_suite, limit_log_suite;

/* The script that does a batch; free() it. */
char *limit_suite_script(const limit_suite_t *suite);

/* BELAY_LIMIT_OPS, BELAY_LIMIT_SEED */
uint64_t limit_suite_ops(uint64_t otherwise);
uint64_t limit_suite_seed(void);

/* ---- words ---- */

/* Begins a command: EVALSHA, room for the sha1, and `keys` keys with numbers as names. */
void limit_words_begin(limit_words_t *words, size_t keys);
void limit_words_text(limit_words_t *words, const char *text); /* it stays where it is */
void limit_words_integer(limit_words_t *words, int64_t value);
void limit_words_doubles(limit_words_t *words, const int64_t *values, size_t count);
/* In one: a double, and an integer as text. */
void limit_words_both(limit_words_t *words, int64_t value, int64_t integer);

/* ---- numbers ---- */

#define LIMIT_NUMBERS 40

typedef struct limit_numbers {
  size_t count;
  double first; /* which alone may be a fraction: at[0] is less than 1 below it */
  int64_t at[LIMIT_NUMBERS];
} limit_numbers_t;

/* Reads a string of doubles. False: it is none, or they are not whole. */
bool limit_numbers_read(const char *at, size_t len, limit_numbers_t *out);

/* ---- chance ---- */

typedef struct limit_chance {
  uint64_t state;
} limit_chance_t;

int64_t limit_below(limit_chance_t *chance, int64_t n);
bool limit_once_in(limit_chance_t *chance, int64_t n);
int64_t limit_sized(limit_chance_t *chance, int64_t most); /* from 1, of any magnitude */
int64_t limit_near(limit_chance_t *chance, int64_t value); /* one more, one less, or it */
int64_t limit_clamped(int64_t value, int64_t from, int64_t to);

#endif /* TEST_SUPPORT_MODELS_LIMIT_SUITE_H */

#include "load/subjects/single.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "query.h"
#include "bench.h"
#include "scripts.gen.h"

enum { WORDS_MAX = 2048, NUMBER = 24, BEFORE_KEYS = 3 /* EVALSHA, its script, how many keys */ };

static const belay__script_t *const joined[] = {
    &belay__script_limit,
    &belay__script_lock_extend,
    &belay__script_lock_release,
    NULL,
};

static bool is_word(const tape_word_t *word, const char *text, size_t len) {
  return word->len == len && memcmp(word->at, text, len) == 0;
}

/* Which of them several calls of are in a command; NULL: it is none such. */
static const belay__script_t *script_of(const tape_word_t *words, size_t n) {
  for (size_t i = 0; joined[i] != NULL && n > BEFORE_KEYS; i++) {
    const belay__script_t *many = joined[i]->many;
    if (is_word(&words[1], many->sha1, strlen(many->sha1)) ||
        is_word(&words[1], many->text, many->len))
      return joined[i];
  }
  return NULL;
}

static long number(const tape_word_t *word) {
  char text[NUMBER];
  (void)snprintf(text, sizeof text, "%.*s", (int)word->len, word->at);
  return strtol(text, NULL, 10);
}

/* EVALSHA, script, number of keys, keys, number of calls, arguments. A negative number of calls:
 * they have the same arguments, which come once. */
static void split(tape_t *out, const belay__script_t *script, const tape_word_t *words, size_t n) {
  size_t all_keys = (size_t)number(&words[2]), all_args = n - BEFORE_KEYS - all_keys - 1;
  long of_calls = number(&words[BEFORE_KEYS + all_keys]);
  size_t calls = (size_t)labs(of_calls), keys = all_keys / calls;
  size_t args = of_calls < 0 ? all_args : all_args / calls;
  const tape_word_t *key = words + BEFORE_KEYS, *arg = key + all_keys + 1;
  char count[NUMBER];
  int count_len = snprintf(count, sizeof count, "%zu", keys);
  for (size_t i = 0; i < calls; i++) {
    tape_command(out, BEFORE_KEYS + keys + args);
    tape_word(out, "EVALSHA", 7);
    tape_word(out, script->sha1, strlen(script->sha1));
    tape_word(out, count, (size_t)count_len);
    for (size_t k = 0; k < keys; k++, key++)
      tape_word(out, key->at, key->len);
    for (size_t k = 0; k < args; k++)
      tape_word(out, arg[k].at, arg[k].len);
    arg += of_calls < 0 ? 0 : args;
  }
}

tape_t single_calls(const tape_t *tape, redisContext *server) {
  static tape_word_t words[WORDS_MAX];
  tape_t out = {0};
  for (size_t i = 0; joined[i] != NULL; i++) {
    char sha[QUERY_SHA_SIZE];
    query_load_script(server, joined[i]->text, sha);
    if (strcmp(sha, joined[i]->sha1) != 0)
      bench_die("the server calls a script otherwise");
  }
  for (size_t at = 0; at < tape->len;) {
    size_t n, len = tape_words(tape->bytes + at, tape->len - at, words, WORDS_MAX, &n);
    const belay__script_t *script = script_of(words, n);
    if (script != NULL) {
      split(&out, script, words, n);
    } else {
      tape_append(&out, tape->bytes + at, len);
      out.commands++;
    }
    at += len;
  }
  return out;
}

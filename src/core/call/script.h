/* A server-side script, embedded at build time from src/lua/NAME.lua. */
#ifndef BELAY_CORE_CALL_SCRIPT_H
#define BELAY_CORE_CALL_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BELAY__SCRIPTS_MAX 128

typedef struct belay__script belay__script_t;
struct belay__script {
  const char *name; /* the file's name without .lua */
  const char *sha1; /* of the text, 40 hexadecimal digits */
  const char *text; /* what EVAL is given */
  size_t len;
  /* what stops it on one of its first so many lines comes before anything that it writes; UINT_MAX: it writes nothing */
  unsigned clean_lines;
  unsigned index; /* numbers the scripts from 0, below BELAY__SCRIPTS_MAX */
  /* The same for several calls in one command: KEYS, and behind the number of calls ARGV, of all of them in order, each as
   * many. Reply: an array of theirs. NULL: they travel alone. */
  const belay__script_t *many;
};

/* Some of them: a bit for each. */
typedef struct belay__scripts {
  uint64_t bits[BELAY__SCRIPTS_MAX / 64];
} belay__scripts_t;

/* Adds one; whether it was among them already. */
bool belay__scripts_add(belay__scripts_t *scripts, const belay__script_t *script);

/* That line of the script, from 1 on, without its end and what is before its first call(); "" if there is none. */
const char *belay__script_line(const belay__script_t *script, unsigned number, size_t *len);

#endif /* BELAY_CORE_CALL_SCRIPT_H */

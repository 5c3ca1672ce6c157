/* A server-side script, embedded at build time from src/lua/NAME.lua. */
#ifndef BELAY_CORE_CALL_SCRIPT_H
#define BELAY_CORE_CALL_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BELAY__SCRIPTS_MAX 128

typedef struct belay__script belay__script_t;
struct belay__script {
  const char *name; /* Name of the file, without .lua */
  const char *sha1; /* SHA1 of the text, 40 hexadecimal digits */
  const char *text; /* Text for EVAL */
  size_t len;
  /* Number of lines at the start of the text on which an error means that nothing was written. The
   * line of the first write can be the last of them: a write that fails writes nothing. UINT_MAX:
   * the script never writes */
  unsigned clean_lines;
  unsigned index; /* Number of the script, from 0 to BELAY__SCRIPTS_MAX - 1 */
  /* Variant that runs several calls in one command; NULL: calls are not batched. KEYS: the keys
   * of all calls in order. ARGV: the number of calls, then the arguments of all calls in order;
   * each call has the same number of them. If all calls have the same arguments, the number is
   * negative, and the arguments come only once. Reply: an array of the calls' replies. */
  const belay__script_t *many;
};

/* A set of scripts, one bit for each. */
typedef struct belay__scripts {
  uint64_t bits[BELAY__SCRIPTS_MAX / 64];
} belay__scripts_t;

/* Add a script to the set. Returns true if it was there already. */
bool belay__scripts_add(belay__scripts_t *scripts, const belay__script_t *script);

/* Return a line of the script, numbered from 1, without the line end. The result begins at the
 * first "call(" of the line, or behind the indentation if the line has no "call(". "" if the script
 * has no line with this number. */
const char *belay__script_line(const belay__script_t *script, unsigned number, size_t *len);

#endif /* BELAY_CORE_CALL_SCRIPT_H */

/* Every script of src/lua: its keys, usual arguments, and permitted replies. */
#ifndef TEST_SUPPORT_MODELS_SCRIPT_ROWS_H
#define TEST_SUPPORT_MODELS_SCRIPT_ROWS_H

#include <stddef.h>

#define SCRIPT_ROW_KEYS 8
#define SCRIPT_ROW_ARGS 16

/* A run of a script. Every script has at least one row; its further rows have a label behind the
 * name, and give other arguments, or have other runs before. */
typedef struct script_row {
  const char *name;
  /* The keys, separated by spaces: the type of each (s string, h hash, z sorted set, l list, S
   * set, * any), '!' if it may be without a ttl, '?' if another key's value says whether it has
   * one, a colon, and the key. */
  const char *keys;
  /* The names of the rows that run before, separated by '|'; "": none. */
  const char *before;
  /* The form of the reply. Alternatives are separated by '|':
   *   iA:B   an integer from A to B, by default 0 to 2^53
   *   n      a string, a number from 1 to 2^53
   *   N      a string, a number of 64 bits
   *   b      a string of the digits 0, 1 and 2
   *   d      a string of doubles, each a whole number but perhaps the first
   *   s, sN  a string; a string of N bytes
   *   [X,Y]  an array of these, and [X,Y*] of which the last one may come any number of times,
   *          also not at all
   *   t      a status
   *   x      an error, whichever */
  const char *reply;
  /* In an argument $T is a ttl and $L a longer one, $E the time at which $T ends and $N the time
   * by the server's clock, in milliseconds. An argument "$D 1 2.5" is these doubles, and "$Z 8
   * text" the text behind 8 zero bytes. */
  const char *args[SCRIPT_ROW_ARGS];
} script_row_t;

extern const script_row_t script_rows[];
extern const size_t script_rows_len;

#endif /* TEST_SUPPORT_MODELS_SCRIPT_ROWS_H */

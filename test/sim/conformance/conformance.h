/* The engine compared with a real server: commands and the comparison of replies. */
#ifndef TEST_SIM_CONFORMANCE_CONFORMANCE_H
#define TEST_SIM_CONFORMANCE_CONFORMANCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "sim/engine/engine.h"

#define CONFORMANCE_CONNS 3
#define CONFORMANCE_WORDS 64
#define CONFORMANCE_KEYS "kLFQ" /* the names of words that are keys */

/* ---- replies (reply.c) ---- */

/* How two replies are compared. Unnamed replies must be equal bytes. */
typedef enum conformance_like {
  LIKE_BYTES,      /* all of it */
  LIKE_SET,        /* an array, in any order */
  LIKE_PAIRS,      /* an array of pairs, in any order */
  LIKE_MS,         /* an integer > 0 is what is left of a ttl, in milliseconds */
  LIKE_TIME,       /* TIME */
  LIKE_CLOCK,      /* strings in it that are the clock, in ms or us, and integers as in LIKE_MS */
  LIKE_FENCE,      /* such a string, or an integer as in LIKE_MS */
  LIKE_QUARANTINE, /* an array, that begins with an integer which is a difference to the clock */
  LIKE_HELLO,      /* all but the server's version */
  LIKE_COMMANDS,   /* of each the name and the arity; or that there is none */
  LIKE_INFO,       /* the lines that belay reads */
} conformance_like_t;

/* The times for a comparison of two replies. */
typedef struct conformance_times {
  uint64_t now_us;       /* the wall clock */
  uint64_t tolerance_us; /* by how much the two may differ in what depends on it */
} conformance_times_t;

/* The length of the first reply in those bytes; 0: it is not complete. */
size_t conformance_reply_length(const char *at, size_t len);

bool conformance_is_like(conformance_like_t like, const conformance_times_t *times,
                         engine_bytes_t engines, engine_bytes_t servers);

/* So that one can read it. */
void conformance_print(FILE *out, engine_bytes_t bytes);

/* ---- commands (generate.c) ---- */

typedef struct conformance_command {
  engine_bytes_t argv[CONFORMANCE_WORDS]; /* each on its own: free() */
  size_t argc;
  conformance_like_t like;
  bool restart;  /* of the engine, with the data that it has, before it is asked */
  bool pause;    /* until whatever it has given a short ttl is over */
  unsigned conn; /* who asks */
  uint64_t keys; /* a bit for each key that it names */
} conformance_command_t;

typedef struct conformance_sequence {
  conformance_command_t *command;
  size_t count;
} conformance_sequence_t;

/* Patterns of commands, separated by '|'. A pattern is words with blanks between them. A word that
 * begins with % is drawn from the words of that name (words.c), @name is the text of a script,
 * $name its SHA1, ^name that in upper case, and %* at the end is another command. */
typedef struct conformance_row {
  const char *patterns;
  conformance_like_t like;
  enum {
    ROW_PAUSE = 1,    /* it gives a short ttl */
    ROW_AS_IT_IS = 2, /* it is not to be spoilt */
    ROW_OWN_LIKE = 4  /* its reply is not that of the command within */
  } flags;
} conformance_row_t;

typedef struct conformance_family {
  const char *name;
  const conformance_row_t *rows[10]; /* up to a NULL; each ends with a row without patterns */
  unsigned conns;                    /* so many connections; more than 1: one command at a time */
  int resp;                          /* the protocol's version that they begin with */
} conformance_family_t;

/* Always the same for a family and a seed, but for the times in it. */
conformance_sequence_t conformance_generate(const conformance_family_t *family, uint64_t seed,
                                            size_t count, uint64_t absolute_ms);
void conformance_free(conformance_sequence_t *sequence);

/* As one would type it. */
void conformance_print_command(FILE *out, const conformance_command_t *command);

/* ---- what there is to ask (rows.c, words.c, scripts.c) ---- */

#define END                                                                                        \
  { NULL, LIKE_BYTES, 0 }
#define ROWS(patterns)                                                                             \
  { patterns, LIKE_BYTES, 0 }
#define ROWS_LIKE(like, patterns)                                                                  \
  { patterns, like, 0 }
#define ROWS_OF(like, flags, patterns)                                                             \
  { patterns, like, flags }

/* Commands that create and delete keys of other types; and commands that read everything of a
 * key. */
extern const conformance_row_t conformance_any[], conformance_final[];

/* Those that are not about one type of values. */
extern const conformance_row_t conformance_belays[], conformance_kinds[], conformance_data[],
    conformance_cache[], conformance_scripts[], conformance_structs[], conformance_connections[],
    conformance_pubsub[], conformance_protocols[];

extern const conformance_family_t conformance_families[];
extern const size_t conformance_families_count;

/* The words of a name; NULL: there are none. */
const engine_bytes_t *conformance_words(char name, size_t *count);

typedef struct conformance_script {
  const char *name, *text;
  char sha1[41]; /* conformance_scripts_name() */
} conformance_script_t;

/* NULL: there is none. */
const conformance_script_t *conformance_script(const char *name, size_t len);

/* Computes the SHA1 of each script with the given function. */
void conformance_scripts_name(void (*sha1)(void *ctx, const char *text, char out[41]), void *ctx);

/* ---- the engine's own account of its strings (shadow.c) ---- */

typedef struct conformance_shadow conformance_shadow_t;
conformance_shadow_t *conformance_shadow_new(void);
void conformance_shadow_free(conformance_shadow_t *shadow);

/* The function of the hook `changed`. */
void conformance_shadow_changed(conformance_shadow_t *shadow, engine_bytes_t key,
                                engine_bytes_t was, engine_bytes_t is);

/* NULL: it is right; else what is not. */
const char *conformance_shadow_check(const conformance_shadow_t *shadow, const engine_t *engine,
                                     uint64_t now_us);

#endif /* TEST_SIM_CONFORMANCE_CONFORMANCE_H */

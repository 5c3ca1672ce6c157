/* What a command is: data. The same tables are what the command line is read by, and what help, manual and
 * completion say. commands.c has the list of all. */
#ifndef BELAY_CLI_COMMAND_H
#define BELAY_CLI_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shell/units.h"

#define TEXTS_MAX 64 /* of one option, or of one command line's items in the configuration */
#define ANY_NUMBER 0x7fffffff /* of arguments */

typedef struct harness harness_t;
typedef struct command command_t;

/* ---- options ------------------------------------------------------------------------------------------- */

/* Texts that an option was given, each valid to the end of the process. */
typedef struct texts {
  const char *item[TEXTS_MAX];
  size_t n;
} texts_t;

/* What an option takes, and the member of `to` that it goes to. */
typedef enum option_kind {
  OPTION_FLAG,     /* nothing; flag becomes true */
  OPTION_TEXT,     /* text */
  OPTION_TEXTS,    /* texts; may be given several times */
  OPTION_NUMBER,   /* number, from min to max */
  OPTION_DURATION, /* number: milliseconds, from min to max */
  OPTION_RATE      /* rate; its count is from min to max */
} option_kind_t;

/* An array of them ends with {0}. What `to` points to begins as the default, and is left alone unless the option is
 * given. If it is given twice the last one counts, but for OPTION_TEXTS. */
typedef struct option {
  const char *name; /* without the dashes, lower case */
  const char *
      value; /* what its value is called: "DURATION", "FILE" (which completion then offers); NULL of a flag */
  const char *help; /* begins in lower case, no full stop; says the default */
  union {
    bool *flag;
    const char **text;
    texts_t *texts;
    int64_t *number;
    rate_t *rate;
  } to;
  const char
      *choices; /* of a text: all values that it may have, separated by spaces. NULL: any text */
  int64_t min, max; /* of number and rate; 0 both: there are none */
  option_kind_t kind;
  char letter;  /* a short form; 0: it has none */
  bool forever; /* of a duration: "forever" is one too, BELAY_FOREVER */
  bool bare;    /* of a duration: it may be left out, and is max then */
} option_t;

/* ---- commands ------------------------------------------------------------------------------------------ */

/* What stood on the command line beside options. Valid to the end of the process. */
typedef struct arguments {
  char **item;
  size_t n;
  char **command; /* what stood behind "--", ends with NULL; NULL: there was none */
  char **
      line; /* all of it, as main() was given it, but options behind the command's name: ends with NULL */
} arguments_t;

/* Whether a command runs another one, which stands behind "--". */
typedef enum command_runs { RUNS_NOTHING, RUNS_MAYBE, RUNS_ALWAYS } command_runs_t;

/* An array of them ends with {0}. */
typedef struct example {
  const char *what; /* in words, as a line of its own, without a full stop */
  const char *line; /* and as one types it */
} example_t;

/* A command, or one that consists of others ("bloom add"). Those have name, summary, text, examples and parts only. */
struct command {
  const char *name;
  const char
      *arguments; /* as usage says them: "KEY [N]", without "-- COMMAND"; NULL: there are none */
  const char *summary; /* one line: begins in lower case, no full stop */
  const char *
      text; /* more: paragraphs, apart by "\n\n", that are broken into lines as need be. NULL: none */
  const example_t *examples;     /* NULL: none */
  const option_t *options;       /* its own; NULL: none. Those that all have are in common.c */
  const command_t *const *parts; /* ends with NULL; NULL: it is one itself */
  const char *(*words)(
      size_t i);        /* what an argument may be, if that is a list: NULL behind the last */
  unsigned least, most; /* how many arguments */
  command_runs_t runs;
  unsigned urls; /* how many servers it may be told at most: --url and so on. 0: it asks none */
  bool reports;  /* it writes results: --json, --quiet */

  /* What it does; one of them. run returns the exit status. begin starts something on
   * a loop, and harness_done() ends it. */
  int (*run)(const arguments_t *arguments);
  void (*begin)(harness_t *harness);
  /* SIGINT, SIGTERM or SIGHUP has come: of one that begins. It is to call harness_done() soon, then or later, and is
   * called again if another one comes. NULL: harness_done() does, and a second signal kills. */
  void (*stop)(harness_t *harness, int signum);
};

#endif /* BELAY_CLI_COMMAND_H */

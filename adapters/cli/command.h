/* A command is a table that the parser, help, manual and completion use. commands.c lists all
 * commands. */
#ifndef BELAY_CLI_COMMAND_H
#define BELAY_CLI_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shell/units.h"

#define TEXTS_MAX 64 /* most texts of one option */

typedef struct harness harness_t;
typedef struct command command_t;

/* ---- options ---- */

/* Texts of an option that may be given several times, each valid to the end of the process. */
typedef struct texts {
  const char *item[TEXTS_MAX];
  size_t n;
} texts_t;

/* The kind of an option's value, and the member of `to` that receives it. */
typedef enum option_kind {
  OPTION_FLAG,     /* nothing; flag becomes true */
  OPTION_TEXT,     /* text */
  OPTION_TEXTS,    /* texts; may be given several times */
  OPTION_NUMBER,   /* number, from min to max */
  OPTION_DURATION, /* number: milliseconds, from min to max */
  OPTION_RATE      /* rate; its count is from min to max */
} option_kind_t;

/* A row of a table that ends with {0}. `to` points to the default, which stays unless the option
 * is given. The last value of a repeated option counts, except for OPTION_TEXTS. */
typedef struct option {
  const char *name; /* without the dashes, lower case */
  /* Name of the value, such as "FILE"; NULL: that of the kind. Completion offers files for "FILE"
   * and "FOLDER". */
  const char *value;
  const char *help; /* begins in lower case, no full stop; states the default */
  union {
    bool *flag;
    const char **text;
    texts_t *texts;
    int64_t *number;
    rate_t *rate;
  } to;
  const char *choices; /* all values of a text, separated by spaces; NULL: any text */
  int64_t min, max;    /* of number and rate; both 0: no limits */
  option_kind_t kind;
  char letter;  /* short form; 0: none */
  bool forever; /* of a duration: the word "forever" gives BELAY_FOREVER */
  bool bare;    /* of a duration: it may be missing, which gives max */
} option_t;

/* A row of each kind. The last argument is the help. Other members may follow it: .letter = 'q'. */
#define FLAG(name_, to_, ...)                                                                      \
  { .kind = OPTION_FLAG, .name = (name_), .to.flag = (to_), .help = __VA_ARGS__ }
#define TEXT(name_, value_, to_, ...)                                                              \
  { .kind = OPTION_TEXT, .name = (name_), .value = (value_), .to.text = (to_), .help = __VA_ARGS__ }
#define TEXTS(name_, value_, to_, ...)                                                             \
  {                                                                                                \
    .kind = OPTION_TEXTS, .name = (name_), .value = (value_), .to.texts = (to_),                   \
    .help = __VA_ARGS__                                                                            \
  }
#define NUMBER(name_, min_, max_, to_, ...)                                                        \
  {                                                                                                \
    .kind = OPTION_NUMBER, .name = (name_), .min = (min_), .max = (max_), .to.number = (to_),      \
    .help = __VA_ARGS__                                                                            \
  }
#define DURATION(name_, min_, max_, to_, ...)                                                      \
  {                                                                                                \
    .kind = OPTION_DURATION, .name = (name_), .min = (min_), .max = (max_), .to.number = (to_),    \
    .help = __VA_ARGS__                                                                            \
  }
#define RATE(name_, to_, ...)                                                                      \
  { .kind = OPTION_RATE, .name = (name_), .to.rate = (to_), .help = __VA_ARGS__ }

#define OPTIONS(...) ((const option_t[]){__VA_ARGS__, {0}})

/* ---- commands ---- */

/* The words of the command line that are not options. Valid to the end of the process. */
typedef struct arguments {
  char **item; /* n arguments; then the options, "--" and its command; ends with NULL */
  size_t n;
  char **command; /* the words behind "--", ends with NULL; NULL: there was no "--" */
} arguments_t;

/* Whether a command runs another one, which stands behind "--". */
typedef enum command_runs { RUNS_NOTHING, RUNS_MAYBE, RUNS_ALWAYS } command_runs_t;

typedef struct example {
  const char *what; /* in words, a line of its own, without a full stop */
  const char *line; /* as a user types it */
} example_t;

/* An array of examples that ends with {0}. */
#define EXAMPLES(...) ((const example_t[]){__VA_ARGS__, {0}})

/* A command, or a subcommand such as "bloom add". A command with subcommands has only a name, a
 * summary, a text, examples and its subcommands. */
struct command {
  const char *name;
  /* As usage prints them: "KEY [N]", "NAME [ITEM]...", without "-- COMMAND"; NULL: none. The number
   * of arguments is checked against this text. */
  const char *arguments;
  const char *summary;       /* one line: begins in lower case, no full stop */
  const char *text;          /* paragraphs, separated by "\n\n"; NULL: none */
  const example_t *examples; /* NULL: none */
  const option_t *options;   /* its own; NULL: none. Those that all commands have are in common.c */
  const command_t *subcommands;   /* ends with {0}; NULL: none */
  const char *(*words)(size_t i); /* all values of an argument; NULL behind the last one */
  command_runs_t runs;
  unsigned urls;    /* how many servers it may ask; 0: one, if it has a begin */
  bool offline;     /* it has a begin, and asks no server */
  bool plain;       /* it has no --json and no --quiet */
  const char *what; /* beginning of an error message, see harness_ok(); NULL: "cannot NAME" */
  const void *data; /* the command's own; distinguishes commands with the same begin */

  /* One of them. run returns the exit status. begin starts something on a loop, and harness_done()
   * ends it. */
  int (*run)(const arguments_t *arguments);
  void (*begin)(harness_t *harness);
  /* Receives SIGINT, SIGTERM and SIGHUP of a command with a begin, each time. It must call
   * harness_done(), at once or soon. NULL: the first signal calls harness_done(), and a second one
   * kills. */
  void (*stop)(harness_t *harness, int signum);
  /* Closes the handles that the command has opened on the loop itself. harness_done() calls it
   * once. NULL: none. */
  void (*tidy)(void);
};

#endif /* BELAY_CLI_COMMAND_H */

#include "acl.h"

#include <getopt.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "belay/acl.h"
#include "term.h"

#define WRONG_USAGE 2
#define USER_MAX 64
#define PARTS_MAX 8
#define KEYS_MAX 64
#define NAMES_MAX 64
#define HELP_WIDTH 78

typedef struct asked {
  const char *user;
  bool file; /* for users.acl, rather than for redis-cli */
  const char *parts[PARTS_MAX], *keys[KEYS_MAX], *names[NAMES_MAX];
  belay_acl_options_t options;
} asked_t;

/* ---- help ---------------------------------------------------------------------------------------------- */

static void list_names(FILE *out, bool wanted) {
  const char *name;
  size_t column = 0;
  bool in_all;
  for (size_t i = 0; (name = belay_acl_name(i, &in_all)) != NULL; i++) {
    if (in_all != wanted)
      continue;
    bool breaks = column == 0 || column + 1 + strlen(name) > HELP_WIDTH;
    column = (breaks ? 3 : column + 1) + strlen(name);
    (void)fprintf(out, "%s%s", breaks ? "\n    " : " ", name);
  }
}

void help_acl(FILE *out) {
  (void)fputs(
      "usage: belay acl --user NAME --namespace PART[::PART]... [OPTION]... NAME...\n\n"
      "Prints the rules of a user who may do what the named things do, on keys and channels\n"
      "of the namespace and those below it. It asks no server, and no password is part of it.\n"
      "Replicas, the nodes of a cluster, and sentinels have users of their own each.\n\n"
      "  --user NAME             who it is\n"
      "  --namespace PART::PART  the client's namespace_parts; may not have spaces in it\n"
      "  --key KEY               an exact key of a lock outside of it; may be given several times\n"
      "  --db N                  the database, if not 0\n"
      "  --server VERSION        the oldest server that is to understand it: 6.0, 6.2, 7.0 "
      "(default)\n"
      "  --file                  a line of users.acl; without it: one for redis-cli\n"
      "  --sentinel              for servers that sentinels watch; and a second line, for these\n\n"
      "NAME: all, or some of:",
      out);
  list_names(out, true);
  (void)fputs("\nand what says how the server is deployed, which is not in all:", out);
  list_names(out, false);
  (void)fputs(
      "\n\n"
      "  belay acl --user app --namespace app lock limiter | redis-cli\n"
      "  belay acl --user app --namespace app::eu --file all >>users.acl\n\n"
      "The user has no password yet, and so cannot log in: give it one by\n"
      "`ACL SETUSER app >...` at the prompt of redis-cli, or in users.acl by a word more,\n"
      "`>` and the password, or `#` and its SHA-256.\n\n"
      "Where there is an AOF, switch the default user off by `user default off ~* &* +@all`:\n"
      "with nothing that he may do, writes of scripts are lost at the next restart.\n",
      out);
}

/* ---- the command line ---------------------------------------------------------------------------------- */

/* Says what is wrong, and never repeats what it was given: that may be a URL with a password. */
static bool wrong(const char *what) {
  (void)fprintf(stderr, "belay: acl: %s\n", what);
  return false;
}

/* Visible characters that no line, and no shell of redis-cli's, takes for anything else. */
static bool is_user(const char *text) {
  size_t len = strlen(text);
  for (const char *c = text; *c != '\0'; c++)
    if (*c <= ' ' || *c > '~' || *c == '"' || *c == '\'')
      return false;
  return len >= 1 && len <= USER_MAX;
}

/* Divides it, in place, at each "::". */
static bool read_namespace(asked_t *asked, char *text) {
  size_t n = 0;
  for (char *next = text; next != NULL && n < PARTS_MAX; n++) {
    asked->parts[n] = next;
    next = strstr(next, "::");
    if (next == NULL) {
      asked->options.namespace_count = n + 1;
      return true;
    }
    *next = '\0';
    next += 2;
  }
  return wrong("--namespace: more than 8 parts");
}

static bool read_number(const char **text, unsigned max, unsigned *out) {
  char *end;
  unsigned long value = strtoul(*text, &end, 10);
  if (**text < '0' || **text > '9' || value > max)
    return false;
  *out = (unsigned)value;
  *text = end;
  return true;
}

static bool read_version(asked_t *asked, const char *text) {
  static const char valkey[] = "valkey-";
  unsigned part[3] = {0};
  asked->options.valkey = strncmp(text, valkey, sizeof valkey - 1) == 0;
  if (asked->options.valkey)
    text += sizeof valkey - 1;
  for (size_t i = 0; i < 3; i++) {
    if (!read_number(&text, 99, &part[i]))
      break;
    if (*text == '\0') {
      asked->options.server_version = part[0] * 10000 + part[1] * 100 + part[2];
      return part[0] >= 6 || wrong("--server: belay needs 6.0");
    }
    if (*text++ != '.')
      break;
  }
  return wrong("--server: no version, such as 7.0 or valkey-8.0");
}

static bool read_db(asked_t *asked, const char *text) {
  unsigned db;
  if (!read_number(&text, 65535, &db) || *text != '\0')
    return wrong("--db: not from 0 to 65535");
  asked->options.db = (int)db;
  return true;
}

enum { USER = 1, NAMESPACE, KEY, DB, SERVER, FILE_FORM, SENTINEL };

static bool read_option(asked_t *asked, int option) {
  belay_acl_options_t *o = &asked->options;
  switch (option) {
  case USER:
    asked->user = optarg;
    return is_user(optarg) || wrong("--user: not 1 to 64 visible characters without quotes");
  case NAMESPACE:
    return read_namespace(asked, optarg);
  case KEY:
    if (o->keys_count == KEYS_MAX)
      return wrong("--key: more than 64 of them");
    asked->keys[o->keys_count++] = optarg;
    return true;
  case DB:
    return read_db(asked, optarg);
  case SERVER:
    return read_version(asked, optarg);
  case FILE_FORM:
    return asked->file = true;
  case SENTINEL:
    return o->sentinel = true;
  default:
    return wrong("an option that is not known, or lacks its value");
  }
}

static bool is_name(const char *text) {
  const char *name;
  for (size_t i = 0; (name = belay_acl_name(i, NULL)) != NULL; i++)
    if (strcmp(name, text) == 0)
      return true;
  return strcmp(text, "all") == 0;
}

static bool read_line(asked_t *asked, int argc, char **argv) {
  static const struct option options[] = {
      {"user", required_argument, NULL, USER},
      {"namespace", required_argument, NULL, NAMESPACE},
      {"key", required_argument, NULL, KEY},
      {"db", required_argument, NULL, DB},
      {"server", required_argument, NULL, SERVER},
      {"file", no_argument, NULL, FILE_FORM},
      {"sentinel", no_argument, NULL, SENTINEL},
      {0},
  };
  belay_acl_options_t *o = &asked->options;
  opterr = 0;
  for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;)
    if (!read_option(asked, option))
      return false;
  for (o->names_count = 0; optind < argc; optind++) {
    if (o->names_count == NAMES_MAX || !is_name(argv[optind]))
      return wrong("nothing of belay's has such a name: belay acl --help lists them");
    asked->names[o->names_count++] = argv[optind];
  }
  if (o->sentinel && o->names_count < NAMES_MAX)
    asked->names[o->names_count++] = "sentinel";
  if (asked->user == NULL || asked->parts[0] == NULL || o->names_count == 0)
    return wrong("--user, --namespace and at least one name are needed: see belay acl --help");
  o->namespace_parts = asked->parts;
  o->names = asked->names;
  o->keys = asked->keys;
  return true;
}

/* ---- the lines ----------------------------------------------------------------------------------------- */

/* A word of the rules, as redis-cli reads it: in quotes if there is one in it. */
static void print_word(const char *word, size_t len, bool file) {
  bool quoted = !file && (memchr(word, '"', len) != NULL || memchr(word, '\'', len) != NULL);
  (void)fputs(quoted ? " \"" : " ", stdout);
  for (size_t i = 0; i < len; i++) {
    if (quoted && (word[i] == '"' || word[i] == '\\'))
      (void)putchar('\\');
    (void)putchar(word[i]);
  }
  if (quoted)
    (void)putchar('"');
}

static bool print_line(const asked_t *asked, bool sentinel) {
  belay_acl_options_t o = asked->options;
  size_t len;
  o.sentinel = sentinel;
  if (belay_acl_rules(&o, NULL, 0, &len) != 0)
    return wrong("--namespace, --key: a part is not 1 to 128, a key not 1 to 1024 bytes without a "
                 "space, which no ACL can express");
  char *rules = malloc(len + 1);
  if (rules == NULL || belay_acl_rules(&o, rules, len + 1, &len) != 0) {
    free(rules);
    return wrong("out of memory");
  }
  (void)printf("%s %s", asked->file ? "user" : "ACL SETUSER", asked->user);
  for (const char *word = rules; *word != '\0'; word += *word == ' ') {
    size_t n = strcspn(word, " ");
    print_word(word, n, asked->file);
    word += n;
  }
  (void)putchar('\n');
  free(rules);
  return true;
}

int command_acl(int argc, char **argv) {
  asked_t asked = {0};
  belay_acl_options_init(&asked.options);
  if (!read_line(&asked, argc - 1, argv + 1) || !print_line(&asked, false))
    return WRONG_USAGE;
  if (asked.options.sentinel && !print_line(&asked, true))
    return WRONG_USAGE;
  if (!term_flush()) {
    (void)wrong("not all of this could be written");
    return 1;
  }
  (void)fprintf(
      stderr, "belay: %s has no password from this: give it one with %s, or it cannot log in\n",
      asked.user, asked.file ? "a word more, `>` and the password" : "ACL SETUSER ... >password");
  return 0;
}

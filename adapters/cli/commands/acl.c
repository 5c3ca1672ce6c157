/* `belay acl`: print the rules of a user that may run what belay needs, and nothing else. */
#include "belay/acl.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shell/common.h"
#include "ui/out.h"
#include "ui/status.h"

#define USER_MAX 64

static struct {
  const char *user, *namespace_text, *server;
  texts_t keys;
  int64_t db;
  bool file; /* for users.acl, not for redis-cli */
  bool sentinel;
} asked;

static const option_t options[] = {
    TEXT("user", "NAME", &asked.user, "who it is; must be given"),
    TEXT("namespace", "PART[::PART]...", &asked.namespace_text,
         "the client's namespace; may not have spaces in it; must be given", .letter = 'n'),
    TEXTS("key", "KEY", &asked.keys,
          "an exact key of a lock outside of it; may be given several times"),
    NUMBER("db", 0, 65535, &asked.db, "the database, if not 0"),
    TEXT("server", "VERSION", &asked.server,
         "the oldest server that is to understand it: 6.0, 6.2, valkey-8.0, ...; default 7.0"),
    FLAG("file", &asked.file, "a line of users.acl; without it: one for redis-cli"),
    FLAG("sentinel", &asked.sentinel,
         "for servers that sentinels watch; and a second line, for these"),
    {0},
};

/* ---- the command line ---- */

/* Print what is wrong. The message never repeats the argument, which may be a URL with a
 * password. */
static bool wrong(const char *what) {
  complain("%s", what);
  return false;
}

/* Returns true for visible characters that have no special meaning in users.acl or in redis-cli. */
static bool is_user(const char *text) {
  size_t len = strlen(text);
  for (const char *c = text; *c != '\0'; c++)
    if (*c <= ' ' || *c > '~' || *c == '"' || *c == '\'')
      return false;
  return len >= 1 && len <= USER_MAX;
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

static bool read_version(belay_acl_options_t *o, const char *text) {
  static const char valkey[] = "valkey-";
  unsigned part[3] = {0};
  o->valkey = strncmp(text, valkey, sizeof valkey - 1) == 0;
  if (o->valkey)
    text += sizeof valkey - 1;
  for (size_t i = 0; i < 3; i++) {
    if (!read_number(&text, 99, &part[i]))
      break;
    if (*text == '\0') {
      o->server_version = part[0] * 10000 + part[1] * 100 + part[2];
      return part[0] >= 6 || wrong("--server: belay needs 6.0");
    }
    if (*text++ != '.')
      break;
  }
  return wrong("--server: no version, such as 7.0 or valkey-8.0");
}

static bool is_name(const char *text) {
  const char *name;
  for (size_t i = 0; (name = belay_acl_name(i, NULL)) != NULL; i++)
    if (strcmp(name, text) == 0)
      return true;
  return strcmp(text, "all") == 0;
}

/* Read the names; there is room for one more. */
static bool read_names(belay_acl_options_t *o, const arguments_t *arguments) {
  static const char *names[TEXTS_MAX + 1];
  for (size_t i = 0; i < arguments->n; i++) {
    if (!is_name(arguments->item[i]))
      return wrong("nothing of belay's has such a name: belay acl --help lists them");
    names[i] = arguments->item[i];
  }
  o->names = names;
  o->names_count = arguments->n;
  if (asked.sentinel)
    names[o->names_count++] = "sentinel";
  return true;
}

static bool read_options(belay_acl_options_t *o) {
  static namespace_parts_t parts;
  if (asked.user == NULL || asked.namespace_text == NULL)
    return wrong("--user and --namespace are needed: see belay acl --help");
  if (!is_user(asked.user))
    return wrong("--user: not 1 to 64 visible characters without quotes");
  if (!namespace_divide(asked.namespace_text, &parts))
    return wrong("--namespace: more than 8 parts");
  o->namespace_parts = parts.part;
  o->namespace_count = parts.n;
  o->keys = asked.keys.item;
  o->keys_count = asked.keys.n;
  o->db = (int)asked.db;
  o->sentinel = asked.sentinel;
  return asked.server == NULL || read_version(o, asked.server);
}

/* ---- output ---- */

/* Print a word of the rules, as redis-cli reads it: a word that contains a quote is put in
 * quotes. */
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

static bool print_line(const belay_acl_options_t *asked_for, bool sentinel) {
  belay_acl_options_t o = *asked_for;
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
  (void)printf("%s %s", asked.file ? "user" : "ACL SETUSER", asked.user);
  for (const char *word = rules; *word != '\0'; word += *word == ' ') {
    size_t n = strcspn(word, " ");
    print_word(word, n, asked.file);
    word += n;
  }
  (void)putchar('\n');
  free(rules);
  return true;
}

static int run(const arguments_t *arguments) {
  belay_acl_options_t o;
  belay_acl_options_init(&o);
  if (!read_options(&o) || !read_names(&o, arguments) || !print_line(&o, false) ||
      (o.sentinel && !print_line(&o, true)))
    return STATUS_USAGE;
  complain("%s has no password from this: give it one with %s, or it cannot log in", asked.user,
           asked.file ? "a word more, `>` and the password" : "ACL SETUSER ... >password");
  return STATUS_YES;
}

static const char *words(size_t i) {
  return i == 0 ? "all" : belay_acl_name(i - 1, NULL);
}

const command_t acl_command = {
    .name = "acl",
    .arguments = "NAME...",
    .summary = "the rules of a least-privilege user",
    .text = "Prints the rules of a user who may do what the named things do, on keys and channels "
            "of the namespace and those below it. It asks no server, and no password is part of "
            "it. Replicas, the nodes of a cluster, and sentinels have users of their own each.\n\n"
            "CLIENT KILL is among the rules, since a client ends a connection that it has lost. No "
            "server can limit it to the user's own connections: it reaches those of other users "
            "too.\n\n"
            "What says how the server is deployed is not in all: cluster, replicas, sentinel.\n\n"
            "The user has no password yet, and so cannot log in: give it one by `ACL SETUSER app "
            ">...` at the prompt of redis-cli, or in users.acl by a word more, `>` and the "
            "password, or `#` and its SHA-256.\n\n"
            "Where there is an AOF, switch the default user off by `user default off ~* &* +@all`: "
            "with nothing that he may do, writes of scripts are lost at the next restart.",
    .examples = EXAMPLES({"A user for locks and limiters, made at once",
                          "belay acl --user app --namespace app lock limiter | redis-cli"},
                         {"A line for a file of users",
                          "belay acl --user app --namespace app::eu --file all >>users.acl"}),
    .options = options,
    .words = words,
    .run = run,
    .plain = true,
};

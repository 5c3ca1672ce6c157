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
    TEXT("user", "NAME", &asked.user, "name of the user; required"),
    TEXT("namespace", "PART[::PART]...", &asked.namespace_text,
         "the client's namespace, without spaces; required", .letter = 'n'),
    TEXTS("key", "KEY", &asked.keys,
          "exact key of a lock outside of the namespace; may be given several times"),
    NUMBER("db", 0, 65535, &asked.db, "number of the database; default 0"),
    TEXT("server", "VERSION", &asked.server,
         "oldest server that must accept the rules: 6.0, 6.2, valkey-8.0, ...; default 7.0"),
    FLAG("file", &asked.file, "print a line of users.acl; default: a command for redis-cli"),
    FLAG("sentinel", &asked.sentinel,
         "for servers with sentinels; prints a second line for the sentinels"),
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

static bool read_version(belay_acl_options_t *o, const char *text) {
  static const char valkey[] = "valkey-";
  unsigned long part[3] = {0};
  o->valkey = strncmp(text, valkey, sizeof valkey - 1) == 0;
  if (o->valkey)
    text += sizeof valkey - 1;
  const char *begin = text;
  for (size_t i = 0; i < 3 && *text >= '0' && *text <= '9'; i++) {
    char *end;
    part[i] = strtoul(text, &end, 10);
    text = *end == '.' && i < 2 ? end + 1 : end;
  }
  if (text == begin || *text != '\0' || text[-1] == '.' || part[0] > 99 || part[1] > 99 ||
      part[2] > 99)
    return wrong("--server: not a version such as 7.0 or valkey-8.0");
  o->server_version = (unsigned)(part[0] * 10000 + part[1] * 100 + part[2]);
  return part[0] >= 6 || wrong("--server: belay needs 6.0");
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
      return wrong("no feature has such a name: belay acl --help lists them");
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
    return wrong("--user and --namespace are required: see belay acl --help");
  if (!is_user(asked.user))
    return wrong("--user: must be 1 to 64 visible characters without quotes");
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
    return wrong("--namespace, --key: a part must have 1 to 128 bytes and a key 1 to 1024 "
                 "bytes, without spaces, which an ACL cannot express");
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
  complain("%s has no password yet: set one with %s, or the user cannot log in", asked.user,
           asked.file ? "another word, `>` and the password" : "ACL SETUSER ... >password");
  return STATUS_YES;
}

static const char *words(size_t i) {
  return i == 0 ? "all" : belay_acl_name(i - 1, NULL);
}

const command_t acl_command = {
    .name = "acl",
    .arguments = "NAME...",
    .summary = "print the ACL rules of a least-privilege user",
    .text = "Prints the rules of a user that may use the named features, on the keys and channels "
            "of the namespace and the namespaces below it. belay does not contact a server, and "
            "prints no password. Replicas, nodes of a cluster, and sentinels each have their own "
            "users.\n\n"
            "CLIENT KILL is among the rules, because a client ends a connection that it has lost. "
            "No server can limit CLIENT KILL to the user's own connections.\n\n"
            "cluster, replicas and sentinel depend on the deployment, and are not part of all.\n\n"
            "The user has no password yet and cannot log in. Set one with `ACL SETUSER app >...` "
            "at the prompt of redis-cli. In users.acl, add another word: `>` and the password, or "
            "`#` and its SHA-256.\n\n"
            "If the server has an AOF, disable the default user with `user default off ~* &* "
            "+@all`: without permissions for the default user, the server loses writes of scripts "
            "at the next restart.",
    .examples = EXAMPLES({"Create a user for locks and limiters",
                          "belay acl --user app --namespace app lock limiter | redis-cli"},
                         {"Add a line to a file of users",
                          "belay acl --user app --namespace app::eu --file all >>users.acl"}),
    .options = options,
    .words = words,
    .run = run,
    .plain = true,
};

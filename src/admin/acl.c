/* Access rules: one table of the commands that each family sends, directly and inside its
 * scripts, which run with the caller's permissions.
 *
 * AUTH is not in the table, because every user may try it. Some refused commands do no harm.
 * Without INFO and HELLO belay does not know the server's identity, without COMMAND INFO not its
 * abilities. Without CLIENT SETNAME the connection has no name, and without CLIENT KILL a lost
 * connection cannot be ended. Without PUBLISH and SUBSCRIBE clients poll. */
#include "belay/acl.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "belay/error.h"
#include "core/client/client.h"
#include "core/key/key.h"

#define DB_MAX 65535
#define KEYS_MAX ((size_t)64)
#define VERSION_MIN 60000u
#define CHANNELS_SINCE 60200u
#define SELECTORS_SINCE 70000u
#define WORDS_MAX ((size_t)128)
#define NAMESPACE_MAX (BELAY__NAMESPACE_PARTS * (3 * BELAY__NAMESPACE_PART_MAX + 2))

typedef enum kind {
  GROUP,      /* Users cannot name such a row: other rows include it, or each user gets it */
  PRIMITIVE,  /* Commands of a public header of belay, or of an option that several headers have */
  DEPLOYMENT, /* Not in "all" */
} kind_t;

enum { REDIS = 1, VALKEY = 2, ALONE = 4, IN_CLUSTER = 8 };

typedef struct row {
  kind_t kind;
  const char *name;
  const char *with;  /* Names of the rows that this row includes, separated by spaces */
  const char *words; /* Commands, separated by spaces; subcommands and first arguments after '|' */
} row_t;

#define CLUSTER "cluster"
#define CLIENT "client"
#define ALL "all"
#define SENTINELS "sentinels"

/* The commands of each family, sorted by kind and name. The table `certain` limits some of these
 * commands to some servers. */
static const row_t rows[] = {
    {GROUP, CLIENT, "",
     "client|kill client|setname command|info hello info|replication info|server ping"},
    {GROUP, "fenced", "", "del hget hmget hset pexpire time"},
    {GROUP, "lease", "script wake", "del delex delifeq get pexpire pttl set"},
    {GROUP, "script", "", "eval evalsha"},
    {GROUP, SENTINELS, "",
     "hello sentinel|get-master-addr-by-name sentinel|master sentinel|replicas sentinel|sentinels "
     "subscribe"},
    {GROUP, "wake", "", "publish spublish ssubscribe subscribe sunsubscribe unsubscribe"},

    {PRIMITIVE, "active", "script",
     "exists persist pexpire pexpireat pfadd pfcount pfmerge pttl setrange time unlink"},
    {PRIMITIVE, "bloom", "script",
     "bitcount bitfield bitfield_ro bitop get getbit getrange pexpireat pttl set setrange time "
     "unlink"},
    {PRIMITIVE, "bucket", "script", "del get set"},
    {PRIMITIVE, "cache", "lease", "del exists get getrange pexpire pttl set setrange time"},
    {PRIMITIVE, "config", "script", "hgetall hlen hset persist pexpire"},
    {PRIMITIVE, "counter", "script",
     "exists get getset hdel hget hgetall hincrby hlen hmget hset incrby pexpire set time unlink"},
    {PRIMITIVE, "dedup", "script",
     "bitcount bitfield bitfield_ro exists get getrange pexpire pfadd pfcount pfmerge pttl sadd "
     "scard sdiffstore set setbit sinter sintercard sinterstore sismember srem sscan strlen "
     "sunionstore time type unlink zadd zcard zcount zrange zrem zremrangebyrank zscan zscore"},
    {PRIMITIVE, "durable", "", "wait"},
    {PRIMITIVE, "election", "script wake", "del get hmget hset pexpire pttl set time"},
    {PRIMITIVE, "held", "lock rwlock semaphore",
     "getrange hget hmget pubsub|numsub pubsub|shardnumsub scan zcard zcount zrange "
     "zrevrangebyscore"},
    {PRIMITIVE, "idempotency", "script", "del exists hmget hset pexpire pttl time unlink"},
    {PRIMITIVE, "idgen", "lease", "exists hget hincrby hmget hset pexpire time"},
    {PRIMITIVE, "latch", "script wake",
     "del exists hexists hlen hmget hset pexpire pttl time zadd zcard zrange zrangebyscore zrem "
     "zremrangebyscore zscore"},
    {PRIMITIVE, "limiter", "script",
     "del get pexpire set time zadd zcard zcount zrange zrangebyscore zrem zremrangebyscore "
     "zrevrange"},
    {PRIMITIVE, "lock", "lease",
     "hdel hgetall hmget hset pexpireat time zadd zcard zrange zrangebyscore zrank zrem zrevrange "
     "zscore"},
    {PRIMITIVE, "multilock", "lease", ""},
    {PRIMITIVE, "permission", "script", "bitfield bitfield_ro pexpire unlink"},
    {PRIMITIVE, "presence", "script",
     "bitcount bitfield bitfield_ro bitop exists pexpire pexpireat pttl strlen time unlink"},
    {PRIMITIVE, "ranking", "script",
     "hdel hget hlen hset persist pexpireat time unlink zadd zcard zcount zrange zrangebyscore "
     "zrank zrem zremrangebyrank zrevrange zrevrangebyscore zrevrank zscore"},
    {PRIMITIVE, "redlock", "lease fenced", ""},
    {PRIMITIVE, "refiller", "bucket semaphore", ""},
    {PRIMITIVE, "rwlock", "script wake fenced",
     "del get hmget hset pexpire pexpireat pttl rename set time zadd zcard zcount zrem "
     "zremrangebyscore zrevrange zscore zunionstore"},
    {PRIMITIVE, "semaphore", "script wake",
     "del exists hdel hget hlen hmget hset pexpire pttl time zadd zcard zcount zrange "
     "zrangebyscore zrank zrem zrevrange zrevrangebyscore zscore"},
    {PRIMITIVE, "session", "script",
     "del get hlen hmget hset llen lrange ltrim pexpire pttl rpush set time type unlink"},
    {PRIMITIVE, "sweep", "", "scan unlink"},
    {PRIMITIVE, "topic", "wake", ""},
    {PRIMITIVE, "topology", "", "info|stats role time"},

    {DEPLOYMENT, CLUSTER, "", "asking cluster|info cluster|slots readonly role"},
    {DEPLOYMENT, "replicas", "", "role"},
    {DEPLOYMENT, "sentinel", "", "role"},
};

/* The servers that know and need a command. A server gets the command if one of the rows of the
 * command matches, or if the command has no row. */
static const struct {
  const char *word;
  /* Versions as 70000 for 7.0.0: from since, before until; until 0: no end */
  unsigned since, until;
  unsigned where;
} certain[] = {
    {"delex", 80400, 0, REDIS | ALONE | IN_CLUSTER},
    {"delifeq", 90000, 0, VALKEY | ALONE | IN_CLUSTER},
    {"publish", 0, 0, REDIS | VALKEY | ALONE},
    {"publish", 0, 70000, REDIS | IN_CLUSTER},
    {"pubsub|shardnumsub", 70000, 0, REDIS | VALKEY | IN_CLUSTER},
    {"sinter", 0, 70000, REDIS | ALONE | IN_CLUSTER},
    {"sintercard", 70000, 0, REDIS | VALKEY | ALONE | IN_CLUSTER},
    {"spublish", 70000, 0, REDIS | VALKEY | IN_CLUSTER},
    {"ssubscribe", 70000, 0, REDIS | VALKEY | IN_CLUSTER},
    {"subscribe", 0, 0, REDIS | VALKEY | ALONE},
    {"subscribe", 0, 70000, REDIS | IN_CLUSTER},
    {"sunsubscribe", 70000, 0, REDIS | VALKEY | IN_CLUSTER},
    {"unsubscribe", 0, 0, REDIS | VALKEY | ALONE},
    {"unsubscribe", 0, 70000, REDIS | IN_CLUSTER},
};

#define ROWS (sizeof rows / sizeof *rows)

const char *belay_acl_name(size_t index, bool *in_all) {
  for (size_t i = 0; i < ROWS; i++) {
    if (rows[i].kind == GROUP || index-- > 0)
      continue;
    if (in_all != NULL)
      *in_all = rows[i].kind == PRIMITIVE;
    return rows[i].name;
  }
  return NULL;
}

/* ---- words ---- */

typedef struct word {
  const char *at;
  size_t len;
} word_t;

/* The commands of the rules, in alphabetical order. */
typedef struct words {
  const belay_acl_options_t *options;
  bool cluster;
  size_t n;
  word_t at[WORDS_MAX];
} words_t;

/* Return the next word of a text, and move *text behind the word. At the end of the text the length
 * of the word is 0. */
static word_t next_word(const char **text) {
  const char *at = *text + strspn(*text, " ");
  word_t word = {at, strcspn(at, " ")};
  *text = at + word.len;
  return word;
}

static int compare(word_t a, word_t b) {
  int order = memcmp(a.at, b.at, a.len < b.len ? a.len : b.len);
  return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

static bool is_for_this_server(const words_t *words, word_t word) {
  const belay_acl_options_t *o = words->options;
  unsigned fork = o->valkey ? VALKEY : REDIS, place = words->cluster ? IN_CLUSTER : ALONE;
  bool named = false;
  for (size_t i = 0; i < sizeof certain / sizeof *certain; i++) {
    if (compare(word, (word_t){certain[i].word, strlen(certain[i].word)}) != 0)
      continue;
    named = true;
    if ((certain[i].where & fork) != 0 && (certain[i].where & place) != 0 &&
        o->server_version >= certain[i].since &&
        (certain[i].until == 0 || o->server_version < certain[i].until))
      return true;
  }
  return !named;
}

static void add_word(words_t *words, word_t word) {
  size_t i = 0;
  while (i < words->n && compare(words->at[i], word) < 0)
    i++;
  if ((i < words->n && compare(words->at[i], word) == 0) || !is_for_this_server(words, word))
    return;
  assert(words->n < WORDS_MAX);
  memmove(&words->at[i + 1], &words->at[i], (words->n - i) * sizeof *words->at);
  words->at[i] = word;
  words->n++;
}

static const row_t *find(word_t name) {
  for (size_t i = 0; i < ROWS; i++)
    if (compare((word_t){rows[i].name, strlen(rows[i].name)}, name) == 0)
      return &rows[i];
  return NULL;
}

/* Add the words of a row, and of the rows that it includes. */
static void add_row(words_t *words, const row_t *row) {
  const char *with = row->with, *text = row->words;
  for (word_t word; (word = next_word(&with)).len > 0;)
    add_row(words, find(word));
  for (word_t word; (word = next_word(&text)).len > 0;)
    add_word(words, word);
}

/* Add the rows of all names in the options; false if a name is unknown. */
static bool add_all(words_t *words) {
  const belay_acl_options_t *o = words->options;
  for (size_t i = 0; i < o->names_count; i++)
    words->cluster |= o->names[i] != NULL && strcmp(o->names[i], CLUSTER) == 0;
  for (size_t i = 0; i < o->names_count; i++) {
    const char *name = o->names[i] == NULL ? "" : o->names[i];
    const row_t *row = find((word_t){name, strlen(name)});
    bool all = strcmp(name, ALL) == 0;
    if (!all && (row == NULL || row->kind == GROUP))
      return false;
    for (size_t j = 0; j < ROWS; j++)
      if (all ? rows[j].kind == PRIMITIVE : &rows[j] == row)
        add_row(words, &rows[j]);
  }
  return true;
}

/* ---- text ---- */

typedef struct text {
  char *buffer;
  size_t size, len; /* len: includes bytes that did not fit */
} text_t;

static void put(text_t *text, const char *bytes, size_t len) {
  if (text->buffer != NULL && len <= text->size && text->len <= text->size - len)
    memcpy(text->buffer + text->len, bytes, len);
  text->len += len;
}

static void put_string(text_t *text, const char *string) {
  put(text, string, strlen(string));
}

/* Writes kind (such as " ~") and a pattern that matches exactly these bytes, followed by tail,
 * which is not quoted. */
static void put_pattern(text_t *text, const char *kind, const char *bytes, size_t len,
                        const char *tail) {
  char quoted[2];
  put_string(text, kind);
  for (size_t i = 0; i < len; i++)
    put(text, quoted, belay__glob_quote(quoted, bytes + i, 1));
  put_string(text, tail);
}

static void put_namespace(text_t *text, const belay_acl_options_t *o, const char *kind) {
  char prefix[NAMESPACE_MAX];
  size_t len = belay__key_namespace(prefix, o->namespace_parts, o->namespace_count);
  put_pattern(text, kind, prefix, len, "::*");
}

static void put_patterns(text_t *text, const belay_acl_options_t *o) {
  put_namespace(text, o, " ~");
  for (size_t i = 0; i < o->keys_count; i++) {
    put_pattern(text, " ~", o->keys[i], strlen(o->keys[i]), "");
    put_pattern(text, " ~", o->keys[i], strlen(o->keys[i]), "::contended");
  }
  if (o->server_version < CHANNELS_SINCE)
    return;
  put_namespace(text, o, " &");
  for (size_t i = 0; i < o->keys_count; i++)
    put_pattern(text, " &", o->keys[i], strlen(o->keys[i]), "::wake");
}

static void put_rules(text_t *text, const words_t *words) {
  const belay_acl_options_t *o = words->options;
  char select[24];
  put_string(text, "on resetkeys");
  if (o->server_version >= CHANNELS_SINCE)
    put_string(text, " resetchannels");
  if (o->server_version >= SELECTORS_SINCE)
    put_string(text, " clearselectors");
  put_string(text, " -@all");
  if (o->sentinel && o->server_version >= CHANNELS_SINCE)
    put_string(text, " &+failover-state-wait-promotion &+promoted-slave &+sdown &+switch-master"
                     " &+vote-for-leader");
  if (!o->sentinel)
    put_patterns(text, o);
  for (size_t i = 0; i < words->n; i++) {
    put_string(text, " +");
    put(text, words->at[i].at, words->at[i].len);
  }
  (void)snprintf(select, sizeof select, " +select|%d", o->db);
  if (!o->sentinel && o->db > 0)
    put_string(text, select);
}

/* ---- public functions ---- */

static const char *const default_namespace[] = {"belay"}, *const default_names[] = {ALL};

void belay_acl_options_init(belay_acl_options_t *options) {
  if (options != NULL)
    *options = (belay_acl_options_t){
        .namespace_parts = default_namespace,
        .namespace_count = 1,
        .names = default_names,
        .names_count = 1,
        .server_version = 70000,
    };
}

/* True if each text has 1 to max bytes, and none of the bytes `ends`, which would end a word of an
 * ACL rule. In a namespace only the space does so, because belay escapes the other special bytes of
 * a namespace. Keys are not escaped. */
static bool are_words(const char *const *texts, size_t count, size_t max, const char *ends) {
  if (texts == NULL)
    return count == 0;
  for (size_t i = 0; i < count; i++) {
    size_t len = texts[i] == NULL ? 0 : strlen(texts[i]);
    if (len < 1 || len > max || strpbrk(texts[i], ends) != NULL)
      return false;
  }
  return true;
}

static bool is_in_range(const belay_acl_options_t *o) {
  if (o->server_version < VERSION_MIN)
    return false;
  return o->sentinel ||
         (o->db >= 0 && o->db <= DB_MAX && o->namespace_count >= 1 && o->names != NULL &&
          o->namespace_count <= BELAY__NAMESPACE_PARTS && o->keys_count <= KEYS_MAX &&
          are_words(o->namespace_parts, o->namespace_count, BELAY__NAMESPACE_PART_MAX, " ") &&
          are_words(o->keys, o->keys_count, BELAY__NAME_MAX, " \t\n\v\f\r"));
}

int belay_acl_rules(const belay_acl_options_t *options, char *buffer, size_t size, size_t *len) {
  belay_acl_options_t o;
  belay_acl_options_init(&o);
  if (options != NULL)
    o = *options;
  if (buffer != NULL && size > 0)
    buffer[0] = '\0';
  if (len == NULL)
    return BELAY_EINVAL;
  *len = 0;
  words_t words = {.options = &o};
  const char *base = o.sentinel ? SENTINELS : CLIENT;
  if (!is_in_range(&o) || (!o.sentinel && !add_all(&words)))
    return BELAY_EINVAL;
  add_row(&words, find((word_t){base, strlen(base)}));
  text_t text = {buffer, size, 0};
  put_rules(&text, &words);
  *len = text.len;
  if (buffer == NULL)
    return 0;
  if (text.len >= size) {
    if (size > 0)
      buffer[0] = '\0';
    return BELAY_EINVAL;
  }
  buffer[text.len] = '\0';
  return 0;
}

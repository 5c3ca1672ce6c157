/* Every script over keys that belay did not write: other types, numbers that are none, members
 * of a megabyte. A reply has its documented form, or is an error that has a name in belay, and
 * then nothing was written. A key of another type stays as it is. No key is left without a ttl,
 * wherever in a script a ttl of a millisecond passes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "belay/error.h"
#include "core/call/refusal.h"
#include "support/fixtures/env.h"
#include "support/models/reply_form.h"
#include "support/models/script_world.h"

#define ROWS script_rows_len
#define TTL_MS 60000
#define PIPELINE 4
#define FAILURES_SHOWN 60

static void wrong(script_world_t *world, const script_row_t *row, const char *change,
                  const char *why, const char *more, size_t len) {
  if (world->failures++ < FAILURES_SHOWN)
    print_message("%s; %s: %s %.*s\n", row->name, change, why, (int)len, more);
  world->failed_of[script_of_row(row)->index]++;
}

enum { NAME, TYPE, LIFE, SUM, FIELDS };

static const char *field(const resp_t *snapshot, size_t key, size_t which) {
  return snapshot->items[key * FIELDS + which]->str;
}

/* Where the key is in a snapshot; or its length, in keys. */
static size_t find(const resp_t *snapshot, const char *name, size_t len) {
  size_t i = 0, n = snapshot->count / FIELDS;
  while (i < n && (strlen(field(snapshot, i, NAME)) != len ||
                   memcmp(field(snapshot, i, NAME), name, len) != 0))
    i++;
  return i;
}

static bool is_same(const resp_t *a, const resp_t *b) {
  bool same = a->count == b->count;
  for (size_t i = 0; same && i < a->count; i++)
    same = strcmp(a->items[i]->str, b->items[i]->str) == 0;
  return same;
}

static const char *type_name(char letter) {
  switch (letter) {
  case 's':
    return "string";
  case 'h':
    return "hash";
  case 'z':
    return "zset";
  case 'l':
    return "list";
  default:
    return "set";
  }
}

static void judge_keys(script_world_t *world, const script_row_t *row, const char *change,
                       const resp_t *before, const resp_t *after) {
  for (const char *key = row->keys; *key != '\0';) {
    const char *name = strchr(key, ':') + 1;
    size_t len = strcspn(name, " "), was = find(before, name, len), is = find(after, name, len);
    bool had = was < before->count / FIELDS, has = is < after->count / FIELDS;
    bool foreign = had && key[0] != '*' && strcmp(field(before, was, TYPE), type_name(key[0])) != 0;
    if (foreign && (!has || strcmp(field(before, was, SUM), field(after, is, SUM)) != 0))
      wrong(world, row, change, "a key of another type was changed:", name, len);
    else if (foreign && strcmp(field(before, was, LIFE), field(after, is, LIFE)) != 0)
      wrong(world, row, change, "a key of another type has another ttl:", name, len);
    bool lasts = has && strcmp(field(after, is, LIFE), "ttl") != 0;
    bool lasted = had && strcmp(field(before, was, LIFE), "ttl") != 0;
    bool may_last = key[1] == '!' || (key[1] == '?' && strncmp(change, "DONE ", 5) == 0);
    if (lasts && !lasted && !may_last)
      wrong(world, row, change, "a key without a ttl:", name, len);
    key = name + len + strspn(name + len, " ");
  }
}

/* true for the contention flag of a lock, which its scripts set beside their keys. */
static bool is_flag(const char *name, const char *life) {
  static const char part[] = "::contended";
  size_t len = strlen(name);
  return len >= sizeof part && strcmp(name + len - (sizeof part - 1), part) == 0 &&
         strcmp(life, "ttl") == 0;
}

/* A script makes no key but those that it was given. */
static void judge_others(script_world_t *world, const script_row_t *row, const char *change,
                         const resp_t *before, const resp_t *after) {
  for (size_t i = 0; i < after->count / FIELDS; i++) {
    const char *name = field(after, i, NAME);
    if (find(before, name, strlen(name)) == before->count / FIELDS &&
        strstr(row->keys, name) == NULL && !is_flag(name, field(after, i, LIFE)))
      wrong(world, row, change, "a key of nobody's:", name, strlen(name));
  }
}

static void judge(script_world_t *world, const script_row_t *row, const char *change,
                  const resp_t *before, const resp_t *reply, const resp_t *after) {
  char words[300];
  reply_in_words(reply, words, sizeof words);
  world->cases++;
  if (reply->type == RESP_ERROR) {
    world->errors++;
    int error = belay__refusal_find(reply->str, reply->len)->error;
    bool named = error == BELAY_EWRONGTYPE || error == BELAY_EOVERFLOW || error == BELAY_EMISMATCH;
    if (!named && !reply_has_form(reply, row->reply))
      wrong(world, row, change, "an error that has no name:", words, sizeof words);
    else if (!is_same(before, after))
      wrong(world, row, change, "it has written, and failed:", words, sizeof words);
  } else if (!reply_has_form(reply, row->reply)) {
    wrong(world, row, change, "replies", words, sizeof words);
  }
  judge_keys(world, row, change, before, after);
  judge_others(world, row, change, before, after);
}

static void put_prepare(const script_world_t *world, const script_row_t *row,
                        const script_state_t *state, resp_words_t *words, const char *key,
                        const char *change, char count[8]) {
  *words = (resp_words_t){2, {"EVALSHA", world->prepare_sha}, {7, 40}};
  (void)script_put_keys(row, words, count);
  script_add_word(words, key, strlen(key));
  script_add_word(words, change, strlen(change));
  for (size_t i = 0; i < state->len; i++) {
    const script_held_t *held = &state->keys[i];
    script_add_word(words, held->name, strlen(held->name));
    script_add_word(words, held->dump, held->dump_len);
    script_add_word(words, held->ttl, strlen(held->ttl));
  }
}

/* Runs the row after the change; false: there is no such change. */
static bool try_change(script_world_t *world, const script_row_t *row, const script_state_t *state,
                       size_t key, unsigned change) {
  char key_text[8], change_text[12], counts[2][8];
  resp_words_t words[PIPELINE];
  resp_t *replies[PIPELINE];
  snprintf(key_text, sizeof key_text, "%zu", key);
  snprintf(change_text, sizeof change_text, "%u", change);
  put_prepare(world, row, state, &words[0], key_text, change_text, counts[0]);
  words[1] = words[3] = (resp_words_t){3, {"EVALSHA", world->snapshot_sha, "0"}, {7, 40, 1}};
  words[2] = (resp_words_t){2, {"EVALSHA", script_of_row(row)->sha1}, {7, 40}};
  script_put_run(world, row, &words[2], counts[1]);
  if (resp_calls(&world->client, words, PIPELINE, replies) != 0)
    fail_msg("%s, change %u of key %zu: the server does not answer", row->name, change, key);
  bool there = replies[0]->type != RESP_NIL;
  bool done = replies[0]->type == RESP_STRING ||
              (replies[0]->type == RESP_ERROR && strncmp(replies[0]->str, "DONE ", 5) == 0);
  if (there && !done)
    fail_msg("%s, change %u of key %zu: %s", row->name, change, key, replies[0]->str);
  if (there)
    judge(world, row, replies[0]->str, replies[1], replies[2], replies[3]);
  for (size_t i = 0; i < PIPELINE; i++)
    resp_free(replies[i]);
  return there;
}

static size_t count_keys(const script_row_t *row) {
  size_t n = 0;
  for (const char *at = row->keys; (at = strchr(at, ':')) != NULL; n++)
    at += strcspn(at, " ");
  return n;
}

TEST(hostile_values) {
  script_world_t world;
  script_state_t state = {.len = 0};
  script_world_open(&world);
  for (size_t i = 0; i < ROWS; i++) {
    const script_row_t *row = &script_rows[i];
    script_state_make(&world, row, &state);
    assert_true(try_change(&world, row, &state, 0, 0)); /* as usual */
    for (size_t key = 1; key <= count_keys(row); key++)
      for (unsigned change = 1; try_change(&world, row, &state, key, change); change++)
        ;
  }
  script_state_clear(&state);
  script_world_close(&world);
}

TEST(usual_runs_succeed) {
  script_world_t world;
  script_world_open(&world);
  for (size_t i = 0; i < ROWS; i++) {
    const script_row_t *row = &script_rows[i];
    script_world_command(&world, "FLUSHALL");
    script_world_run_before(&world, row, true);
    resp_t *reply = script_world_eval(&world, row);
    char words[300];
    if (reply->type == RESP_ERROR || !reply_has_form(reply, row->reply))
      fail_msg("%s: %s", row->name, reply_in_words(reply, words, sizeof words));
    resp_free(reply);
  }
  script_world_close(&world);
}

TEST(every_script_has_a_row) {
  for (size_t i = 0; i < BELAY__SCRIPTS; i++)
    (void)script_row_named(belay__scripts[i]->name, strlen(belay__scripts[i]->name));
}

/* The script with a delay of 1.5 ms before its n-th call. The reply is the number of calls. */
static char *slow_text(const belay__script_t *script, unsigned at) {
  static const char form[] =
      "local server, calls = redis, 0\n"
      "local function slow(how, ...)\n"
      "  calls = calls + 1\n"
      "  if calls == %u then\n"
      "    local from = server.call('TIME')\n"
      "    repeat\n"
      "      local now = server.call('TIME')\n"
      "    until (now[1] - from[1]) * 1000000 + now[2] - from[2] > 1500\n"
      "  end\n"
      "  return server[how](...)\n"
      "end\n"
      "local redis = setmetatable({call = function(...) return slow('call', ...) end,\n"
      "  pcall = function(...) return slow('pcall', ...) end}, {__index = redis})\n"
      "local function run(...) %s end\n"
      "run()\n"
      "return calls\n";
  size_t size = sizeof form + script->len + 16;
  char *text = malloc(size);
  snprintf(text, size, form, at, script->text);
  return text;
}

static int64_t run_slowly(script_world_t *world, const script_row_t *row,
                          const script_state_t *state, unsigned at) {
  char *text = slow_text(script_of_row(row), at);
  char counts[2][8], change[80];
  resp_words_t words[PIPELINE];
  resp_t *replies[PIPELINE];
  put_prepare(world, row, state, &words[0], "0", "0", counts[0]);
  words[1] = words[3] = (resp_words_t){3, {"EVALSHA", world->snapshot_sha, "0"}, {7, 40, 1}};
  words[2] = (resp_words_t){2, {"EVAL", text}, {4, strlen(text)}};
  script_put_run(world, row, &words[2], counts[1]);
  if (resp_calls(&world->client, words, PIPELINE, replies) != 0)
    fail_msg("%s: the server does not answer", row->name);
  snprintf(change, sizeof change, "1.5 ms before call %u", at);
  world->cases++;
  if (replies[2]->type != RESP_INTEGER)
    fail_msg("%s, %s: %s", row->name, change, replies[2]->str);
  judge_keys(world, row, change, replies[1], replies[3]);
  int64_t calls = replies[2]->integer;
  for (size_t i = 0; i < PIPELINE; i++)
    resp_free(replies[i]);
  free(text);
  return calls;
}

/* Whether the script is given a ttl at all. */
static bool has_ttl(const script_row_t *row) {
  for (size_t i = 0; i < SCRIPT_ROW_ARGS && row->args[i] != NULL; i++)
    if (row->args[i][0] == '$' && strchr("TLE", row->args[i][1]) != NULL)
      return true;
  return false;
}

TEST(ttl_expires_inside_script) {
  script_world_t world;
  script_state_t state = {.len = 0};
  script_world_open(&world);
  for (size_t i = 0; i < ROWS; i++) {
    const script_row_t *row = &script_rows[i];
    if (!has_ttl(row))
      continue;
    world.ttl_ms = TTL_MS;
    script_state_make(&world, row, &state);
    world.ttl_ms = 1;
    int64_t calls = run_slowly(&world, row, &state, 0);
    for (unsigned at = 1; at <= calls; at++)
      (void)run_slowly(&world, row, &state, at);
  }
  script_state_clear(&state);
  script_world_close(&world);
}

/* Thousands of runs, each with a delay before one of its calls. */
TEST(ttl_of_one_millisecond) {
  enum { RUNS = 60 };
  script_world_t world;
  script_world_open(&world);
  world.ttl_ms = 1;
  for (size_t i = 0; i < ROWS; i++) {
    const script_row_t *row = &script_rows[i];
    if (!has_ttl(row))
      continue;
    script_world_command(&world, "FLUSHALL");
    for (unsigned n = 0; n < RUNS; n++) {
      script_world_run_before(&world, row, false);
      resp_free(script_world_eval(&world, row));
    }
    resp_words_t words = {3, {"EVALSHA", world.snapshot_sha, "0"}, {7, 40, 1}};
    resp_t *after = script_world_call(&world, &words), none = {.type = RESP_ARRAY};
    world.cases += RUNS;
    judge_keys(&world, row, "1 ms", &none, after);
    resp_free(after);
  }
  script_world_close(&world);
}

#include "support/models/script_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "support/models/reply_form.h"
#include "support/base/unit.h"

#define ROWS script_rows_len
#define TTL_MS 60000

/* ---- Lua on the server ---- */

/* All keys: for each its name, type, whether it has a ttl, and a sum of its value. */
static const char snapshot_text[] =
    "local all = redis.call('KEYS', '*')\n"
    "table.sort(all)\n"
    "local reply = {}\n"
    "for _, key in ipairs(all) do\n"
    "  local n = #reply\n"
    "  reply[n + 1], reply[n + 2] = key, redis.call('TYPE', key).ok\n"
    "  reply[n + 3] = redis.call('PTTL', key) >= 0 and 'ttl' or 'for ever'\n"
    "  reply[n + 4] = redis.sha1hex(redis.call('DUMP', key))\n"
    "end\n"
    "return reply\n";

/* ARGV: a key and its dump and ttl, as often as there are keys; of KEYS, one is changed.
 * ARGV[1]: which; 0: none. ARGV[2]: how: the n-th of its changes. Reply: the change in words;
 * nil: there are not so many. */
static const char prepare_text[] =
    "redis.call('FLUSHALL')\n"
    "for i = 3, #ARGV, 3 do\n"
    "  local ttl = tonumber(ARGV[i + 2])\n" /* no key ends between the two snapshots */
    "  redis.call('RESTORE', ARGV[i], ttl > 0 and math.max(ttl, 60000) or 0, ARGV[i + 1])\n"
    "end\n"
    "local key = KEYS[tonumber(ARGV[1])]\n"
    "if not key then return 'nothing' end\n"
    "local texts = {'nan', 'inf', '-inf', '1e300', '1.5', '', '-1', '9223372036854775808', '0', "
    "'00',\n"
    "  '9007199254740993', 'x', string.rep('9', 400)}\n"
    "local scores = {'inf', '-inf', '1e300', '1.5', '-1', '0', '9223372036854775808', "
    "'9007199254740991'}\n"
    "local doubles = {0/0, 1/0, -1/0, 1e300, 1.5, -1, 2^53 + 2}\n"
    "local n = 0\n"
    "local wanted = tonumber(ARGV[2])\n"
    "local function change(...)\n"
    "  n = n + 1\n"
    "  if n ~= wanted then return end\n"
    "  local said = {...}\n"
    "  for i = 1, #said do\n"
    "    if said[i] == 'HUGE' then said[i] = string.rep(string.rep('x', 1024), 1024) end\n"
    "  end\n"
    "  redis.call(unpack(said))\n"
    "  for i = 1, #said do\n"
    "    said[i] = tostring(said[i])\n"
    "    said[i] = #said[i] > 60 and string.sub(said[i], 1, 60) .. '...' or said[i]\n"
    "  end\n"
    "  error({err = 'DONE ' .. string.gsub(table.concat(said, ' '), '[%c\\128-\\255]', '?')})\n"
    "end\n"
    "local function instead(...)\n"
    "  if n + 1 == wanted then redis.call('DEL', key) end\n"
    "  change(...)\n"
    "end\n"
    "local kind, ttl = redis.call('TYPE', key).ok, redis.call('PTTL', key)\n"
    "local function of(type, list)\n"
    "  return (kind == type or kind == 'none') and list or {list[1]}\n"
    "end\n"
    "for _, text in ipairs(of('string', texts)) do instead('SET', key, text) end\n"
    "for _, text in ipairs(of('hash', texts)) do instead('HSET', key, 'f', text) end\n"
    "for _, double in ipairs(of('string', doubles)) do\n"
    "  instead('SET', key, struct.pack('<dd', double, double))\n"
    "end\n"
    "for _, score in ipairs(of('zset', scores)) do instead('ZADD', key, score, 'm') end\n"
    "instead('RPUSH', key, 'x')\n"
    "instead('SADD', key, 'x')\n"
    "instead('XADD', key, '1-1', 'f', 'v')\n"
    "if kind == 'string' then\n"
    "  local value = redis.call('GET', key)\n"
    "  instead('SET', key, 'HUGE')\n"
    "  for at = 0, math.min(#value, 96) - 8, 8 do\n"
    "    for _, double in ipairs(doubles) do change('SETRANGE', key, at, struct.pack('<d', "
    "double)) end\n"
    "  end\n"
    "  change('SET', key, string.sub(value, 1, -2), 'KEEPTTL')\n"
    "  change('APPEND', key, 'x')\n"
    "  local at = 1\n"
    "  for _ = 1, 8 do\n"
    "    local from, to = string.find(value, '%d+', at)\n"
    "    if not from then break end\n"
    "    for _, text in ipairs(texts) do\n"
    "      change('SET', key, string.sub(value, 1, from - 1) .. text .. string.sub(value, to + 1), "
    "'KEEPTTL')\n"
    "    end\n"
    "    at = to + 1\n"
    "  end\n"
    "elseif kind == 'hash' then\n"
    "  instead('HSET', key, 'HUGE', 'HUGE')\n"
    "  for _, field in ipairs(redis.call('HKEYS', key)) do\n"
    "    for _, text in ipairs(texts) do change('HSET', key, field, text) end\n"
    "    change('HSET', key, field, 'HUGE')\n"
    "    change('HDEL', key, field)\n"
    "  end\n"
    "  for _, text in ipairs(texts) do change('HSET', key, 'other', text) end\n"
    "  change('HSET', key, '', 'x')\n"
    "elseif kind == 'zset' then\n"
    "  local last = redis.call('ZRANGE', key, -1, -1, 'WITHSCORES')[2]\n"
    "  for _, member in ipairs(redis.call('ZRANGE', key, 0, 3)) do\n"
    "    for _, score in ipairs(scores) do change('ZADD', key, score, member) end\n"
    "    change('ZREM', key, member)\n"
    "  end\n"
    "  for _, score in ipairs(scores) do change('ZADD', key, score, 'other') end\n"
    "  change('ZADD', key, last, '')\n"
    "  change('ZADD', key, last, 'HUGE')\n"
    "elseif kind == 'list' then\n"
    "  change('RPUSH', key, 'HUGE')\n"
    "  change('RPUSH', key, '')\n"
    "elseif kind == 'set' then\n"
    "  change('SADD', key, 'HUGE')\n"
    "  change('SADD', key, '')\n"
    "end\n"
    "return false\n";

/* ---- the state before a run ---- */
const belay__script_t *script_of_row(const script_row_t *row) {
  size_t len = strcspn(row->name, " ");
  for (size_t i = 0; i < BELAY__SCRIPTS; i++)
    if (strlen(belay__scripts[i]->name) == len &&
        memcmp(belay__scripts[i]->name, row->name, len) == 0)
      return belay__scripts[i];
  fail_msg("%s: no such script", row->name);
  return NULL;
}

const script_row_t *script_row_named(const char *name, size_t len) {
  for (size_t i = 0; i < ROWS; i++)
    if (strlen(script_rows[i].name) == len && memcmp(script_rows[i].name, name, len) == 0)
      return &script_rows[i];
  fail_msg("no row %.*s", (int)len, name);
  return NULL;
}

void script_add_word(resp_words_t *words, const char *word, size_t len) {
  assert_true(words->count < RESP_WORDS);
  words->word[words->count] = word;
  words->len[words->count++] = len;
}

static size_t put_doubles(const char *text, char *out) {
  size_t len = 0;
  char *end;
  for (;; text = end) {
    double number = strtod(text, &end);
    if (end == text)
      break;
    memcpy(out + len, &number, sizeof number);
    len += sizeof number;
  }
  text += strspn(text, " ");
  memcpy(out + len, text, strlen(text));
  return len + strlen(text);
}

static size_t put_number(char *out, int64_t number) {
  return (size_t)snprintf(out, 32, "%lld", (long long)number);
}

/* The argument as it is sent: itself, or in out. */
static const char *expand(const script_world_t *world, const char *arg, int64_t now, char *out,
                          size_t *len) {
  *len = strlen(arg);
  if (arg[0] != '$')
    return arg;
  switch (arg[1]) {
  case 'T':
    *len = put_number(out, world->ttl_ms);
    break;
  case 'L':
    *len = put_number(out, 2 * world->ttl_ms);
    break;
  case 'E':
    *len = put_number(out, now + world->ttl_ms);
    break;
  case 'N':
    *len = put_number(out, now);
    break;
  case 'W':
    *len = put_number(out, now / INT64_C(10000000000) - 1);
    break;
  case 'D':
    *len = put_doubles(arg + 2, out);
    break;
  case 'Z':
    memset(out, 0, 8);
    strcpy(out + 8, arg + 5);
    *len = 8 + strlen(arg + 5);
    break;
  default:
    fail_msg("%s: not understood", arg);
  }
  return out;
}

static int64_t now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

size_t script_put_keys(const script_row_t *row, resp_words_t *words, char count[8]) {
  size_t n = 0, at = words->count;
  script_add_word(words, "", 0);
  for (const char *key = row->keys; *key != '\0'; n++) {
    const char *name = strchr(key, ':') + 1;
    size_t len = strcspn(name, " ");
    script_add_word(words, name, len);
    key = name + len + strspn(name + len, " ");
  }
  words->word[at] = count;
  words->len[at] = (size_t)snprintf(count, 8, "%zu", n);
  return n;
}

void script_put_run(script_world_t *world, const script_row_t *row, resp_words_t *words,
                    char count[8]) {
  int64_t now = now_ms();
  (void)script_put_keys(row, words, count);
  for (size_t i = 0; i < SCRIPT_ROW_ARGS && row->args[i] != NULL; i++) {
    size_t len;
    const char *arg = expand(world, row->args[i], now, world->room[i], &len);
    script_add_word(words, arg, len);
  }
}

resp_t *script_world_call(script_world_t *world, const resp_words_t *words) {
  resp_t *reply = resp_call(&world->client, words);
  if (reply == NULL)
    fail_msg("the server does not answer");
  return reply;
}

resp_t *script_world_eval(script_world_t *world, const script_row_t *row) {
  const belay__script_t *script = script_of_row(row);
  resp_words_t words = {2, {"EVAL", script->text}, {4, script->len}};
  char count[8];
  script_put_run(world, row, &words, count);
  return script_world_call(world, &words);
}

void script_world_command(script_world_t *world, const char *command) {
  resp_words_t words = {1, {command}, {strlen(command)}};
  resp_free(script_world_call(world, &words));
}

void script_state_clear(script_state_t *state) {
  for (size_t i = 0; i < state->len; i++) {
    free(state->keys[i].name);
    free(state->keys[i].dump);
  }
  state->len = 0;
}

static void state_read(script_world_t *world, script_state_t *state) {
  static const char text[] = "local reply = {}\n"
                             "for _, key in ipairs(redis.call('KEYS', '*')) do\n"
                             "  local n = #reply\n"
                             "  reply[n + 1], reply[n + 2] = key, redis.call('DUMP', key)\n"
                             "  reply[n + 3] = redis.call('PTTL', key)\n"
                             "end\n"
                             "return reply";
  resp_words_t words = {3, {"EVAL", text, "0"}, {4, sizeof text - 1, 1}};
  resp_t *reply = script_world_call(world, &words);
  script_state_clear(state);
  for (size_t i = 0; i < reply->count; i += 3) {
    assert_true(state->len < sizeof state->keys / sizeof *state->keys);
    script_held_t *key = &state->keys[state->len++];
    key->name = strdup(reply->items[i]->str);
    key->dump_len = reply->items[i + 1]->len;
    key->dump = malloc(key->dump_len + 1);
    memcpy(key->dump, reply->items[i + 1]->str, key->dump_len);
    snprintf(key->ttl, sizeof key->ttl, "%lld", (long long)reply->items[i + 2]->integer);
  }
  resp_free(reply);
}

/* Runs what comes before the row, for its own usual replies. */
void script_world_run_before(script_world_t *world, const script_row_t *row, bool checked) {
  for (const char *name = row->before; *name != '\0';) {
    size_t len = strcspn(name, "|");
    const script_row_t *before = script_row_named(name, len);
    resp_t *reply = script_world_eval(world, before);
    if (checked && !reply_has_form(reply, before->reply)) {
      char words[512];
      fail_msg("%s, before %s: %s", before->name, row->name,
               reply_in_words(reply, words, sizeof words));
    }
    resp_free(reply);
    name += len + (name[len] == '|');
  }
}

void script_state_make(script_world_t *world, const script_row_t *row, script_state_t *state) {
  script_world_command(world, "FLUSHALL");
  script_world_run_before(world, row, true);
  state_read(world, state);
}

static void load(script_world_t *world, const char *text, char sha[41]) {
  resp_words_t words = {3, {"SCRIPT", "LOAD", text}, {6, 4, strlen(text)}};
  resp_t *reply = script_world_call(world, &words);
  assert_int_equal(reply->type, RESP_STRING);
  memcpy(sha, reply->str, 41);
  resp_free(reply);
}

void script_world_open(script_world_t *world) {
  static const server_options_t with_digest = {.arguments = {"--enable-debug-command", "yes"}};
  *world = (script_world_t){.server = server_start(&with_digest), .ttl_ms = TTL_MS};
  assert_int_equal(resp_dial_unix(&world->client, server_path(world->server)), 0);
  load(world, snapshot_text, world->snapshot_sha);
  load(world, prepare_text, world->prepare_sha);
  for (size_t i = 0; i < BELAY__SCRIPTS; i++) {
    char sha[41];
    load(world, belay__scripts[i]->text, sha);
    assert_string_equal(sha, belay__scripts[i]->sha1);
  }
}

void script_world_close(script_world_t *world) {
  unsigned scripts = 0;
  for (size_t i = 0; i < BELAY__SCRIPTS; i++)
    if (world->failed_of[i] > 0) {
      print_message("%5u %s\n", world->failed_of[i], belay__scripts[i]->name);
      scripts++;
    }
  print_message("%u cases, %u of them errors\n", world->cases, world->errors);
  resp_hang_up(&world->client);
  server_stop(world->server);
  if (world->failures > 0)
    fail_msg("%u cases of %u scripts went wrong", world->failures, scripts);
}

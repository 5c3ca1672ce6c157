/* limit/log.lua beside a model of it: entries in a list. */
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scripts.gen.h"
#include "support/models/limit_suite.h"
#include "support/base/unit.h"

enum {
  KEYS = 4,
  COUNT_MOST = 1500, /* more than the script adds at once */
  ENTRIES = 3 * COUNT_MOST,
  RECEIPTS = 4,
  SHOWN = 16, /* number of entries up to which all are compared */
  WORDS = 7,
  ITEMS = 5,
  NUMBERS = 7
};

#define TIME_MOST (INT64_C(1) << 51)
#define YEAR_US INT64_C(31536000000000)

static const char script_head[] = "local limit = function(KEYS, ARGV, redis) ";
static const char script_tail[] =
    "\nend\n"
    "local call, ttls, out = redis.call, {}, {}\n"
    "local function pass(command, key, ...)\n"
    "  if command == 'SET' then\n"
    "    ttls[key] = select(2, ...) == 'PX' and tonumber((select(3, ...)))\n"
    "  elseif command == 'DEL' then\n"
    "    ttls[key] = nil\n"
    "  elseif command == 'PEXPIRE' then\n"
    "    ttls[key] = tonumber(...)\n"
    "    return call(command, key, 60000) -- a millisecond may be over before a server looks\n"
    "  end\n"
    "  return call(command, key, ...)\n"
    "end\n"
    "local noted = {call = pass, error_reply = redis.error_reply}\n"
    "for i = 1, #ARGV, 7 do\n"
    "  local key, ban, op = KEYS[tonumber(ARGV[i])], KEYS[tonumber(ARGV[i]) + 1], ARGV[i + 1]\n"
    "  local good, reply = true, ''\n"
    "  ttls[key], ttls[ban] = nil, nil\n"
    "  if op == 'forget' then\n"
    "    call('DEL', key, ban)\n"
    "  else\n"
    "    good, reply = pcall(limit, {key, ban}, {op, ARGV[i + 2], ARGV[i + 3], ARGV[i + 4],\n"
    "                                            ARGV[i + 5]}, noted)\n"
    "    if type(reply) == 'table' then reply = reply.err end\n"
    "  end\n"
    "  out[#out + 1] = good and reply or 'raised ' .. tostring(reply)\n"
    "  for _, name in ipairs({key, ban}) do\n"
    "    out[#out + 1] = ttls[name] or call('PTTL', name)\n"
    "    if ttls[name] then call('PERSIST', name) end\n"
    "  end\n"
    "  out[#out + 1] = call('ZCARD', key)\n"
    "  out[#out + 1] = out[#out] > tonumber(ARGV[i + 6]) and '' or\n"
    "    table.concat(call('ZRANGE', key, 0, -1, 'WITHSCORES'), ' ')\n"
    "end\n"
    "return out\n";

/* ---- the model ---- */

typedef struct entry {
  int64_t at;
  int64_t id, index; /* its member is "id:index" */
} entry_t;

typedef enum op { TAKE, SLICE, PEEK, PENALTY, REFUND, BAN, FORGET } op_t;

typedef struct request {
  op_t op;
  int64_t p, b, cost, now;
  int64_t fewest; /* SLICE */
  int64_t id;     /* id of the present or former take */
  int64_t ban_us; /* BAN */
} request_t;

typedef struct outcome {
  int64_t reply[NUMBERS];     /* the reply */
  int64_t ttl_ms, ban_ttl_ms; /* -1, -2: as PTTL says */
} outcome_t;

typedef struct receipt {
  int64_t id, cost;
} receipt_t;

typedef struct limit_key {
  size_t count;
  entry_t entry[ENTRIES];       /* by time */
  int64_t banned_until, ban_us; /* of 0 us: not at all */
  int64_t now, p, b;
  receipt_t receipt[RECEIPTS];
  size_t receipts;
} limit_key_t;

static int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

/* As Redis orders what has the same score. */
static int by_member(const void *one, const void *other) {
  const entry_t *a = one, *b = other;
  char x[48], y[48];
  snprintf(x, sizeof x, "%" PRId64 ":%" PRId64, a->id, a->index);
  snprintf(y, sizeof y, "%" PRId64 ":%" PRId64, b->id, b->index);
  return strcmp(x, y);
}

static void sort_last(limit_key_t *key, int64_t now) {
  size_t first = key->count;
  while (first > 0 && key->entry[first - 1].at == now)
    first--;
  qsort(key->entry + first, key->count - first, sizeof *key->entry, by_member);
}

/* Moves future entries to now, and shortens a ban accordingly. Returns true if there were any. */
static bool step_back(limit_key_t *key, int64_t now) {
  bool any = key->count > 0 && key->entry[key->count - 1].at > now;
  for (size_t i = key->count; i-- > 0 && key->entry[i].at > now;)
    key->entry[i].at = now;
  if (any)
    sort_last(key, now);
  bool banned = key->ban_us > 0 && key->banned_until > now + key->ban_us;
  if (banned)
    key->banned_until = now + key->ban_us;
  return banned;
}

/* How many are over: they are the first. */
static size_t count_over(const limit_key_t *key, int64_t now, int64_t p) {
  size_t over = 0;
  while (over < key->count && key->entry[over].at <= now - p)
    over++;
  return over;
}

static void drop_first(limit_key_t *key, size_t n) {
  key->count -= n;
  memmove(key->entry, key->entry + n, key->count * sizeof *key->entry);
}

static void add(limit_key_t *key, const request_t *request, int64_t count) {
  assert_true(key->count + (size_t)count <= ENTRIES);
  for (int64_t i = 1; i <= count; i++)
    key->entry[key->count++] = (entry_t){request->now, request->id, i};
}

/* Of that id, those up to this number; tells how many there were. */
static int64_t take_out(limit_key_t *key, int64_t id, int64_t index) {
  size_t kept = 0, was = key->count;
  for (size_t i = 0; i < was; i++)
    if (key->entry[i].id != id || key->entry[i].index > index)
      key->entry[kept++] = key->entry[i];
  key->count = kept;
  return (int64_t)(was - kept);
}

/* For how long the one of that rank counts. */
static int64_t counts_for(const limit_key_t *key, size_t rank, const request_t *request) {
  return least(key->entry[rank].at, request->now) + request->p - request->now;
}

static int64_t ban_of(const limit_key_t *key, int64_t now) {
  return key->ban_us == 0 ? 0 : least(key->banned_until, now + key->ban_us);
}

/* wanted: the number of tokens whose admission time is reported. */
static void set_outcome(const limit_key_t *key, const request_t *request, int64_t wanted,
                        int64_t answer, int64_t ban, outcome_t *outcome) {
  size_t over = count_over(key, request->now, request->p), live = key->count - over;
  int64_t lacking = (int64_t)live + wanted - request->b;
  int64_t retry = 0, reset = 0;
  if (live > 0)
    reset = counts_for(key, key->count - 1, request);
  if (live > 0 && lacking > 0)
    retry = counts_for(key, over + (size_t)least(lacking, (int64_t)live) - 1, request);
  const int64_t reply[NUMBERS] = {answer, request->now, 0, ban, (int64_t)live, retry, reset};
  memcpy(outcome->reply, reply, sizeof reply);
}

static outcome_t model(limit_key_t *key, const request_t *request) {
  outcome_t outcome = {.ttl_ms = -1, .ban_ttl_ms = -1};
  int64_t now = request->now, ban = ban_of(key, now), answer = 0, added = 0, wanted = request->cost;
  if (request->op != PEEK && step_back(key, now))
    outcome.ban_ttl_ms = (key->ban_us + 999) / 1000;
  size_t over = count_over(key, now, request->p);
  int64_t live = (int64_t)(key->count - over);
  bool admitted = ban <= now && live + request->cost <= request->b;
  if (request->op == TAKE || request->op == PEEK)
    answer = admitted ? 0 : -1;
  if (request->op == TAKE && admitted)
    added = request->cost;
  if (request->op == SLICE) {
    int64_t tokens = least(request->cost, request->b - live);
    added = ban <= now && tokens >= request->fewest ? tokens : 0;
    answer = added > 0 ? added : -1;
    wanted = added > 0 ? 1 : request->fewest;
  }
  if (request->op == PENALTY)
    added = least(request->cost, 2 * request->b - live);
  if (request->op == BAN) {
    key->ban_us = request->ban_us;
    key->banned_until = ban = now + request->ban_us;
    outcome.ban_ttl_ms = key->ban_us > 0 ? (key->ban_us + 999) / 1000 : -1;
  }
  if (request->op == REFUND || added > 0)
    drop_first(key, over);
  if (request->op == REFUND)
    answer = take_out(key, request->id, request->cost);
  if (added > 0) {
    add(key, request, added);
    sort_last(key, now);
    outcome.ttl_ms = (request->p + 999) / 1000;
  }
  set_outcome(key, request, wanted, answer, ban, &outcome);
  if (key->count == 0)
    outcome.ttl_ms = -2;
  if (key->ban_us == 0)
    outcome.ban_ttl_ms = -2;
  return outcome;
}

/* ---- by chance ---- */

typedef struct log_case {
  size_t key;
  request_t request;
  outcome_t outcome;
  size_t count;
  char entries[SHOWN * 48]; /* "" if they are more */
} log_case_t;

static limit_chance_t chance;
static limit_key_t keys[KEYS];
static log_case_t cases[LIMIT_SLOTS][LIMIT_BATCH];
static int64_t ids;

static void renew(limit_key_t *key) {
  key->count = key->receipts = 0;
  key->ban_us = 0;
  if (!limit_once_in(&chance, 3) && key->b > 0 && key->now < TIME_MOST / 2)
    return;
  key->b =
      limit_once_in(&chance, 100) ? limit_sized(&chance, COUNT_MOST) : limit_sized(&chance, 12);
  key->p = limit_sized(&chance, (INT64_C(1) << 52) / key->b);
  key->now = limit_once_in(&chance, 2) ? INT64_C(1700000000000000) + limit_below(&chance, YEAR_US)
                                       : limit_below(&chance, 1000);
}

static int64_t draw_time(const limit_key_t *key) {
  int64_t now = key->now;
  switch (limit_below(&chance, 10)) {
  case 0:
  case 1:
  case 2:
    break;
  case 3:
    now += limit_sized(&chance, key->p);
    break;
  case 4:
    now += limit_sized(&chance, key->p / (1 + key->b) + 1);
    break;
  case 5:
    if (limit_once_in(&chance, 4))
      now -= limit_sized(&chance, limit_once_in(&chance, 2) ? 100 : key->p);
    break;
  case 6:
    if (key->ban_us > 0)
      now = limit_near(&chance, key->banned_until);
    break;
  default:
    if (key->count > 0)
      now = limit_near(&chance, key->entry[limit_below(&chance, (int64_t)key->count)].at + key->p);
    if (now < key->now && !limit_once_in(&chance, 10))
      now = key->now;
  }
  return limit_clamped(now, 0, TIME_MOST);
}

static void change_policy(limit_key_t *key) {
  if (limit_once_in(&chance, 2))
    key->b = limit_clamped(limit_once_in(&chance, 2) ? key->b * 2 : key->b / 2, 1,
                           key->b > 12 ? COUNT_MOST : 12);
  else
    key->p = limit_sized(&chance, key->p < TIME_MOST / 2 ? key->p * 2 : key->p);
}

static void draw_refund(limit_key_t *key, request_t *request) {
  receipt_t receipt = key->receipt[--key->receipts];
  request->id = receipt.id;
  request->cost = limit_once_in(&chance, 2) ? receipt.cost : limit_sized(&chance, receipt.cost);
}

static request_t draw_request(limit_key_t *key) {
  static const op_t ops[] = {TAKE, TAKE, TAKE, TAKE,   TAKE,   TAKE,   TAKE, SLICE,
                             PEEK, PEEK, PEEK, REFUND, REFUND, REFUND, BAN,  PENALTY};
  key->now = draw_time(key);
  if (limit_once_in(&chance, 60))
    change_policy(key);
  request_t request = {.op = ops[limit_below(&chance, sizeof ops / sizeof *ops)],
                       .p = key->p,
                       .b = key->b,
                       .cost = limit_sized(&chance, limit_once_in(&chance, 2) ? 1 : key->b),
                       .now = key->now,
                       .id = ++ids};
  if (limit_once_in(&chance, 400) || key->now == TIME_MOST)
    request.op = FORGET;
  if ((request.op == REFUND && key->receipts == 0) ||
      (request.op == BAN && !limit_once_in(&chance, 3)))
    request.op = TAKE;
  if (request.op == REFUND)
    draw_refund(key, &request);
  else if (request.op == PEEK && limit_once_in(&chance, 2))
    request.cost = 0;
  else if (request.op == PENALTY && limit_once_in(&chance, 2))
    request.cost = limit_sized(&chance, 3 * key->b);
  if (request.op == SLICE)
    request.fewest = limit_once_in(&chance, 2) ? 1 : limit_sized(&chance, request.cost);
  if (request.op == BAN) {
    request.cost = 0;
    request.ban_us =
        limit_once_in(&chance, 2) ? 0 : limit_sized(&chance, least(2 * key->p, 10 * YEAR_US));
  }
  return request;
}

static void print_entries(const limit_key_t *key, log_case_t *one) {
  char *at = one->entries;
  one->count = key->count;
  *at = '\0';
  for (size_t i = 0; i < key->count && key->count <= SHOWN; i++) {
    const entry_t *entry = &key->entry[i];
    at += sprintf(at, "%s%" PRId64 ":%" PRId64 " %" PRId64, i > 0 ? " " : "", entry->id,
                  entry->index, entry->at);
  }
}

static void draw_case(log_case_t *one) {
  one->key = (size_t)limit_below(&chance, KEYS);
  limit_key_t *key = &keys[one->key];
  request_t request = draw_request(key);
  one->request = request;
  if (request.op == FORGET) {
    renew(key);
    one->outcome = (outcome_t){.ttl_ms = -2, .ban_ttl_ms = -2};
  } else {
    one->outcome = model(key, &request);
  }
  print_entries(key, one);
  bool takes = request.op == TAKE || request.op == SLICE || request.op == PENALTY;
  takes = takes && one->outcome.reply[0] >= 0;
  if (!takes)
    return;
  if (key->receipts == RECEIPTS)
    memmove(key->receipt, key->receipt + 1, --key->receipts * sizeof *key->receipt);
  key->receipt[key->receipts++] =
      (receipt_t){request.id, request.op == SLICE ? one->outcome.reply[0] : request.cost};
}

/* ---- as a suite ---- */

static void begin(uint64_t seed) {
  chance = (limit_chance_t){seed};
  ids = 0;
  memset(keys, 0, sizeof keys);
  for (size_t i = 0; i < KEYS; i++)
    renew(&keys[i]);
}

static const char *const op_names[] = {"take",   "slice", "peek",  "penalty",
                                       "refund", "ban",   "forget"};

static void next(size_t slot, limit_words_t *words) {
  limit_words_begin(words, 2 * KEYS);
  for (size_t i = 0; i < LIMIT_BATCH; i++) {
    log_case_t *one = &cases[slot][i];
    draw_case(one);
    const request_t *request = &one->request;
    const int64_t policy[] = {6, request->p, 0, request->b};
    limit_words_integer(words, (int64_t)(2 * one->key + 1));
    limit_words_text(words, op_names[request->op]);
    limit_words_doubles(words, policy, 4);
    limit_words_integer(words, request->cost);
    if (request->op == BAN)
      limit_words_doubles(words, &request->ban_us, 1);
    else if (request->op == SLICE)
      limit_words_both(words, request->fewest, request->id);
    else
      limit_words_integer(words, request->id);
    limit_words_integer(words, request->now);
    limit_words_integer(words, SHOWN);
  }
}

static const char *check_case(const log_case_t *one, redisReply *const *item) {
  limit_numbers_t is;
  const outcome_t *outcome = &one->outcome;
  if (one->request.op != FORGET) {
    if (!limit_numbers_read(item[0]->str, item[0]->len, &is) || is.count != NUMBERS)
      return "the reply is none";
    bool banned = outcome->reply[3] > one->request.now || is.at[3] > one->request.now;
    for (size_t i = 0; i < NUMBERS; i++)
      if (is.at[i] != outcome->reply[i] && (i != 3 || banned))
        return "the reply";
  }
  if (item[1]->integer != outcome->ttl_ms)
    return "the ttl";
  if (item[2]->integer != outcome->ban_ttl_ms)
    return "the ban's ttl";
  if (item[3]->integer != (int64_t)one->count)
    return "the number of entries";
  return strcmp(item[4]->str, one->entries) == 0 ? NULL : "the entries";
}

static void print_case(const log_case_t *one, redisReply *const *item) {
  const request_t *request = &one->request;
  limit_numbers_t is = {0};
  limit_numbers_read(item[0]->str, item[0]->len, &is);
  fprintf(stderr,
          "%s of %" PRId64 " at %" PRId64 ", key %zu, id %" PRId64 ", ban %" PRId64 "; P %" PRId64
          ", B %" PRId64 "\n",
          op_names[request->op], request->cost, request->now, one->key, request->id,
          request->ban_us, request->p, request->b);
  for (size_t i = 0; i < NUMBERS; i++)
    fprintf(stderr, "  reply %" PRId64 ", should be %" PRId64 "\n", is.at[i],
            one->outcome.reply[i]);
  fprintf(stderr,
          "  \"%s\"; ttls %lld %lld, should be %" PRId64 " %" PRId64
          "\n  %lld entries: %s\n  should be %zu: %s\n",
          is.count == 0 ? item[0]->str : "", item[1]->integer, item[2]->integer,
          one->outcome.ttl_ms, one->outcome.ban_ttl_ms, item[3]->integer, item[4]->str, one->count,
          one->entries);
}

static void check(size_t slot, const redisReply *reply, uint64_t seed, size_t done) {
  if (reply->type == REDIS_REPLY_ERROR)
    fail_msg("%s", reply->str);
  assert_int_equal(reply->type, REDIS_REPLY_ARRAY);
  assert_int_equal(reply->elements, LIMIT_BATCH * ITEMS);
  for (size_t i = 0; i < LIMIT_BATCH; i++) {
    redisReply *const *item = reply->element + i * ITEMS;
    const char *wrong = check_case(&cases[slot][i], item);
    if (wrong == NULL)
      continue;
    print_case(&cases[slot][i], item);
    fail_msg("BELAY_LIMIT_SEED=%" PRIu64 ", operation %zu: %s: not as in the model", seed, done + i,
             wrong);
  }
}

const limit_suite_t limit_log_suite = {
    .script = &belay__script_limit_log,
    .head = script_head,
    .tail = script_tail,
    .begin = begin,
    .next = next,
    .check = check,
};

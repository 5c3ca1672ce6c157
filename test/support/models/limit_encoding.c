/* Operations of limit_ops.h as words of a command, and replies as numbers. */
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "scripts.gen.h"
#include "support/models/limit_ops.h"
#include "support/base/unit.h"

/* The script's own KEYS and ARGV are those of one case; and the ttl of a SET is looked at on its
 * way, for a server's clock goes on while a script runs. */
static const char script_head[] = "local limit = function(KEYS, ARGV, redis) ";
static const char script_tail[] =
    "\nend\n"
    "local call, ttls, out = redis.call, {}, {}\n"
    "local function note(command, key, value, px, ttl)\n"
    "  if command == 'SET' then\n"
    "    ttls[key] = px == 'PX' and tonumber(ttl)\n"
    "  end\n"
    "  return call(command, key, value, px, ttl)\n"
    "end\n"
    "local function pass(command, ...)\n"
    "  return (command == 'SET' and note or call)(command, ...)\n"
    "end\n"
    "local noted = {call = pass, error_reply = redis.error_reply}\n"
    "for i = 1, #ARGV, 7 do\n"
    "  local key, record, op = KEYS[tonumber(ARGV[i])], KEYS[tonumber(ARGV[i + 1])], ARGV[i + 2]\n"
    "  local good, reply = true, ''\n"
    "  ttls[key], ttls[record] = nil, nil\n"
    "  if op == 'forget' then\n"
    "    call('DEL', key, record)\n"
    "  elseif op == 'drop' then\n"
    "    call('DEL', record)\n"
    "  elseif op == 'garble' then\n"
    "    call('SET', key, ARGV[i + 5])\n"
    "  else\n"
    "    good, reply = pcall(limit, {key, record}, {op, ARGV[i + 3], ARGV[i + 4], ARGV[i + 5],\n"
    "                                               ARGV[i + 6]}, noted)\n"
    "    if type(reply) == 'table' then reply = reply.err end\n"
    "  end\n"
    "  out[#out + 1] = good and reply or 'raised ' .. tostring(reply)\n"
    "  for _, name in ipairs({key, record}) do\n"
    "    local left = call('PTTL', name)\n"
    "    out[#out + 1], out[#out + 2] = call('GET', name) or '', ttls[name] or left\n"
    "    if ttls[name] then call('PERSIST', name) end\n"
    "  end\n"
    "end\n"
    "return out\n";

static const char *op_name(limit_op_t op) {
  static const char *const names[] = {"take",   "slice", "peek",    "penalty",
                                      "refund", "ban",   "reserve", "cancel"};
  return names[op];
}

static const char *deed_name(const limit_case_t *one) {
  return one->deed == LIMIT_FORGET   ? "forget"
         : one->deed == LIMIT_DROP   ? "drop"
         : one->deed == LIMIT_GARBLE ? "garble"
                                     : op_name(one->request.op);
}

/* Adds the arguments of several takes, slice, refund, ban, reserve and cancel. */
static void add_details(limit_words_t *words, const limit_request_t *request) {
  int64_t numbers[2 + LIMIT_RULES] = {request->taken, request->since};
  size_t count = 2;
  if (request->op == LIMIT_REFUND) {
    for (size_t i = 0; i < request->policy->count; i++)
      numbers[count++] = request->thirds[i];
  } else if (request->op == LIMIT_RESERVE) {
    numbers[0] = request->longest;
    numbers[1] = request->remember;
  } else {
    numbers[0] = request->op == LIMIT_BAN     ? request->ban_us
                 : request->op == LIMIT_SLICE ? request->fewest
                 : request->op == LIMIT_TAKE  ? request->takes
                                              : request->remember;
    bool has_one = request->op == LIMIT_BAN || request->op == LIMIT_SLICE ||
                   request->op == LIMIT_CANCEL || request->takes > 0;
    count = has_one ? 1 : 0;
  }
  limit_words_doubles(words, numbers, count);
}

static void add_policy(limit_words_t *words, const limit_policy_t *policy) {
  int64_t numbers[4 * LIMIT_RULES];
  size_t count = 0;
  for (size_t i = 0; i < policy->count; i++) {
    const limit_rule_t *rule = &policy->rule[i];
    numbers[count++] = (int64_t)rule->kind;
    numbers[count++] = rule->p;
    numbers[count++] = rule->r;
    numbers[count++] = rule->b;
  }
  limit_words_doubles(words, numbers, count);
}

static void add_case(limit_words_t *words, const limit_case_t *one) {
  /* None is as long as what is at such a key, or begins as that does. */
  static const char *const garbage[] = {"", "x", "thirty-two bytes, and all in all",
                                        "88 bytes, as there are at a key of a single limit; but "
                                        "the first eight are no zero at all."};
  size_t first = one->key * (1 + LIMIT_RECORDS) + 1;
  limit_words_integer(words, (int64_t)first);
  limit_words_integer(words, (int64_t)(first + 1 + one->record));
  limit_words_text(words, deed_name(one));
  if (one->deed != LIMIT_ASK) {
    limit_words_text(words, "");
    limit_words_text(words, "0");
    limit_words_text(words, garbage[words->used % (sizeof garbage / sizeof *garbage)]);
    limit_words_text(words, "0");
    return;
  }
  add_policy(words, &one->policy);
  limit_words_integer(words, one->request.cost);
  add_details(words, &one->request);
  limit_words_integer(words, one->request.now);
}

/* ---- batches ---- */

enum { ITEMS = 5 }; /* of the reply to each case */

static limit_world_t world;
static limit_case_t cases[LIMIT_SLOTS][LIMIT_BATCH];

static void begin(uint64_t seed) {
  limit_world_init(&world, seed);
}

static void next(size_t slot, limit_words_t *words) {
  limit_words_begin(words, LIMIT_KEYS * (1 + LIMIT_RECORDS));
  for (size_t i = 0; i < LIMIT_BATCH; i++) {
    limit_world_next(&world, &cases[slot][i]);
    add_case(words, &cases[slot][i]);
  }
}

/* ---- replies ---- */

/* One item of the reply. */
typedef struct item {
  const char *at; /* NULL: an integer */
  size_t len;
  int64_t integer;
} item_t;

static const char *compare_used(const limit_used_t *used, const int64_t *is) {
  bool nothing = used->rule.kind != LIMIT_BUCKET && used->b == 0 && used->c == 0;
  if (is[0] != used->a && !nothing)
    return "a";
  if (is[1] != used->b)
    return "b";
  return is[2] != used->c ? "c" : NULL;
}

static const char *compare_rule(const limit_rule_t *rule, const int64_t *is) {
  bool same =
      is[0] == (int64_t)rule->kind && is[1] == rule->p && is[2] == rule->r && is[3] == rule->b;
  return same ? NULL : "a policy";
}

/* brief: without the policies. */
static const char *compare_state(const limit_state_t *state, const limit_numbers_t *is,
                                 bool brief) {
  size_t each = brief ? 3 : 7;
  if (is->count != 4 + each * state->count)
    return "the number of numbers";
  if (is->at[1] != state->at)
    return "at";
  if (is->at[2] != state->since)
    return "since";
  if (is->at[3] != state->ban && (is->at[3] > state->at || state->ban > state->at))
    return "ban";
  for (size_t i = 0; i < state->count; i++) {
    const char *wrong = compare_used(&state->used[i], &is->at[4 + each * i]);
    if (wrong == NULL && !brief)
      wrong = compare_rule(&state->used[i].rule, &is->at[4 + each * i + 3]);
    if (wrong != NULL)
      return wrong;
  }
  return NULL;
}

static const char *check_reply(const limit_case_t *one, const item_t *item) {
  static const char wrongtype[] = "WRONGTYPE ";
  limit_numbers_t is;
  if (one->garbled)
    return item->len > 10 && memcmp(item->at, wrongtype, 10) == 0 ? NULL : "there is no error";
  const limit_state_t *reply = &one->outcome.reply;
  if (item->at == NULL) { /* a denial may be no more than the debt, of a bucket that is alone */
    bool may = one->outcome.answer == -1 && reply->count == 1 &&
               reply->used[0].rule.kind == LIMIT_BUCKET && reply->ban <= reply->at;
    return may && item->integer == reply->used[0].a ? NULL : "the debt";
  }
  if (!limit_numbers_read(item->at, item->len, &is) || is.count < 4)
    return "the reply is none";
  bool parts = one->request.op == LIMIT_REFUND || one->request.op == LIMIT_CANCEL;
  double answer = parts ? one->outcome.returned : (double)one->outcome.answer;
  if (is.first < answer || is.first > answer)
    return "the answer";
  bool brief = one->outcome.answer < 0 && is.count == 4 + 3 * one->outcome.reply.count;
  return compare_state(&one->outcome.reply, &is, brief);
}

static const char *check_value(const limit_case_t *one, const item_t *item) {
  limit_numbers_t is;
  if (one->garbled)
    return NULL;
  if (one->after.count == 0)
    return item->len == 0 ? NULL : "there is a value";
  if (!limit_numbers_read(item->at, item->len, &is) || is.count < 4 ||
      is.at[0] != one->after.last || is.first > (double)is.at[0])
    return "there is no value";
  return compare_state(&one->after, &is, false);
}

static const char *check_record(const limit_record_t *record, const item_t *item) {
  limit_numbers_t is;
  if (record->what == LIMIT_NO_RECORD)
    return item->len == 0 ? NULL : "there is a record";
  if (!limit_numbers_read(item->at, item->len, &is))
    return "there is no record";
  if (record->what == LIMIT_CANCELED)
    return is.count == 1 && !(is.first < -1 - record->returned) &&
                   !(is.first > -1 - record->returned)
               ? NULL
               : "the canceled reservation";
  if (is.count != 4 + record->count || is.at[0] != record->act || is.at[1] != record->taken ||
      is.at[2] != record->since || is.at[3] != record->cost)
    return "the reservation";
  for (size_t i = 0; i < record->count; i++)
    if (is.at[4 + i] != record->thirds[i])
      return "the marks of the reservation";
  return NULL;
}

static bool is_ttl(limit_change_t change, bool there, int64_t ttl_ms, int64_t is) {
  return is == (change == LIMIT_SET ? ttl_ms : there ? -1 : -2);
}

/* NULL: it is as the model says. Else what is not. */
static const char *check_case(const limit_case_t *one, const item_t items[ITEMS]) {
  const limit_outcome_t *outcome = &one->outcome;
  const char *wrong = one->deed == LIMIT_ASK ? check_reply(one, &items[0]) : NULL;
  if (wrong == NULL)
    wrong = check_value(one, &items[1]);
  if (wrong == NULL && !one->garbled &&
      !is_ttl(outcome->key, one->after.count > 0, outcome->key_ttl_ms, items[2].integer))
    wrong = "the ttl";
  if (wrong == NULL)
    wrong = check_record(&one->record_after, &items[3]);
  bool there = one->record_after.what != LIMIT_NO_RECORD;
  if (wrong == NULL && !is_ttl(outcome->record, there, outcome->record_ttl_ms, items[4].integer))
    wrong = "the record's ttl";
  return wrong;
}

/* ---- telling ---- */

static void print_state(const char *name, const limit_state_t *state) {
  fprintf(stderr, "  %s at %" PRId64 " since %" PRId64 " ban %" PRId64 "\n", name, state->at,
          state->since, state->ban);
  for (size_t i = 0; i < state->count; i++) {
    const limit_used_t *used = &state->used[i];
    fprintf(stderr,
            "    a %" PRId64 " b %" PRId64 " c %" PRId64 "; kind %d P %" PRId64 " R %" PRId64
            " B %" PRId64 "\n",
            used->a, used->b, used->c, (int)used->rule.kind, used->rule.p, used->rule.r,
            used->rule.b);
  }
}

static void print_item(const char *name, const item_t *item) {
  limit_numbers_t is;
  fprintf(stderr, "  %s:", name);
  if (item->at == NULL)
    fprintf(stderr, " %" PRId64, item->integer);
  else if (!limit_numbers_read(item->at, item->len, &is))
    fprintf(stderr, " \"%.*s\"", (int)item->len, item->at);
  else
    for (size_t i = 0; i < is.count; i++)
      fprintf(stderr, " %" PRId64, is.at[i]);
  fputc('\n', stderr);
}

static void print_case(const limit_case_t *one, const item_t items[ITEMS]) {
  static const char *const names[] = {"its reply", "its value", "its ttl", "its record",
                                      "its record's ttl"};
  const limit_request_t *request = &one->request;
  fprintf(stderr,
          "%s of %" PRId64 " (%" PRId64 ") at %" PRId64 " (key %zu, record %zu%s); refund: %" PRId64
          " %" PRId64 ", ban %" PRId64 ", longest %" PRId64 ", remember %" PRId64 "\n",
          deed_name(one), request->cost, request->fewest, request->now, one->key, one->record,
          one->garbled ? ", garbled" : "", request->taken, request->since, request->ban_us,
          request->longest, request->remember);
  if (request->op == LIMIT_REFUND)
    for (size_t i = 0; i < one->policy.count; i++)
      fprintf(stderr, "  third %" PRId64 "\n", request->thirds[i]);
  print_state("before", &one->before);
  print_state("the model tells", &one->outcome.reply);
  print_state("the model leaves", &one->after);
  fprintf(stderr,
          "  the model: %" PRId64 ", change %d ttl %" PRId64 ", record %d act %" PRId64
          " returned %.17g ttl %" PRId64 "\n",
          one->outcome.answer, (int)one->outcome.key, one->outcome.key_ttl_ms,
          (int)one->record_after.what, one->record_after.act, one->record_after.returned,
          one->outcome.record_ttl_ms);
  for (size_t i = 0; i < ITEMS; i++)
    print_item(names[i], &items[i]);
}

static void check(size_t slot, const redisReply *reply, uint64_t seed, size_t done) {
  if (reply->type == REDIS_REPLY_ERROR)
    fail_msg("%s", reply->str);
  assert_int_equal(reply->type, REDIS_REPLY_ARRAY);
  assert_int_equal(reply->elements, LIMIT_BATCH * ITEMS);
  for (size_t i = 0; i < LIMIT_BATCH; i++) {
    item_t items[ITEMS];
    for (size_t j = 0; j < ITEMS; j++) {
      const redisReply *item = reply->element[i * ITEMS + j];
      items[j] = (item_t){item->str, item->len, item->integer};
    }
    const char *wrong = check_case(&cases[slot][i], items);
    if (wrong == NULL)
      continue;
    print_case(&cases[slot][i], items);
    fail_msg("BELAY_LIMIT_SEED=%" PRIu64 ", operation %zu: %s is not as in the model", seed,
             done + i, wrong);
  }
}

const limit_suite_t limit_suite = {
    .script = &belay__script_limit,
    .head = script_head,
    .tail = script_tail,
    .begin = begin,
    .next = next,
    .check = check,
};

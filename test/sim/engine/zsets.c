/* Sorted sets. */
#include "command.h"

#include <math.h>
#include <stdlib.h>

#define NO_RANGE "ERR min or max is not a float"

static size_t count_of(const engine_object_t *object) {
  return object != NULL ? object->as.zset.members.count : 0;
}

static engine_score_t *member_of(const engine_object_t *object, engine_bytes_t member) {
  return object == NULL ? NULL
                        : (engine_score_t *)engine_table_find(&object->as.zset.members, member);
}

static bool find(engine_call_t *call, engine_object_t **object) {
  return engine_find(call, call->argv[1], ENGINE_ZSET, object);
}

/* ---- adding ---- */

typedef struct adding {
  bool nx, xx, incr;
  size_t added;
  bool done;    /* incr: the score is a new one, or was that already */
  double score; /* incr: it */
} adding_t;

/* Tells where the scores begin. */
static size_t read_add_options(const engine_call_t *call, adding_t *adding) {
  const struct {
    const char *name;
    bool *flag;
  } options[] = {{"NX", &adding->nx}, {"XX", &adding->xx}, {"INCR", &adding->incr}};
  size_t at = 2;
  for (; at < call->argc; at++) {
    size_t i = 0;
    while (i < 3 && !engine_bytes_is(call->argv[at], options[i].name))
      i++;
    if (i == 3)
      break;
    *options[i].flag = true;
  }
  return at;
}

static bool check_add_options(engine_call_t *call, const adding_t *adding, size_t words) {
  if (words == 0 || words % 2 != 0)
    engine_reply_syntax_error(call);
  else if (adding->nx && adding->xx)
    engine_reply_error(call, "ERR XX and NX options at the same time are not compatible");
  else if (adding->incr && words > 2)
    engine_reply_error(call, "ERR INCR option supports a single increment-element pair");
  else
    return true;
  return false;
}

/* False: the sum is no number, and that is the reply. */
static bool add_one(engine_call_t *call, adding_t *adding, engine_object_t *object, double score,
                    engine_bytes_t member) {
  const engine_score_t *is = member_of(object, member);
  if (is == NULL ? adding->xx : adding->nx)
    return true;
  if (is != NULL && adding->incr)
    score += is->score;
  if (isnan(score)) {
    engine_reply_error(call, "ERR resulting score is not a number (NaN)");
    return false;
  }
  adding->done = true;
  adding->score = score;
  adding->added += is == NULL;
  if (is == NULL || score < is->score || score > is->score)
    engine_zset_set(&object->as.zset, member, score + 0.0); /* -0 is 0 in Redis's small sets */
  return true;
}

static void zadd(engine_call_t *call) {
  adding_t all = {0}, *adding = &all;
  size_t first = read_add_options(call, adding);
  engine_object_t *object;
  double score;
  if (!check_add_options(call, adding, call->argc - first))
    return;
  for (size_t i = first; i < call->argc; i += 2)
    if (!engine_get_double(call, call->argv[i], &score))
      return;
  if (!(adding->xx ? find(call, &object)
                   : engine_find_or_make(call, call->argv[1], ENGINE_ZSET, &object)))
    return;
  for (size_t i = first; object != NULL && i < call->argc; i += 2) {
    engine_bytes_double(call->argv[i], &score);
    if (!add_one(call, adding, object, score, call->argv[i + 1]))
      return;
  }
  if (!adding->incr)
    engine_reply_integer(call, (int64_t)adding->added);
  else if (adding->done)
    engine_reply_double(call, adding->score);
  else
    engine_reply_nil(call);
}

/* ---- one member ---- */

static void zrem(engine_call_t *call) {
  engine_object_t *object = call->object;
  int64_t removed = 0;
  for (size_t i = 2; i < call->argc; i++) {
    engine_score_t *entry = member_of(object, call->argv[i]);
    if (entry == NULL)
      continue;
    engine_zset_remove(&object->as.zset, entry);
    removed++;
  }
  engine_delete_if_empty(call, object);
  engine_reply_integer(call, removed);
}

static void zscore(engine_call_t *call) {
  const engine_score_t *entry = member_of(call->object, call->argv[2]);
  if (entry == NULL)
    engine_reply_nil(call);
  else
    engine_reply_double(call, entry->score);
}

static void zcard(engine_call_t *call) {
  engine_reply_integer(call, (int64_t)count_of(call->object));
}

/* ZRANK, ZREVRANK. */
static void zrank(engine_call_t *call) {
  const engine_score_t *entry = member_of(call->object, call->argv[2]);
  if (entry == NULL) {
    engine_reply_nil(call);
    return;
  }
  size_t rank = engine_zset_rank(&call->object->as.zset, entry);
  bool reverse = (call->command->flags & ENGINE_SECOND) != 0;
  engine_reply_integer(call, (int64_t)(reverse ? count_of(call->object) - 1 - rank : rank));
}

/* ---- ranges ---- */

typedef struct bound {
  double score;
  bool without; /* "(1": what is that score is out of it */
} bound_t;

/* Places in sorted: from first up to, but without, end. */
typedef struct span {
  size_t first, end;
} span_t;

/* Redis uses strtod(): a number as far as it reads, 0 for an empty text, and a 0 byte ends the
 * text. */
static bool read_bound(engine_bytes_t word, bound_t *bound) {
  char *text = engine_allocate(word.len + 1), *end;
  if (word.len > 0)
    memcpy(text, word.at, word.len);
  bound->without = text[0] == '(';
  bound->score = strtod(text + bound->without, &end);
  bool is = *end == '\0' && !isnan(bound->score);
  free(text);
  return is;
}

static bool read_bounds(engine_call_t *call, engine_bytes_t min, engine_bytes_t max,
                        bound_t bounds[2]) {
  if (read_bound(min, &bounds[0]) && read_bound(max, &bounds[1]))
    return true;
  engine_reply_error(call, NO_RANGE);
  return false;
}

/* How many have a lower score, or that one if `with` it. */
static size_t count_before(const engine_object_t *object, double score, bool with) {
  size_t low = 0, high = count_of(object);
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    double is = object->as.zset.sorted[middle]->score;
    if (is < score || (with && is <= score))
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static span_t by_score(const engine_object_t *object, const bound_t bounds[2]) {
  span_t span = {count_before(object, bounds[0].score, bounds[0].without),
                 count_before(object, bounds[1].score, !bounds[1].without)};
  if (span.end < span.first)
    span.end = span.first;
  return span;
}

/* From the end if they are negative, and both included. */
static span_t by_rank(const engine_object_t *object, int64_t first, int64_t last) {
  int64_t count = (int64_t)count_of(object);
  first += first < 0 ? count : 0;
  last += last < 0 ? count : 0;
  first = first < 0 ? 0 : first;
  last = last >= count ? count - 1 : last;
  return first > last ? (span_t){0} : (span_t){(size_t)first, (size_t)last + 1};
}

static size_t length(span_t span) {
  return span.end - span.first;
}

static span_t limit(span_t span, int64_t offset, int64_t count) {
  size_t all = length(span);
  size_t skipped = offset < 0 || (uint64_t)offset > all ? all : (size_t)offset;
  size_t n = count < 0 || (uint64_t)count > all - skipped ? all - skipped : (size_t)count;
  return (span_t){span.first + skipped, span.first + skipped + n};
}

/* A member and its score are one item in RESP3. */
static void reply_span(engine_call_t *call, const engine_object_t *object, span_t span,
                       bool reverse, bool with_scores) {
  bool pairs = with_scores && engine_is_resp3(call);
  engine_reply_array(call, length(span) * (with_scores && !pairs ? 2 : 1));
  for (size_t i = 0; i < length(span); i++) {
    const engine_score_t *entry =
        object->as.zset.sorted[reverse ? span.end - 1 - i : span.first + i];
    if (pairs)
      engine_reply_array(call, 2);
    engine_reply_bytes(call, entry->entry.key);
    if (with_scores)
      engine_reply_double(call, entry->score);
  }
}

typedef struct ranging {
  bool with_scores;
  int64_t offset, count;
} ranging_t;

static bool read_range_options(engine_call_t *call, ranging_t *ranging) {
  *ranging = (ranging_t){.count = -1};
  for (size_t i = 4; i < call->argc; i++) {
    if (engine_bytes_is(call->argv[i], "WITHSCORES")) {
      ranging->with_scores = true;
    } else if (engine_bytes_is(call->argv[i], "LIMIT") && i + 2 < call->argc) {
      if (!engine_get_integer(call, call->argv[i + 1], &ranging->offset) ||
          !engine_get_integer(call, call->argv[i + 2], &ranging->count))
        return false;
      i += 2;
    } else {
      engine_reply_syntax_error(call);
      return false;
    }
  }
  return true;
}

/* ZRANGE, ZREVRANGE. */
static void zrange(engine_call_t *call) {
  bool reverse = (call->command->flags & ENGINE_SECOND) != 0;
  ranging_t ranging;
  engine_object_t *object;
  int64_t first = 0, last = 0;
  if (!read_range_options(call, &ranging))
    return;
  if (ranging.count != -1) {
    engine_reply_error(call, "ERR syntax error, LIMIT is only supported in combination with either "
                             "BYSCORE or BYLEX");
    return;
  }
  if (!engine_get_integer(call, call->argv[2], &first) ||
      !engine_get_integer(call, call->argv[3], &last) || !find(call, &object))
    return;
  span_t span = by_rank(object, first, last);
  size_t n = count_of(object);
  if (reverse)
    span = (span_t){n - span.end, n - span.first};
  reply_span(call, object, span, reverse, ranging.with_scores);
}

static void zrangebyscore(engine_call_t *call) {
  ranging_t ranging;
  engine_object_t *object;
  bound_t bounds[2];
  if (!read_range_options(call, &ranging) ||
      !read_bounds(call, call->argv[2], call->argv[3], bounds) || !find(call, &object))
    return;
  span_t span = limit(by_score(object, bounds), ranging.offset, ranging.count);
  reply_span(call, object, span, false, ranging.with_scores);
}

static void zcount(engine_call_t *call) {
  engine_object_t *object;
  bound_t bounds[2];
  if (read_bounds(call, call->argv[2], call->argv[3], bounds) && find(call, &object))
    engine_reply_integer(call, (int64_t)length(by_score(object, bounds)));
}

/* ---- removing ranges ---- */

static void remove_span(engine_call_t *call, engine_object_t *object, span_t span) {
  for (size_t i = span.end; i > span.first; i--)
    engine_zset_remove(&object->as.zset, object->as.zset.sorted[i - 1]);
  engine_delete_if_empty(call, object);
}

static void zremrangebyrank(engine_call_t *call) {
  span_t span = by_rank(call->object, call->number[0], call->number[1]);
  remove_span(call, call->object, span);
  engine_reply_integer(call, (int64_t)length(span));
}

static void zremrangebyscore(engine_call_t *call) {
  engine_object_t *object;
  bound_t bounds[2];
  if (!read_bounds(call, call->argv[2], call->argv[3], bounds) || !find(call, &object))
    return;
  span_t span = by_score(object, bounds);
  remove_span(call, object, span);
  engine_reply_integer(call, (int64_t)length(span));
}

const engine_command_t engine_zset_commands[] = {
    {"ZADD", zadd, -4, ENGINE_WRITES, NULL},
    {"ZREM", zrem, -3, ENGINE_WRITES | ENGINE_OF(ZSET), NULL},
    {"ZSCORE", zscore, 3, ENGINE_OF(ZSET), NULL},
    {"ZCARD", zcard, 2, ENGINE_OF(ZSET), NULL},
    {"ZCOUNT", zcount, 4, 0, NULL},
    {"ZRANK", zrank, 3, ENGINE_OF(ZSET), NULL},
    {"ZREVRANK", zrank, 3, ENGINE_OF(ZSET) | ENGINE_SECOND, NULL},
    {"ZRANGE", zrange, -4, 0, NULL},
    {"ZREVRANGE", zrange, -4, ENGINE_SECOND, NULL},
    {"ZRANGEBYSCORE", zrangebyscore, -4, 0, NULL},
    {"ZREMRANGEBYRANK", zremrangebyrank, 4,
     ENGINE_WRITES | ENGINE_OF(ZSET) | ENGINE_INTEGER_2 | ENGINE_INTEGER_3, NULL},
    {"ZREMRANGEBYSCORE", zremrangebyscore, 4, ENGINE_WRITES, NULL},
    {NULL, NULL, 0, 0, NULL},
};

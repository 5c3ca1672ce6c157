/* ZUNIONSTORE. */
#include <math.h>
#include <stdlib.h>

#include "command.h"

typedef enum aggregate { SUM, MIN, MAX } aggregate_t;

typedef struct joining {
  engine_zset_t zset; /* the result */
  size_t keys;        /* how many there are; the first is argv[3] */
  aggregate_t aggregate;
} joining_t;

static bool read_keys(engine_call_t *call, joining_t *joining) {
  int64_t count;
  if (!engine_get_integer(call, call->argv[2], &count))
    return false;
  if (count < 1) {
    engine_reply_error(call, "ERR at least 1 input key is needed for 'zunionstore' command");
    return false;
  }
  if (count > (int64_t)call->argc - 3) {
    engine_reply_syntax_error(call);
    return false;
  }
  joining->keys = (size_t)count;
  return true;
}

/* Each is there, or is a set of either kind; a plain one's members have the score 1. */
static bool check_types(engine_call_t *call, const joining_t *joining) {
  for (size_t i = 0; i < joining->keys; i++) {
    const engine_object_t *object = engine_lookup(call, call->argv[3 + i]);
    if (object == NULL || object->type == ENGINE_SET || object->type == ENGINE_ZSET)
      continue;
    engine_reply_wrongtype(call);
    return false;
  }
  return true;
}

static bool read_aggregate(engine_bytes_t word, aggregate_t *aggregate) {
  static const char *const names[] = {"SUM", "MIN", "MAX"};
  for (aggregate_t i = SUM; i <= MAX; i++)
    if (engine_bytes_is(word, names[i])) {
      *aggregate = i;
      return true;
    }
  return false;
}

static bool read_options(engine_call_t *call, joining_t *joining) {
  for (size_t at = 3 + joining->keys; at < call->argc;) {
    size_t more = call->argc - at - 1;
    if (more >= 1 && engine_bytes_is(call->argv[at], "AGGREGATE") &&
        read_aggregate(call->argv[at + 1], &joining->aggregate)) {
      at += 2;
    } else {
      engine_reply_syntax_error(call);
      return false;
    }
  }
  return true;
}

/* inf - inf is 0 here. */
static double number(double value) {
  return isnan(value) ? 0 : value;
}

static void join_one(joining_t *joining, engine_bytes_t member, double score) {
  const engine_score_t *is =
      (const engine_score_t *)engine_table_find(&joining->zset.members, member);
  if (is != NULL && joining->aggregate == SUM)
    score = number(is->score + score);
  else if (is != NULL && joining->aggregate == MIN)
    score = score < is->score ? score : is->score;
  else if (is != NULL)
    score = score > is->score ? score : is->score;
  engine_zset_set(&joining->zset, member, score + 0.0); /* as in zsets.c */
}

static void join_key(joining_t *joining, const engine_object_t *object) {
  bool is_set = object->type == ENGINE_SET;
  const engine_table_t *members = is_set ? &object->as.set : &object->as.zset.members;
  for (const engine_entry_t *entry = members->first; entry != NULL; entry = entry->after) {
    double score = is_set ? 1 : ((const engine_score_t *)entry)->score;
    join_one(joining, entry->key, score);
  }
}

/* The destination may be one of the sources. */
static void put(engine_call_t *call, joining_t *joining) {
  size_t count = joining->zset.members.count;
  engine_object_t *object = engine_make(call, call->argv[1], ENGINE_ZSET);
  object->as.zset = joining->zset;
  engine_delete_if_empty(call, object);
  engine_reply_integer(call, (int64_t)count);
}

static size_t size_of(const engine_object_t *object) {
  if (object == NULL)
    return 0;
  return object->type == ENGINE_SET ? object->as.set.count : object->as.zset.members.count;
}

/* The smallest first, as in Redis, so that sums of infinities are equal. Keys of one size are
 * in the order of the arguments. */
static void join_all(engine_call_t *call, joining_t *joining) {
  size_t done = 0;
  for (size_t size = 0; done < joining->keys; size++)
    for (size_t i = 0; i < joining->keys; i++) {
      const engine_object_t *object = engine_lookup(call, call->argv[3 + i]);
      if (size_of(object) != size)
        continue;
      done++;
      if (object != NULL)
        join_key(joining, object);
    }
}

static void zunionstore(engine_call_t *call) {
  joining_t joining = {.aggregate = SUM};
  if (!read_keys(call, &joining) || !check_types(call, &joining))
    return;
  if (read_options(call, &joining)) {
    join_all(call, &joining);
    put(call, &joining);
  }
}

const engine_command_t engine_union_commands[] = {
    {"ZUNIONSTORE", zunionstore, -4, ENGINE_WRITES, NULL},
    {NULL, NULL, 0, 0, NULL},
};

/* The table of records in a process, against a model of it. */
#include <stdio.h>
#include <string.h>

#include "cache/local.h"
#include "support/base/small.h"

#define COUNTERS_SIZE (BELAY__LOCAL_COUNTERS * sizeof(uint32_t))
#define BUCKET sizeof(void *)
#define KEYS 60
#define TAGS 6
#define PENDING 8

/* Values observed at the server. */
typedef struct seen {
  size_t key, tags_len, tags[2];
  uint64_t versions[3], doubt;
} seen_t;

typedef struct slot {
  int64_t serial; /* 0: there is none */
  uint64_t until, keep_until, used;
  size_t size;
  seen_t seen;
} slot_t;

/* The versions of each key, and of all keys. Two keys that share a counter share a version. Their
 * names alone decide that. */
typedef struct model {
  slot_t slots[KEYS];
  uint64_t versions[BELAY__LOCAL_COUNTERS], doubt, clock;
  size_t entries_bytes, buckets, count, max_bytes, overhead;
} model_t;

typedef struct pending {
  seen_t seen;
  belay__stamp_t stamp;
} pending_t;

typedef struct run {
  world_t *world;
  belay__local_t local;
  model_t model;
  pending_t pending[PENDING];
  uint64_t now;
  int64_t serial;
  size_t hits, kept, refused, evicted;
} run_t;

static size_t name_of(char out[32], bool is_tag, size_t i) {
  return (size_t)snprintf(out, 32, is_tag ? "t%zu" : i % 2 ? "key:%zu" : "another key:%zu", i);
}

static uint64_t *version_of(model_t *model, bool is_tag, size_t i) {
  char name[32];
  size_t len = name_of(name, is_tag, i);
  return &model->versions[belay__local_hash(name, len, is_tag) % BELAY__LOCAL_COUNTERS];
}

static void read_model(model_t *model, seen_t *seen) {
  seen->versions[0] = *version_of(model, false, seen->key);
  for (size_t i = 0; i < seen->tags_len; i++)
    seen->versions[1 + i] = *version_of(model, true, seen->tags[i]);
  seen->doubt = model->doubt;
}

static bool is_unchanged(model_t *model, const seen_t *seen) {
  seen_t again = *seen;
  read_model(model, &again);
  return memcmp(again.versions, seen->versions, (1 + seen->tags_len) * sizeof(uint64_t)) == 0;
}

static size_t model_bytes(const model_t *model) {
  return model->entries_bytes + model->buckets * BUCKET;
}

static void model_drop(model_t *model, slot_t *slot) {
  model->entries_bytes -= slot->size;
  model->count--;
  *slot = (slot_t){0};
}

static void model_evict(run_t *run, size_t size) {
  model_t *model = &run->model;
  while (model->count > 0 && model_bytes(model) + size > model->max_bytes) {
    slot_t *last = NULL;
    for (size_t i = 0; i < KEYS; i++) {
      slot_t *slot = &model->slots[i];
      if (slot->serial != 0 && (last == NULL || slot->used < last->used))
        last = slot;
    }
    model_drop(model, last);
    run->evicted++;
  }
}

static void model_put(run_t *run, const seen_t *seen, slot_t *new) {
  model_t *model = &run->model;
  slot_t *slot = &model->slots[seen->key];
  if (slot->serial != 0)
    model_drop(model, slot);
  if (!is_unchanged(model, seen) || seen->doubt != model->doubt) {
    run->refused++;
    return;
  }
  if (model->buckets * BUCKET + new->size > model->max_bytes)
    return;
  model_evict(run, new->size);
  if (model->buckets == 0 || model->count >= model->buckets)
    model->buckets = model->buckets == 0 ? 16 : 2 * model->buckets;
  new->seen = *seen;
  new->used = ++model->clock;
  *slot = *new;
  model->entries_bytes += new->size;
  model->count++;
  model_evict(run, 0);
}

static void do_ask(run_t *run) {
  world_t *world = run->world;
  pending_t *pending = &run->pending[below(world, PENDING)];
  pending->seen = (seen_t){.key = below(world, KEYS), .tags_len = below(world, 3)};
  char key[32], names[2][32];
  belay_bytes_t tags[2];
  for (size_t i = 0; i < pending->seen.tags_len; i++) {
    pending->seen.tags[i] = below(world, TAGS);
    tags[i] =
        (belay_bytes_t){.data = names[i], .len = name_of(names[i], true, pending->seen.tags[i])};
  }
  read_model(&run->model, &pending->seen);
  size_t len = name_of(key, false, pending->seen.key);
  belay__local_stamp(&run->local, key, len, tags, pending->seen.tags_len, &pending->stamp);
}

static void do_put(run_t *run) {
  world_t *world = run->world;
  pending_t *pending = &run->pending[below(world, PENDING)];
  if (below(world, 4) == 0) {
    read_model(&run->model, &pending->seen);
    belay__local_restamp(&run->local, &pending->stamp);
  }
  assert_int_equal(belay__local_is_good(&run->local, &pending->stamp),
                   is_unchanged(&run->model, &pending->seen));
  char key[32];
  size_t key_len = name_of(key, false, pending->seen.key);
  size_t len = below(world, 20) == 0 ? below(world, 6000) : below(world, 300);
  belay__record_t *record = belay__record_new(&world->belay, BELAY__RECORD_VALUE, len, 0);
  assert_non_null(record);
  record->created_ms = ++run->serial;
  slot_t slot = {.serial = run->serial, .until = run->now + below(world, 100)};
  slot.keep_until = slot.until + below(world, 100);
  slot.size = run->model.overhead + key_len + belay__record_size(record);
  belay__local_put(&run->local, key, key_len, record, &pending->stamp, slot.until, slot.keep_until);
  belay__record_release(&world->belay, record);
  model_put(run, &pending->seen, &slot);
}

static void do_find(run_t *run) {
  model_t *model = &run->model;
  size_t i = below(run->world, KEYS);
  slot_t *slot = &model->slots[i];
  char key[32];
  size_t len = name_of(key, false, i);
  belay__local_hit_t hit = belay__local_find(&run->local, key, len, run->now);
  bool fresh = run->now < slot->until && slot->seen.doubt == model->doubt;
  bool there = slot->serial != 0 && is_unchanged(model, &slot->seen) &&
               (fresh || run->now < slot->keep_until);
  assert_int_equal(hit.record != NULL, there);
  assert_int_equal(hit.fresh, there && fresh);
  if (there) {
    assert_int_equal(hit.record->created_ms, slot->serial);
    slot->used = ++model->clock;
    run->hits += fresh;
    run->kept += !fresh;
  } else if (slot->serial != 0) {
    model_drop(model, slot);
  }
}

static void do_invalidate(run_t *run) {
  bool is_tag = below(run->world, 3) == 0;
  size_t i = below(run->world, is_tag ? TAGS : KEYS);
  char name[32];
  size_t len = name_of(name, is_tag, i);
  belay__local_invalidate(&run->local, belay__local_hash(name, len, is_tag));
  ++*version_of(&run->model, is_tag, i);
}

static void step(run_t *run) {
  size_t what = below(run->world, 200);
  if (what < 50)
    do_ask(run);
  else if (what < 110)
    do_put(run);
  else if (what < 180)
    do_find(run);
  else if (what < 190)
    do_invalidate(run);
  else if (what < 199)
    run->now += below(run->world, 10);
  else {
    belay__local_note_gap(&run->local);
    run->model.doubt++;
  }
}

/* Bytes that one takes beside its key and its record. */
static size_t overhead_of_one(world_t *world) {
  belay__local_t local;
  assert_error(belay__local_init(&local, &world->belay, 10000), 0);
  belay__record_t *record = belay__record_new(&world->belay, BELAY__RECORD_VALUE, 0, 0);
  belay__stamp_t stamp;
  belay__local_stamp(&local, "k", 1, NULL, 0, &stamp);
  belay__local_put(&local, "k", 1, record, &stamp, 1, 1);
  size_t overhead = local.bytes - 16 * BUCKET - 1 - belay__record_size(record);
  belay__record_release(&world->belay, record);
  belay__local_free(&local);
  return overhead;
}

WORLD_TEST(table_matches_model) {
  static const size_t sizes[] = {1000, 3000, 8000, 20000, 1000000};
  static run_t run;
  size_t overhead = overhead_of_one(world);
  for (size_t i = 0; i < 2 * sizeof sizes / sizeof *sizes; i++) {
    run = (run_t){.world = world, .now = 1};
    run.model.overhead = overhead;
    run.model.max_bytes = sizes[i / 2];
    world->seed = i + 1;
    assert_error(belay__local_init(&run.local, &world->belay, sizes[i / 2]), 0);
    for (int j = 0; j < PENDING * 8; j++)
      do_ask(&run);
    for (int j = 0; j < PENDING; j++) /* those that were not drawn */
      if (run.pending[j].stamp.len == 0)
        run.pending[j] = run.pending[(j + 1) % PENDING];
    for (int j = 0; j < 30000; j++) {
      step(&run);
      assert_int_equal(run.local.table.count, run.model.count);
      assert_int_equal(run.local.bytes, model_bytes(&run.model));
      assert_true(run.local.bytes <= run.local.max_bytes);
      assert_int_equal(world->belay.stats.memory_bytes, run.local.bytes + COUNTERS_SIZE);
    }
    print_message("%zu bytes: %zu hits, %zu kept, %zu refused, %zu evicted, %zu there\n",
                  sizes[i / 2], run.hits, run.kept, run.refused, run.evicted, run.model.count);
    assert_true(run.hits > 100 && run.kept > 15 && run.refused > 1000);
    assert_true((run.evicted > 100) == (sizes[i / 2] < 1000000));
    belay__local_free(&run.local);
  }
}

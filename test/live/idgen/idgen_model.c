/* The id scripts against a model, step by step; and handles against the ids that they received. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "scripts.gen.h"
#include "support/fixtures/data/ids.h"
#include "support/models/scripts.h"

enum { STEPS = 12000, ROUND = 60, TEXT_MAX = 24 };

static uint64_t below(uint64_t *random, uint64_t n) { /* xorshift64* */
  *random ^= *random >> 12;
  *random ^= *random << 25;
  *random ^= *random >> 27;
  return (*random * UINT64_C(2685821657736338717) >> 11) % n;
}

static const char *spell(char out[TEXT_MAX], int64_t n) {
  snprintf(out, TEXT_MAX, "%" PRId64, n);
  return out;
}

static bool overflows(int64_t a, int64_t b) {
  return b > 0 ? a > INT64_MAX - b : a < INT64_MIN - b;
}

static int64_t number_of(const resp_t *reply) {
  char text[TEXT_MAX];
  assert_int_equal(reply->type, RESP_STRING);
  int64_t n = strtoll(reply->str, NULL, 10);
  assert_string_equal(reply->str, spell(text, n)); /* all digits, and nothing else */
  return n;
}

static void expect_overflow(const resp_t *reply) {
  assert_int_equal(reply->type, RESP_ERROR);
  assert_non_null(strstr(reply->str, "would overflow"));
}

/* Small ones, such as do not fit into a double, and the last of all. */
static int64_t draw_number(uint64_t *random) {
  switch (below(random, 4)) {
  case 0:
    return (int64_t)below(random, 1000);
  case 1:
    return (INT64_C(1) << 53) + (int64_t)below(random, 1000);
  case 2:
    return INT64_MAX - (int64_t)below(random, 4000);
  default:
    return (int64_t)below(random, INT64_MAX);
  }
}

typedef struct segment {
  bool there;
  int64_t next;
  char server; /* 'A', 'B', 'C'; 0: none */
} segment_t;

typedef struct fetch {
  int64_t step, gap, floor, start;
  char server; /* 0: it is not asked */
} fetch_t;

/* The next id after the fetch; -1: overflow. */
static int64_t model_fetch(segment_t *model, const fetch_t *fetch) {
  int64_t first = model->there ? model->next : fetch->start;
  bool lost = (model->there && fetch->server != 0 && model->server != fetch->server) ||
              first < fetch->floor;
  int64_t by = lost ? fetch->step + fetch->gap : fetch->step;
  if (first < fetch->floor)
    first = fetch->floor;
  if (!model->there)
    model->server = 0;
  model->there = true;
  model->next = first; /* it never is less, nor is anything given */
  if (overflows(first, by))
    return -1;
  model->next += by;
  if (fetch->server != 0)
    model->server = fetch->server;
  return model->next;
}

static fetch_t draw_fetch(const segment_t *model, uint64_t *random, int64_t range) {
  fetch_t fetch = {.step = 1 + (int64_t)below(random, 100),
                   .gap = (int64_t)below(random, 2) * (int64_t)below(random, 1000),
                   .start = range,
                   .server = "ABC"[below(random, 40) == 0 ? below(random, 3) : 0]};
  if (below(random, 10) == 0)
    fetch.server = 0;
  if (model->there && below(random, 4) != 0) /* as those who have been here know */
    fetch.floor = model->next - (int64_t)below(random, 100);
  if (fetch.floor < 0 || below(random, 50) == 0)
    fetch.floor = range;
  return fetch;
}

static const resp_t *run_fetch(server_t *server, const fetch_t *fetch) {
  char step[TEXT_MAX], jump[TEXT_MAX], floor[TEXT_MAX], start[TEXT_MAX];
  const char who[] = {fetch->server, '\0'};
  return script_run(
      server, &belay__script_idgen_segment,
      &(script_input_t){{"ids"},
                        {spell(step, fetch->step), spell(jump, fetch->step + fetch->gap),
                         spell(floor, fetch->floor), who, spell(start, fetch->start), "0", "0"}});
}

/* With a clock: after any loss of data, no fetch repeats an id of an earlier one, and none is
 * ahead of the clock. The time is the server's, so the replies are bounded, not computed. */
TEST_ON(segments_with_a_clock_never_overlap, server, server_start(NULL)) {
  enum { RATE = 1000000, SKEW_MS = 1, STEP = 50 };
  uint64_t random = UINT64_C(14142135);
  int64_t end = 0; /* of all ids that were given */
  unsigned given_out = 0, waits = 0, losses = 0;
  for (int i = 0; i < 2 * STEPS; i++) {
    char floor[TEXT_MAX];
    const char who[] = {"ABC"[below(&random, 300) == 0 ? below(&random, 3) : 0], '\0'};
    if (below(&random, 300) == 0) {
      losses++;
      server_do(server, "FLUSHALL", NULL);
    } else if (below(&random, 600) == 0) { /* an old file, read by another server */
      losses++;
      server_do(server, "HSET", "ids", "next", "1", "server", "old", NULL);
    }
    bool knows = below(&random, 2) == 0;
    const resp_t *reply = script_run(
        server, &belay__script_idgen_segment,
        &(script_input_t){{"ids"},
                          {"50", "5050", spell(floor, knows ? end : 0), who, "1", "1000000", "1"}});
    if (reply->type == RESP_INTEGER) {
      assert_between(reply->integer, 1, 1000);
      waits++;
      continue;
    }
    int64_t next = number_of(reply);
    assert_true(next - STEP >= end);
    end = next;
    assert_true(end <= 1 + (server_now_ms(server) + 1 - SKEW_MS) * RATE / 1000);
    given_out++;
  }
  print_message("%u fetches, %u waits, %u losses\n", given_out, waits, losses);
  assert_true(given_out > 100 && waits > 100 && losses > 20);
}

TEST_ON(segments_same_as_model, server, server_start(NULL)) {
  uint64_t random = UINT64_C(20240229);
  unsigned jumps = 0, ends = 0;
  for (int i = 0; i < STEPS / ROUND; i++) {
    segment_t model = {0};
    int64_t range = draw_number(&random);
    server_do(server, "FLUSHALL", NULL);
    for (int j = 0; j < ROUND; j++) {
      fetch_t fetch = draw_fetch(&model, &random, range);
      segment_t before = model;
      int64_t expected = model_fetch(&model, &fetch);
      const resp_t *reply = run_fetch(server, &fetch);
      ends += expected < 0;
      jumps += expected >= 0 && before.there && expected > before.next + fetch.step;
      if (expected < 0)
        expect_overflow(reply);
      else
        assert_int_equal(number_of(reply), expected);
    }
    char text[TEXT_MAX];
    assert_string_equal(server_string(server, "HGET", "ids", "next", NULL),
                        spell(text, model.next));
  }
  print_message("%u jumps, %u overflows\n", jumps, ends);
  assert_true(jumps > 100 && ends > 100);
}

TEST_ON(sequences_same_as_model, server, server_start(NULL)) {
  static const char *const kinds[] = {"a", "b", ""};
  enum { KINDS = 3 };
  uint64_t random = UINT64_C(31415926);
  unsigned ends = 0;
  for (int i = 0; i < STEPS / 2 / ROUND; i++) {
    int64_t last[KINDS], start[KINDS];
    bool there[KINDS] = {false};
    for (int k = 0; k < KINDS; k++)
      start[k] = draw_number(&random) * (below(&random, 3) == 0 ? -1 : 1);
    server_do(server, "FLUSHALL", NULL);
    for (int j = 0; j < ROUND; j++) {
      size_t k = below(&random, KINDS);
      int64_t n = 1 + (int64_t)below(&random, 100);
      bool none = !there[k] && overflows(start[k], n - 1);
      char text[TEXT_MAX], first[TEXT_MAX];
      const resp_t *reply = script_run(
          server, &belay__script_idgen_sequence,
          &(script_input_t){{"ids"},
                            {kinds[k], spell(text, n),
                             overflows(start[k], n - 1) ? "" : spell(first, start[k] + (n - 1))}});
      if (none || (there[k] && overflows(last[k], n))) {
        expect_overflow(reply);
        ends++;
        continue;
      }
      last[k] = there[k] ? last[k] + n : start[k] + (n - 1);
      there[k] = true;
      assert_int_equal(number_of(reply), last[k]);
    }
  }
  print_message("%u overflows\n", ends);
  assert_true(ends > 50);
}

typedef struct record {
  bool there;
  char owner, server, epoch;
  int64_t until;
  char shared; /* epoch of all workers of the name; 0: none */
} record_t;

enum { AHEAD = 1000 };

static void expect_claim(server_t *server, record_t *model, uint64_t *random, int64_t now) {
  char clock[TEXT_MAX];
  const char owner[] = {(char)('p' + below(random, 3)), '\0'};
  const char who[] = {below(random, 10) == 0 ? "BC"[below(random, 2)] : 'A', '\0'};
  const char *epoch = below(random, 20) == 0 ? "1" : "0", *said = below(random, 15) == 0 ? "" : who;
  const resp_t *reply = script_run(
      server, &belay__script_idgen_claim,
      &(script_input_t){{"w", "ws"}, {owner, spell(clock, now), "1000", epoch, said, "60000"}});
  bool other = model->there && model->epoch != epoch[0];
  if (other || (model->shared != 0 && model->shared != epoch[0])) {
    assert_int_equal(reply->type, RESP_INTEGER);
    assert_int_equal(reply->integer, other ? -2 : -4);
    return;
  }
  int64_t floor = now + AHEAD;
  if (model->there && said[0] != '\0' && model->server == said[0])
    floor = model->until;
  else if (model->there && model->until > floor)
    floor = model->until;
  *model = (record_t){
      true, owner[0], said[0], epoch[0], floor > now + AHEAD ? floor : now + AHEAD, epoch[0]};
  assert_int_equal(reply->type, RESP_ARRAY);
  assert_int_equal(reply->items[0]->integer, floor);
  assert_int_equal(reply->items[1]->integer, model->until);
}

static void expect_reserve(server_t *server, record_t *model, uint64_t *random, int64_t now) {
  char until[TEXT_MAX];
  const char owner[] = {(char)('p' + below(random, 3)), '\0'};
  bool last = below(random, 5) == 0;
  int64_t reply = script_integer(
      server, &belay__script_idgen_reserve,
      &(script_input_t){{"w", "ws"}, {owner, spell(until, now), last ? "1" : "0", "A", "60000"}});
  bool ours = model->there && model->owner == owner[0] &&
              (model->shared == 0 || model->shared == model->epoch);
  assert_int_equal(reply, ours);
  if (ours && (last || now > model->until))
    model->until = now;
  if (ours)
    model->server = 'A';
  if (ours)
    model->shared = model->epoch;
}

TEST_ON(workers_same_as_model, server, server_start(NULL)) {
  uint64_t random = UINT64_C(27182818);
  for (int i = 0; i < STEPS / 2 / ROUND; i++) {
    record_t model = {0};
    int64_t now = INT64_C(1750000000000) + (int64_t)below(&random, 1000000);
    server_do(server, "FLUSHALL", NULL);
    for (int j = 0; j < ROUND; j++) {
      now += (int64_t)below(&random, 1500) - 500;
      if (below(&random, 20) == 0) {
        server_do(server, "DEL", "w", NULL);
        model = (record_t){.shared = model.shared};
      } else if (below(&random, 20) == 0) {
        server_do(server, "DEL", "ws", NULL);
        model.shared = 0;
      }
      if (below(&random, 3) == 0)
        expect_claim(server, &model, &random, now);
      else
        expect_reserve(server, &model, &random, now);
    }
    char text[TEXT_MAX];
    if (model.there)
      assert_string_equal(server_string(server, "HGET", "w", "until", NULL),
                          spell(text, model.until));
    expect_ttls(server);
  }
}

enum { IDS = 400000 };

static bool given[IDS];

static void give(int64_t id) {
  assert_between(id, 1, IDS - 1);
  assert_false(given[id]);
  given[id] = true;
}

/* Several of different steps take turns, by one and by many; some are closed, and others opened.
 * A model of all ids: whose it is. */
ENV_TEST(handles_same_as_model) {
  enum { HANDLES = 4 };
  uint64_t random = UINT64_C(16180339);
  generator_t generators[HANDLES] = {0};
  int64_t before[HANDLES] = {0}, total = 0;
  memset(given, 0, sizeof given);
  for (int i = 0; i < 1500; i++) {
    size_t h = below(&random, HANDLES);
    generator_t *generator = &generators[h];
    if (generator->idgen != NULL && below(&random, 40) == 0)
      close_generator(generator);
    if (generator->idgen == NULL) {
      belay_idgen_options_t options = idgen_options(BELAY_IDGEN_SEGMENT);
      options.step = 1 + (int64_t)below(&random, 40);
      generator_new(generator, env, &options);
      before[h] = 0;
    }
    id_op_t op = {.each = give};
    if (below(&random, 3) == 0) {
      expect_id_op(&op, begin_get_many(generator, &op, 1 + below(&random, 100)), 0);
    } else {
      op.first = op.last = next_id(generator);
      op.n = 1;
      give(op.first);
    }
    assert_true(op.first > before[h]);
    before[h] = op.last;
    total += (int64_t)op.n;
  }
  const char *next = server_string(env->server, "HGET", "belay::idgen::{users}", "next", NULL);
  assert_true(total <= atoll(next) - 1);
}

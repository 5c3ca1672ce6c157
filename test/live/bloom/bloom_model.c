/* A Bloom filter against a model over random sequences: a filter in memory, and the state of the
 * keys. */
#include <stdio.h>

#include "data/bloom/form.h"
#include "support/fixtures/data/blooms.h"
#include "support/models/scripts.h"

enum { USERS = 3, ITEMS = 400, OPERATIONS = 4000, SEGMENTS_MAX = 4 };

/* The expected state of the server, and the beliefs of each user. */
typedef struct model {
  belay_bloomset_t *set; /* NULL: there is no filter */
  bool lost[SEGMENTS_MAX];
  unsigned generation; /* 0: there is none; each creation is one more */
  unsigned created;
  unsigned known[USERS]; /* the generation that a user has open; 0: none */
} model_t;

typedef struct game {
  env_t *env;
  belay_bloom_options_t options;
  filter_t users[USERS];
  model_t model;
  unsigned segments;
  uint64_t random;
  unsigned losses, answers; /* numbers of reports */
} game_t;

static uint32_t below(game_t *game, uint32_t n) {
  game->random = game->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (uint32_t)((game->random >> 32) * n >> 32);
}

static void model_create(game_t *game) {
  model_t *m = &game->model;
  assert_error(belay_bloomset_new(&game->options, NULL, &m->set), 0);
  memset(m->lost, 0, sizeof m->lost);
  m->generation = ++m->created;
}

static void model_end(model_t *m) {
  belay_bloomset_free(m->set);
  m->set = NULL;
  m->generation = 0;
}

static unsigned segment_of(const game_t *game, const char *item) {
  belay__bloom_form_t form;
  assert_null(belay__bloom_form_of(&game->options, &form));
  return belay__bloom_segment(belay__bloom_hash(&form.hasher, item, strlen(item)), &form.shape);
}

/* The expected status and answer of a user's operation. */
static int model_item(game_t *game, unsigned user, const char *item, bool add, bool *answer) {
  model_t *m = &game->model;
  *answer = false;
  if (m->set == NULL && m->known[user] != 0) {
    m->known[user] = 0;
    return BELAY_ELOST;
  }
  if (m->set == NULL)
    model_create(game);
  m->known[user] = m->generation;
  if (m->lost[segment_of(game, item)])
    return BELAY_ELOST;
  *answer = add ? belay_bloomset_add(m->set, belay_string(item))
                : belay_bloomset_exists(m->set, belay_string(item));
  return 0;
}

static void play_item(game_t *game, unsigned user, bool add) {
  char item[16];
  bool expected;
  (void)snprintf(item, sizeof item, "%u", below(game, ITEMS));
  filter_op_t op = {0};
  filter_t *filter = &game->users[user];
  int error = model_item(game, user, item, add, &expected);
  assert_error(add ? begin_filter_add(filter, &op, item, strlen(item))
                   : begin_filter_exists(filter, &op, item, strlen(item)),
               0);
  assert_error(end_of_filter_op(&op), error);
  assert_int_equal(op.answer, expected);
  game->losses += error != 0;
  game->answers += error == 0;
}

/* All items are answered, or none. */
static void play_many(game_t *game, unsigned user, bool add) {
  enum { MOST = 60 };
  static char texts[MOST][16];
  static bool expected[MOST], answers[MOST];
  belay_bytes_t items[MOST];
  uint32_t n = 1 + below(game, MOST);
  int error = 0;
  model_t *m = &game->model;
  if (m->set == NULL && m->known[user] != 0)
    error = BELAY_ELOST;
  for (uint32_t i = 0; i < n; i++) {
    (void)snprintf(texts[i], sizeof texts[i], "%u", below(game, ITEMS));
    items[i] = (belay_bytes_t){.data = texts[i], .len = strlen(texts[i])};
    int one = i == 0 || error == 0 || m->set != NULL
                  ? model_item(game, user, texts[i], add, &expected[i])
                  : 0;
    if (one != 0)
      error = one;
  }
  filter_op_t op = {.answers = answers};
  expect_filter_op(&op, begin_filter_many(&game->users[user], &op, add, items, n), error);
  game->losses += error != 0;
  game->answers += error == 0;
  for (uint32_t i = 0; i < n && error == 0; i++)
    assert_int_equal(answers[i], expected[i]);
}

static void play_loss(game_t *game) {
  model_t *m = &game->model;
  char key[64];
  unsigned segment = below(game, game->segments);
  if (m->set == NULL)
    return;
  if (below(game, 3) == 0) {
    server_do(game->env->server, "FLUSHALL", NULL);
    model_end(m);
    return;
  }
  (void)snprintf(key, sizeof key, "belay::bloom::{seen::%u}", segment);
  server_do(game->env->server, "DEL", key, NULL);
  m->lost[segment] = true;
}

static void play_clear(game_t *game, unsigned user) {
  filter_clear(&game->users[user]);
  if (game->model.set != NULL)
    model_end(&game->model);
  game->model.known[user] = 0;
  assert_int_equal(server_keys(game->env->server), 0);
}

static bool any_lost(const game_t *game) {
  for (unsigned s = 0; s < game->segments; s++)
    if (game->model.lost[s])
      return true;
  return false;
}

static void play_info(game_t *game, unsigned user) {
  model_t *m = &game->model;
  belay_bloom_info_t expected;
  filter_op_t op = {0};
  assert_error(begin_filter_info(&game->users[user], &op), 0);
  int error = end_of_filter_op(&op);
  if (m->set == NULL && m->known[user] != 0) {
    m->known[user] = 0;
    assert_error(error, BELAY_ELOST);
    return;
  }
  if (m->set == NULL)
    model_create(game);
  m->known[user] = m->generation;
  assert_error(error, any_lost(game) ? BELAY_ELOST : 0);
  belay_bloomset_info(m->set, &expected);
  if (error == 0)
    assert_int_equal(op.info.bits_set, expected.bits_set);
}

static void check_bits(game_t *game) {
  for (unsigned s = 0; s < game->segments && game->model.set != NULL; s++) {
    char key[64];
    (void)snprintf(key, sizeof key, "belay::bloom::{seen::%u}", s);
    if (game->model.lost[s])
      assert_int_equal(server_integer(game->env->server, "EXISTS", key, NULL), 0);
    else
      expect_same_bits(game->env->server, key, game->model.set, s);
  }
  assert_true(server_keys(game->env->server) <= (int64_t)game->segments + 1);
  expect_ttls(game->env->server);
}

static void step(game_t *game) {
  unsigned user = below(game, USERS), what = below(game, 100);
  if (what < 45)
    play_item(game, user, what % 2 == 0);
  else if (what < 92)
    play_many(game, user, what % 2 == 0);
  else if (what < 95)
    play_info(game, user);
  else if (what < 97)
    play_loss(game);
  else if (what < 99)
    play_clear(game, user);
  else
    check_bits(game);
}

static void play(const belay_bloom_options_t *options, unsigned operations) {
  game_t game = {.env = env_open(NULL), .options = *options, .random = 20240607};
  belay_bloomset_t *set;
  belay_bloom_info_t info;
  assert_error(belay_bloomset_new(options, NULL, &set), 0);
  belay_bloomset_info(set, &info);
  belay_bloomset_free(set);
  game.segments = info.segments;
  assert_true(info.segments <= SEGMENTS_MAX);
  for (unsigned i = 0; i < USERS; i++) {
    belay_client_t *client =
        i == 0 ? game.env->client : env_connect(game.env, server_url(game.env->server), NULL);
    filter_of(&game.users[i], game.env, client, options);
  }
  for (unsigned i = 0; i < operations / (slow() > 1 ? 4 : 1); i++)
    step(&game);
  check_bits(&game);
  assert_true(game.losses > 0 && game.answers > game.losses);
  print_message("%u answers, %u losses, %u filters\n", game.answers, game.losses,
                game.model.created);
  if (game.model.set != NULL)
    model_end(&game.model);
  env_close(game.env);
}

TEST(same_as_model) {
  belay_bloom_options_t options = bloom_options(300, 0.05); /* batches are bitmaps */
  play(&options, OPERATIONS);
  options = bloom_options(3, 0.3); /* full at once */
  play(&options, OPERATIONS);
}

TEST(bit_by_bit) {
  belay_bloom_options_t options = bloom_options(300, 0.05);
  options.capacity = 0;
  options.bits = 500000;
  options.hashes = 3;
  play(&options, OPERATIONS / 4);
}

TEST(in_segments) {
  belay_bloom_options_t options = bloom_options(0, 0);
  options.bits = BELAY_BLOOM_SEGMENT_BITS * 2 + 3;
  options.hashes = 4;
  play(&options, OPERATIONS / 10);
}

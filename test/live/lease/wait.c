/* The commands of a grant with min_replicas: WAIT follows the write directly, on a connection of
 * its own. */
#include <stdatomic.h>
#include <stdio.h>

#include "scripts.gen.h"
#include "support/fixtures/env.h"
#include "support/deployments/fake.h"

typedef struct record {
  struct {
    unsigned link;
    char word[12];
    bool plain; /* true for the lock without min_replicas */
  } at[256];
  atomic_uint count;
} record_t;

static void record_command(fake_link_t *link, const char *const *words, size_t count, void *arg) {
  record_t *record = arg;
  unsigned i = atomic_load(&record->count);
  if (!fake_is_handshake(words) && i < 256) {
    record->at[i].link = fake_link_number(link);
    snprintf(record->at[i].word, sizeof record->at[i].word, "%s", words[0]);
    for (size_t j = 1; j < count; j++)
      record->at[i].plain |= strstr(words[j], "{plain}") != NULL;
    atomic_store(&record->count, i + 1);
  }
  if (strcmp(words[0], "WAIT") == 0)
    fake_say(link, ":1\r\n");
  else if (count > 1 && strcmp(words[1], belay__script_lock_acquire.text) == 0)
    fake_say(link, ":0\r\n");
  else
    fake_behave(link, words, count);
}

/* The command before that one on the same connection; -1: none. */
static int before(const record_t *record, int i) {
  unsigned link = record->at[i].link;
  for (i--; i >= 0 && record->at[i].link != link; i--) {
  }
  return i;
}

static bool waits_on(const record_t *record, unsigned link) {
  for (unsigned i = 0; i < record->count; i++)
    if (record->at[i].link == link && strcmp(record->at[i].word, "WAIT") == 0)
      return true;
  return false;
}

static void check_record(const record_t *record) {
  unsigned waits = 0;
  for (int i = 0; i < (int)record->count; i++) {
    if (record->at[i].plain)
      assert_false(waits_on(record, record->at[i].link));
    if (strcmp(record->at[i].word, "WAIT") != 0)
      continue;
    int write = before(record, i);
    assert_true(write >= 0);
    assert_true(strcmp(record->at[write].word, "SET") == 0 ||
                strncmp(record->at[write].word, "EVAL", 4) == 0);
    waits++;
  }
  assert_int_equal(waits, 30); /* for the acquires and the extends */
}

TEST(wait_follows_its_write) {
  record_t record = {.count = 0};
  fake_t *fake = fake_start(&(fake_options_t){.on_command = record_command, .arg = &record});
  env_t *env = env_open_at(fake_url(fake), NULL);
  belay_lock_options_t options = with_ttl(10000 * slow());
  options.min_replicas = 1;
  contender_t *a = contender_new(env, "a", &options), *b = contender_new(env, "b", &options);
  contender_t *plain = contender_new(env, "plain", NULL);
  contender_t *all[] = {a, plain, b};
  for (int i = 0; i < 10; i++) {
    for (int j = 0; j < 3; j++)
      assert_error(begin_acquire(all[j], 0), 0);
    for (int j = 0; j < 3; j++)
      assert_error(outcome(all[j]), 0);
    assert_error(extend(a, 10000 * slow()), 0);
    for (int j = 0; j < 3; j++)
      assert_error(begin_release(all[j]), 0);
    for (int j = 0; j < 3; j++)
      assert_error(outcome(all[j]), 0);
  }
  env_close(env);
  fake_stop(fake);
  check_record(&record);
}

#define TRIES 8

/* The write and its WAIT are over at the same time, in whatever order: nothing was sent, and
 * that is what is said. */
TEST(unsent_wait_is_not_unknown) {
  belay_client_options_t client = client_options();
  client.timeout_ms = 50;
  env_t *env = env_open_at("unix:///nonexistent/socket", &client);
  belay_lock_options_t options = lock_options();
  options.min_replicas = 1;
  contender_t *c[TRIES];
  for (int i = 0; i < TRIES; i++) {
    c[i] = contender_new(env, "door", &options);
    assert_error(begin_acquire(c[i], 0), 0);
  }
  for (int i = 0; i < TRIES; i++)
    assert_error(outcome(c[i]), BELAY_EUNREACHABLE);
  env_close(env);
}

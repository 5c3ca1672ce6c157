/* The scripts of limits against models, on a real server: random operations with explicit times.
 *
 * BELAY_LIMIT_OPS=N sets the number of operations per script, BELAY_LIMIT_SEED=S the first seed. */
#include "support/models/limit_suite.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/servers/acl.h"
#include "support/base/clock.h"
#include "support/servers/server.h"
#include "support/base/test.h"

#define OPS UINT64_C(1000000)
#define SEED_OPS 20000 /* operations of a seed */

static void send_batch(redisContext *context, const limit_suite_t *suite, const char *sha1,
                       size_t slot) {
  static limit_words_t words;
  suite->next(slot, &words);
  words.argv[1] = sha1;
  words.len[1] = 40;
  assert_int_equal(redisAppendCommandArgv(context, (int)words.argc, words.argv, words.len),
                   REDIS_OK);
}

static void run_seed(redisContext *context, const limit_suite_t *suite, const char *sha1,
                     uint64_t seed, size_t ops) {
  size_t count = (ops + LIMIT_BATCH - 1) / LIMIT_BATCH, sent = 0;
  suite->begin(seed);
  for (size_t got = 0; got < count; got++) {
    void *reply = NULL;
    for (; sent < count && sent < got + LIMIT_SLOTS; sent++)
      send_batch(context, suite, sha1, sent % LIMIT_SLOTS);
    if (redisGetReply(context, &reply) != REDIS_OK || reply == NULL)
      fail_msg("%s", context->errstr);
    suite->check(got % LIMIT_SLOTS, reply, seed, got * LIMIT_BATCH);
    freeReplyObject(reply);
  }
}

static void run(const limit_suite_t *suite, uint64_t usually) {
  server_t *server = server_start(NULL);
  redisContext *context = redisConnectUnix(server_path(server));
  size_t ops = limit_suite_ops(slow() > 1 ? usually / 20 : usually);
  uint64_t seed = limit_suite_seed();
  char *text = limit_suite_script(suite), sha1[41];
  snprintf(sha1, sizeof sha1, "%s", server_string(server, "SCRIPT", "LOAD", text, NULL));
  assert_non_null(context);
  assert_int_equal(context->err, 0);
  if (acl_applies(&(server_options_t){0}))
    freeReplyObject(redisCommand(context, "AUTH %s %s", ACL_ADMIN, ACL_ADMIN_PASSWORD));
  for (size_t done = 0; done < ops; done += SEED_OPS, seed++) {
    server_do(server, "FLUSHALL", NULL);
    run_seed(context, suite, sha1, seed, ops - done < SEED_OPS ? ops - done : SEED_OPS);
  }
  free(text);
  redisFree(context);
  server_stop(server);
}

TEST(limits) {
  needs_one_process("keys in one place");
  run(&limit_suite, OPS);
}

TEST(logs) {
  needs_one_process("keys in one place");
  run(&limit_log_suite, OPS / 4);
}

/* Servers that do not answer in time: the results of the others come in time. */
#include <dlfcn.h>
#include <netdb.h>
#include <stdatomic.h>
#include <stdio.h>

#include "support/deployments/fake.h"
#include "support/fixtures/admin/surveys.h"

static survey_t report;

typedef int getaddrinfo_fn(const char *, const char *, const struct addrinfo *, struct addrinfo **);

int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                struct addrinfo **list);

static atomic_bool hangs;
static atomic_uint lookups;

/* libuv's look-ups come by here. */
int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                struct addrinfo **list) {
  getaddrinfo_fn *function;
  void *symbol = dlsym(RTLD_NEXT, "getaddrinfo");
  memcpy(&function, &symbol, sizeof function);
  if (name != NULL && strcmp(name, "hangs.test") == 0) {
    atomic_fetch_add(&lookups, 1);
    while (atomic_load(&hangs))
      stall_ms(1);
    return EAI_NONAME;
  }
  return function(name, service, hints, list);
}

static void name_it(fake_link_t *link, const char *const *words, size_t count, void *arg) {
  (void)arg;
  if (strcmp(words[0], "ROLE") == 0)
    fake_say(link, "*5\r\n$5\r\nslave\r\n$10\r\nhangs.test\r\n:6379\r\n$9\r\nconnected\r\n:5\r\n");
  else if (strcmp(words[0], "TIME") == 0)
    fake_say(link, "*2\r\n$10\r\n1000000000\r\n$1\r\n0\r\n");
  else
    fake_behave(link, words, count);
}

static fake_t *fake_open(env_t **env) {
  char url[96];
  fake_t *fake = fake_start(&(fake_options_t){.on_command = name_it});
  (void)snprintf(url, sizeof url, "redis+replicas%s", strchr(fake_url(fake), ':'));
  *env = env_open_at(url, NULL);
  atomic_store(&hangs, true);
  return fake;
}

/* One name lookup hangs: the result says that this server is unknown, and has the reply of the
 * other. */
TEST(hanging_lookup) {
  env_t *env;
  fake_t *fake = fake_open(&env);
  for (int i = 0; i < 2; i++) {
    assert_error(survey(env, &report, 2, 300 * slow()), 0);
    assert_true(atomic_load(&hangs));
    assert_int_equal(report.n, 2);
    assert_error(report.server[0].status, 0);
    assert_int_equal(report.server[0].samples, 2);
    assert_string_equal(report.server[1].address, "hangs.test:6379");
    assert_true(report.server[1].status != 0);
  }
  atomic_store(&hangs, false);
  env_close(env);
  fake_stop(fake);
}

/* A close waits for the lookup, and its callback runs after it. */
TEST(close_waits_for_the_lookup) {
  for (int calls = 0; calls < 2; calls++)
    for (int all = 0; all < 2; all++) {
      env_t *env;
      fake_t *fake = fake_open(&env);
      atomic_store(&lookups, 0);
      assert_error(begin_survey(env, &report, 2, prompt_ms()), 0);
      env_until(env, atomic_load(&lookups) > 0); /* it has named the other */
      env_until(env, calls == 0 || report.calls == 1);
      assert_error(all ? begin_belay_close(env) : begin_client_close(env), 0);
      env_until(env, report.calls == 1);
      assert_error(report.status, calls ? 0 : BELAY_ECANCELED);
      if (!all)
        env_until(env, env->client_closed == 1);
      else
        env_run_for(env, 20);
      assert_int_equal(env->belay_closed, 0);
      atomic_store(&hangs, false);
      env_close(env);
      fake_stop(fake);
    }
}

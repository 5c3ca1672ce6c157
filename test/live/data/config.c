/* Configuration records: their content, conflicts, and their end. */
#include <stdio.h>

#include "support/fixtures/env.h"
#include "support/fixtures/data/permissions.h"

#define RECORD "belay::permission::{forum}::config"

/* A handle and the result of its last request. */
typedef struct notary {
  env_t *env;
  belay_config_t *config;
  belay_request_t request;
  unsigned begun, ended;
  int status;
  char fields[512]; /* "name=value " of each, in the order of their names */
} notary_t;

static int by_text(const void *a, const void *b) {
  return strcmp(a, b);
}

static void on_config(belay_request_t *request, int status, const belay_config_field_t *fields,
                      size_t n) {
  notary_t *notary = request->data;
  char lines[BELAY_CONFIG_FIELDS_MAX][64];
  assert_int_equal(fields != NULL, status == 0);
  env_note(notary->env, status);
  notary->ended++;
  notary->status = status;
  notary->fields[0] = '\0';
  for (size_t i = 0; i < n; i++)
    snprintf(lines[i], sizeof lines[i], "%.30s=%.30s ", fields[i].name, fields[i].value);
  qsort(lines, n, sizeof lines[0], by_text);
  for (size_t i = 0; i < n && n < 8; i++)
    strcat(notary->fields, lines[i]);
}

static void notary_of(notary_t *notary, env_t *env, belay_config_kind_t kind, int64_t ttl_ms) {
  belay_config_options_t options;
  belay_config_options_init(&options);
  *notary = (notary_t){.env = env};
  notary->request.data = notary;
  options.kind = kind;
  options.name = belay_bytes(kind == BELAY_CONFIG_PRESENCE ? "forum" : NULL,
                             kind == BELAY_CONFIG_PRESENCE ? 5 : 0);
  options.ttl_ms = ttl_ms;
  options.data = notary;
  assert_error(belay_config_new(env->client, &options, &notary->config), 0);
  assert_ptr_equal(belay_config_data(notary->config), notary);
}

static int end_of(notary_t *notary) {
  env_until(notary->env, notary->ended == notary->begun);
  return notary->status;
}

static int read_key(notary_t *notary, const char *key) {
  assert_error(belay_config_read(notary->config, &notary->request,
                                 belay_bytes(key, key != NULL ? strlen(key) : 0), on_config),
               0);
  notary->begun++;
  return end_of(notary);
}

static int open_key(notary_t *notary, const char *key, const char *name, const char *value,
                    belay_config_rule_t rule) {
  const belay_config_field_t field = {.name = name, .value = value, .rule = rule};
  assert_error(belay_config_open(notary->config, &notary->request,
                                 belay_bytes(key, key != NULL ? strlen(key) : 0), &field, 1,
                                 on_config),
               0);
  notary->begun++;
  return end_of(notary);
}

ENV_TEST(first_record_wins) {
  notary_t a, b;
  notary_of(&a, env, BELAY_CONFIG_PERMISSION, 0);
  notary_of(&b, env, BELAY_CONFIG_PERMISSION, 0);
  assert_error(read_key(&a, "forum"), BELAY_EABSENT);
  assert_int_equal(server_keys(env->server), 0);
  assert_error(open_key(&a, "forum", "width", "3", BELAY_CONFIG_SAME), 0);
  assert_string_equal(a.fields, "width=3 ");
  assert_error(open_key(&a, "forum", "width", "3", BELAY_CONFIG_SAME), 0);
  assert_error(read_key(&b, "forum"), 0);
  assert_string_equal(b.fields, "width=3 ");
  assert_int_equal(server_integer(env->server, "PTTL", RECORD, NULL), -1);

  /* both values are named, and nothing of the call was written */
  const belay_config_field_t fields[] = {{.name = "more", .value = "x"},
                                         {.name = "width", .value = "8"}};
  assert_error(belay_config_open(b.config, &b.request, belay_string("forum"), fields, 2, on_config),
               0);
  b.begun++;
  assert_error(end_of(&b), BELAY_EMISMATCH);
  assert_non_null(strstr(env->detail, "width is \"3\" in the record, \"8\" was given"));
  assert_non_null(strstr(env->detail, RECORD));
  assert_error(read_key(&b, "forum"), 0);
  assert_string_equal(b.fields, "width=3 ");
  assert_error(read_key(&b, "another"), BELAY_EABSENT);
}

ENV_TEST(rules_of_fields) {
  notary_t n;
  notary_of(&n, env, BELAY_CONFIG_RANKING, 0);
  assert_error(open_key(&n, "b", "max", "9", BELAY_CONFIG_LARGEST), 0);
  assert_error(open_key(&n, "b", "max", "10", BELAY_CONFIG_LARGEST), 0);
  assert_string_equal(n.fields, "max=10 ");
  assert_error(open_key(&n, "b", "max", "9", BELAY_CONFIG_LARGEST), 0);
  assert_string_equal(n.fields, "max=10 ");
  assert_error(open_key(&n, "b", "max", "many", BELAY_CONFIG_LARGEST), BELAY_EMISMATCH);
  assert_error(open_key(&n, "b", "ttl", "5", BELAY_CONFIG_LATEST), 0);
  assert_error(open_key(&n, "b", "ttl", "4", BELAY_CONFIG_LATEST), 0);
  assert_string_equal(n.fields, "max=10 ttl=4 ");
  assert_error(read_key(&n, "b"), 0);
  assert_string_equal(n.fields, "max=10 ttl=4 ");
}

ENV_TEST(open_restarts_ttl) {
  notary_t brief, endless;
  notary_of(&brief, env, BELAY_CONFIG_PERMISSION, 100000);
  notary_of(&endless, env, BELAY_CONFIG_PERMISSION, 0);
  for (int i = 0; i < 2; i++) {
    assert_error(open_key(&brief, "forum", "width", "3", BELAY_CONFIG_SAME), 0);
    assert_in_range(server_integer(env->server, "PTTL", RECORD, NULL), 50000, 100000);
    server_do(env->server, "PEXPIRE", RECORD, "40000", NULL);
  }
  assert_error(read_key(&brief, "forum"), 0); /* which leaves it alone */
  assert_in_range(server_integer(env->server, "PTTL", RECORD, NULL), 1, 40000);
  assert_error(open_key(&endless, "forum", "width", "3", BELAY_CONFIG_SAME), 0);
  assert_int_equal(server_integer(env->server, "PTTL", RECORD, NULL), -1);
  assert_error(open_key(&brief, "forum", "width", "4", BELAY_CONFIG_SAME), BELAY_EMISMATCH);
  assert_int_equal(server_integer(env->server, "PTTL", RECORD, NULL), -1);
}

static void on_board(belay_request_t *request, int status, int64_t count) {
  (void)count;
  *(int *)request->data = status;
}

static void on_site(belay_request_t *request, int status) {
  *(int *)request->data = status;
}

ENV_TEST(clear_removes_record) {
  notary_t n[3];
  perms_t perms;
  for (int kind = 0; kind < 3; kind++) {
    const char *key = kind == BELAY_CONFIG_PRESENCE ? NULL : "forum";
    notary_of(&n[kind], env, (belay_config_kind_t)kind, 0);
    assert_error(open_key(&n[kind], key, "a", "b", BELAY_CONFIG_SAME), 0);
  }
  assert_int_equal(server_keys(env->server), 3);
  perms_new(&perms, env, 4);
  expect_perm(&perms, PERM_CLEAR, 0, 0, 0, 0, false);
  assert_int_equal(server_keys(env->server), 2);

  int status = 1;
  belay_request_t request = {.data = &status};
  belay_ranking_t *ranking;
  assert_error(belay_ranking_new(env->client, NULL, &ranking), 0);
  assert_error(belay_ranking_clear(ranking, &request, belay_string("forum"), on_board), 0);
  env_until(env, status != 1);
  assert_error(status, 0);
  assert_int_equal(server_keys(env->server), 1);

  belay_presence_t *presence;
  belay_presence_options_t options;
  belay_presence_options_init(&options);
  options.name = belay_string("forum");
  options.max_id = UINT32_MAX;
  assert_error(belay_presence_new(env->client, &options, &presence), 0);
  status = 1;
  assert_error(belay_presence_reset(presence, &request, on_site), 0);
  env_until(env, status != 1);
  assert_error(status, 0);
  assert_int_equal(server_keys(env->server), 0);
}

ENV_TEST(foreign_hash_is_refused) {
  notary_t n;
  notary_of(&n, env, BELAY_CONFIG_PERMISSION, 0);
  server_do(env->server, "SET", RECORD, "x", NULL);
  assert_error(read_key(&n, "forum"), BELAY_EWRONGTYPE);
  assert_error(open_key(&n, "forum", "a", "b", BELAY_CONFIG_SAME), BELAY_EWRONGTYPE);
  server_do(env->server, "DEL", RECORD, NULL);
  char name[16];
  for (int i = 0; i < 32; i++) {
    snprintf(name, sizeof name, "f%d", i);
    assert_error(open_key(&n, "forum", name, "", BELAY_CONFIG_SAME), 0);
  }
  assert_error(read_key(&n, "forum"), 0);
  assert_error(open_key(&n, "forum", "f32", "", BELAY_CONFIG_SAME), BELAY_EMISMATCH);
  assert_int_equal(server_integer(env->server, "HLEN", RECORD, NULL), 32);
  server_do(env->server, "HSET", RECORD, "f32", "", NULL);
  assert_error(read_key(&n, "forum"), BELAY_EMISMATCH);
  assert_error(open_key(&n, "forum", "f1", "", BELAY_CONFIG_SAME), BELAY_EMISMATCH);
  assert_int_equal(client_stats(env).drops, 0);
}

ENV_TEST(arguments_are_checked) {
  notary_t n, site;
  belay_config_t *none;
  notary_of(&n, env, BELAY_CONFIG_PERMISSION, 0);
  notary_of(&site, env, BELAY_CONFIG_PRESENCE, 0);
  const belay_config_field_t good = {.name = "a", .value = "b"}, no_name = {.value = "b"},
                             no_value = {.name = "a"},
                             odd = {.name = "a", .value = "b", .rule = (belay_config_rule_t)3};
  belay_request_t *r = &n.request;
  assert_error(belay_config_open(n.config, r, belay_string("k"), &good, 0, on_config),
               BELAY_EINVAL);
  assert_error(belay_config_open(n.config, r, belay_string("k"), &good, 33, on_config),
               BELAY_EINVAL);
  assert_error(belay_config_open(n.config, r, belay_string("k"), NULL, 1, on_config), BELAY_EINVAL);
  assert_error(belay_config_open(n.config, r, belay_string("k"), &no_name, 1, on_config),
               BELAY_EINVAL);
  assert_error(belay_config_open(n.config, r, belay_string("k"), &no_value, 1, on_config),
               BELAY_EINVAL);
  assert_error(belay_config_open(n.config, r, belay_string("k"), &odd, 1, on_config), BELAY_EINVAL);
  assert_error(belay_config_open(n.config, r, belay_bytes(NULL, 0), &good, 1, on_config),
               BELAY_EINVAL);
  assert_error(belay_config_open(site.config, r, belay_string("k"), &good, 1, on_config),
               BELAY_EINVAL);
  assert_error(belay_config_read(site.config, r, belay_string("k"), on_config), BELAY_EINVAL);
  belay_config_options_t options;
  belay_config_options_init(&options);
  options.kind = BELAY_CONFIG_PRESENCE; /* which needs a name */
  assert_error(belay_config_new(env->client, &options, &none), BELAY_EINVAL);
}

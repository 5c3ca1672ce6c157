/* TLS in deployments: every server, also Sentinels and nodes of discovery, must prove its
 * address. If it does not, the error gives the reason. */
#include <stdio.h>

#include "support/deployments/cluster.h"
#include "support/deployments/group.h"
#include "support/servers/secure.h"

enum { NAMES = 20 };

static certs_t *certs;
static const char *arguments[16]; /* of the servers, up to a NULL */

static void use_certificate(const char *cert, const char *key) {
  const char *const words[] = {"--tls-cert-file",
                               certs_path(certs, cert),
                               "--tls-key-file",
                               certs_path(certs, key),
                               "--tls-ca-cert-file",
                               certs_path(certs, "ca.crt"),
                               "--tls-auth-clients",
                               "yes",
                               NULL};
  memcpy(arguments, words, sizeof words);
}

TEST_BEGIN {
  certs = certs_new("ca");
  certs_make(certs, "server", NULL);
  certs_make(certs, "client", NULL);
  certs_make(certs, "named", &(cert_options_t){.names = "DNS:redis.example.com"});
}

TEST_END {
  certs_free(certs);
}

/* Takes and gives back some locks, wherever they are. */
static void take_all(env_t *env) {
  char name[16];
  for (int i = 0; i < NAMES; i++) {
    snprintf(name, sizeof name, "lock-%d", i);
    contender_t *c = contender_new(env, name, NULL);
    assert_error(acquire(c, 10000), 0);
    assert_error(release(c), 0);
    assert_error(close_lock(c), 0);
  }
}

static env_t *env_of(const char *url, const char *server_name) {
  belay_tls_options_t tls = trust(certs, "client");
  belay_client_options_t client = client_options();
  tls.server_name = server_name;
  client.timeout_ms = 10000;
  return secure_env(url, &tls, &client);
}

TEST(cluster) {
  use_certificate("server.crt", "server.key");
  cluster_t *cluster = cluster_start(
      &(cluster_options_t){.tls = true, .arguments = arguments, .password = "sesame"});
  env_t *env = env_of(cluster_url(cluster), NULL);
  take_all(env);
  cluster_fail_over(cluster, 0, CLUSTER_KILLED);
  take_all(env);
  env_close(env);
  cluster_stop(cluster);
}

TEST(sentinel_group) {
  use_certificate("server.crt", "server.key");
  group_t *group = group_start(
      &(group_options_t){.nodes = {.tls = true, .arguments = arguments, .password = "sesame"},
                         .sentinel_arguments = arguments});
  env_t *env = env_of(group_url(group), NULL);
  take_all(env);
  group_fail_over(group, GROUP_KILLED);
  take_all(env);
  env_close(env);
  group_stop(group);
}

/* One certificate for all servers, with a name that is no address. */
TEST(replicas_with_one_name) {
  use_certificate("named.crt", "named.key");
  replicas_t *replicas = replicas_start(
      &(replicas_options_t){.tls = true, .arguments = arguments, .password = "sesame"});
  env_t *env = env_of(replicas_url(replicas), "redis.example.com");
  take_all(env);
  replicas_promote(replicas, 1);
  replicas_wait(replicas, 1);
  take_all(env);
  env_close(env);

  env = env_of(replicas_url(replicas), NULL);
  const char *detail;
  assert_error(pong(env, &detail), BELAY_ETLS);
  assert_non_null(strstr(detail, "the server's certificate is not for the address 127.0.0.1"));
  env_close(env);
  replicas_stop(replicas);
}

/* Servers that are only asked about the deployment must prove their identity, too. */
TEST(sentinels_and_nodes_without_identity) {
  use_certificate("named.crt", "named.key");
  group_t *group = group_start(&(group_options_t){.nodes = {.tls = true, .arguments = arguments},
                                                  .sentinel_arguments = arguments});
  const char *detail;
  env_t *env = env_of(group_url(group), NULL);
  assert_error(pong(env, &detail), BELAY_ETLS);
  assert_non_null(strstr(detail, "the server's certificate is not for the address 127.0.0.1"));
  env_close(env);
  group_stop(group);

  cluster_t *cluster = cluster_start(
      &(cluster_options_t){.tls = true, .arguments = arguments, .without_replicas = true});
  env = env_of(cluster_url(cluster), NULL);
  assert_error(pong(env, &detail), BELAY_ETLS);
  assert_non_null(strstr(detail, "the server's certificate is not for the address 127.0.0.1"));
  env_close(env);
  cluster_stop(cluster);
}

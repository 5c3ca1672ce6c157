/* All operations work over TLS, with each setting of the server and the client. */
#include <stdio.h>

#include "support/fixtures/data/counters.h"
#include "support/servers/secure.h"
#include "support/fixtures/subscriber.h"

enum { PIPELINE = 4000, FIELDS = 30000 };

static certs_t *certs;

TEST_BEGIN {
  certs = certs_new("ca");
  certs_make(certs, "server", NULL);
  certs_make(certs, "client", NULL);
}

TEST_END {
  certs_free(certs);
}

/* ---- what is done with a client ---- */

static void lock_and_release(bed_t *bed) {
  contender_t *c = contender_new(bed, "over TLS", NULL);
  assert_error(try_lock(c), 0);
  assert_true(is_on_server(c));
  assert_error(extend(c, 20000), 0);
  assert_error(release(c), 0);
  assert_null(value_of(c));
}

/* Thousands of calls that are on their way at once. */
static void fill_pipeline(bed_t *bed) {
  static count_t counts[PIPELINE];
  till_t till;
  till_new(&till, bed, NULL);
  for (int i = 0; i < PIPELINE; i++) {
    char key[16];
    snprintf(key, sizeof key, "k%d", i);
    assert_error(BEGIN(&till, &counts[i], add, belay_string(key), i, on_result), 0);
  }
  bed_until(bed, till.pending == 0);
  for (int i = 0; i < PIPELINE; i++) {
    assert_error(counts[i].status, 0);
    assert_int_equal(counts[i].result.value, i);
  }
  begin_close_till(&till);
  bed_until(bed, till.closed == till.closing);
}

static void on_fields(belay_request_t *request, int status, const belay_counter_field_t *fields,
                      size_t n) {
  size_t *count = request->data;
  assert_error(status, 0);
  assert_non_null(strstr(fields[n - 1].name, "a field that is called"));
  *count = n;
}

/* A reply of more than a megabyte. */
static void read_large(bed_t *bed) {
  size_t n = 0;
  belay_request_t request;
  till_t till;
  till_new(&till, bed, NULL);
  char script[128];
  snprintf(script, sizeof script,
           "for i = 1, %d do redis.call('HSET', KEYS[1], 'a field that is called ' .. i, i) end",
           FIELDS);
  server_do(bed->server, "EVAL", script, "1", "belay::counter::{large}", NULL);
  uint64_t before = client_stats(bed).bytes_in;
  belay_request_init(&request);
  request.data = &n;
  assert_error(
      belay_counter_get_all(till.counter, &request, belay_string("large"), FIELDS, on_fields), 0);
  bed_until(bed, n > 0);
  assert_int_equal(n, FIELDS);
  assert_true(client_stats(bed).bytes_in - before > 1 << 20);
  begin_close_till(&till);
  bed_until(bed, till.closed == till.closing);
}

/* A megabyte there and back, behind a few that are small. */
static void listen_and_publish(bed_t *bed) {
  static subscriber_t subscriber;
  static publication_t publication;
  static char message[BELAY_TOPIC_MESSAGE_MAX];
  subscriber = (subscriber_t){0};
  publication = (publication_t){0};
  subscribe(bed, &subscriber, "news");
  publish_numbers(bed, bed->client, "news", 100);
  bed_until(bed, subscriber.messages == 100);
  assert_true(subscriber.sum == sum_of_numbers(100));
  memset(message, 'x', sizeof message);
  assert_error(begin_publish(bed, bed->client, &publication, "news", message, sizeof message), 0);
  bed_until(bed, subscriber.messages == 101 && publication.ended == 1);
  assert_int_equal(subscriber.len, sizeof message);
  assert_int_equal(subscriber.gaps, 0);
  unsubscribe(&subscriber);
  bed_until(bed, subscriber.closed == 1);
}

/* Does all of it, and closes the bed. */
static void use(bed_t *bed, server_t *server) {
  bed->server = server;
  lock_and_release(bed);
  fill_pipeline(bed);
  read_large(bed);
  listen_and_publish(bed);
  assert_int_equal(client_stats(bed).connect_errors, 0);
  assert_int_equal(client_stats(bed).drops, 0);
  assert_int_equal(bed->errors + bed->warnings, 0);
  assert_int_equal(server_info(server, "stats", "rejected_connections"), 0);
  bed_close(bed);
}

/* ---- in which ways ---- */

TEST(name_and_address) {
  belay_tls_options_t o = trust(certs, NULL);
  for (int i = 0; i < 2; i++) {
    server_t *server = secure_server(certs, NULL);
    const char *host = i == 0 ? "localhost" : "127.0.0.1";
    use(secure_bed(url_of("rediss", NULL, host, server_port(server)), &o, NULL), server);
  }
}

TEST(password_and_client_certificate) {
  static const char *const versions[] = {"TLSv1.2", "TLSv1.3"};
  belay_tls_options_t o = trust(certs, "client");
  for (int i = 0; i < 2; i++) {
    server_t *server = secure_server(
        certs, &(secure_t){.clients = "yes", .versions = versions[i], .password = "sesame"});
    use(secure_bed(url_of("rediss", "sesame", "localhost", server_port(server)), &o, NULL), server);
  }
}

TEST(tls_1_3_only) {
  server_t *server = secure_server(certs, NULL);
  belay_tls_options_t o = trust(certs, NULL);
  o.min_version = BELAY_TLS_1_3;
  use(secure_bed(url_of("rediss", NULL, "localhost", server_port(server)), &o, NULL), server);
}

TEST(ca_dir) {
  server_t *server = secure_server(certs, NULL);
  belay_tls_options_t o = trust(certs, NULL);
  o.ca_file = NULL;
  o.ca_dir = certs_folder(certs);
  use(secure_bed(url_of("rediss", NULL, "localhost", server_port(server)), &o, NULL), server);
}

/* The certificate is for neither the name nor the address that leads there. */
TEST(server_name) {
  certs_make(certs, "named", &(cert_options_t){.names = "DNS:redis.example.com"});
  server_t *server = secure_server(certs, &(secure_t){.cert = "named"});
  belay_tls_options_t o = trust(certs, NULL);
  o.server_name = "redis.example.com";
  use(secure_bed(url_of("rediss", NULL, "127.0.0.1", server_port(server)), &o, NULL), server);
}

/* A client without TLS settings trusts the system's authorities. All such clients share one
 * instance. */
TEST(system_authorities) {
  setenv("SSL_CERT_FILE", certs_path(certs, "ca.crt"), 1);
  server_t *server = secure_server(certs, NULL);
  const char *url = url_of("rediss", NULL, "localhost", server_port(server));
  bed_t *bed = bed_open_at(url, NULL);
  size_t first = bed->bytes;
  belay_client_t *other = bed_connect(bed, url, NULL);
  size_t second = bed->bytes - first;
  belay_client_t *third = bed_connect(bed, url, NULL);
  assert_int_equal(bed->bytes - first - second, second);
  assert_error(begin_close_of(bed, other), 0);
  assert_error(begin_close_of(bed, third), 0);
  bed_until(bed, bed->client_closed == 2);
  use(bed, server);
  unsetenv("SSL_CERT_FILE");

  server = secure_server(certs, NULL); /* the system does not trust us */
  bed = bed_open_at(url_of("rediss", NULL, "localhost", server_port(server)), NULL);
  bed->server = server;
  assert_error(pong(bed, NULL), BELAY_ETLS);
  bed_close(bed);
}

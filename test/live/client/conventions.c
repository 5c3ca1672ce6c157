/* Rules of every handle: options may be NULL, and the close callback gets the handle's data. */
#include "support/fixtures/bed.h"

#define INIT(type, variable)                                                                       \
  belay_##type##_options_t variable;                                                               \
  belay_##type##_options_init(&variable)

static void on_message(belay_subscription_t *subscription, belay_topic_event_t event,
                       const void *message, size_t len, int status) {
  (void)subscription;
  (void)event;
  (void)message;
  (void)len;
  (void)status;
}

/* ---- options and closing --------------------------------------------------------------------------------- */

BED_TEST(options_may_be_null) {
  belay_client_t *client = bed->client;
  void *out = NULL;
  belay_bucket_t *bucket;
  INIT(bucket, b);
  b.name = belay_string("n");
  b.capacity = 1;
  assert_error(belay_bucket_new(client, &b, &bucket), 0);
#define NEW(type, ...) belay_##type##_new(__VA_ARGS__, NULL, (belay_##type##_t **)(void *)&out)
  const struct {
    const char *name;
    int error, expected;
  } rows[] = {
      {"active", NEW(active, client), BELAY_EINVAL}, /* a name */
      {"bloom", NEW(bloom, client), BELAY_EINVAL},   /* a name, a size */
      {"bucket", NEW(bucket, client), BELAY_EINVAL}, /* a capacity */
      {"cache", NEW(cache, client), 0},
      {"config", NEW(config, client), 0},
      {"counter", NEW(counter, client), 0},
      {"dedup", NEW(dedup, client), BELAY_EINVAL}, /* a name */
      {"election", NEW(election, &client, 1, belay_string("n")), 0},
      {"idempotency", NEW(idempotency, client), 0},
      {"idgen", NEW(idgen, client), BELAY_EINVAL}, /* a name */
      {"latch", NEW(latch, client, belay_string("n")), 0},
      {"barrier", NEW(barrier, client, belay_string("n")), 0},
      {"limiter", NEW(limiter, client), BELAY_EINVAL}, /* limits */
      {"lock", NEW(lock, client, belay_string("n")), 0},
      {"permission", NEW(permission, client), BELAY_EINVAL}, /* a width */
      {"presence", NEW(presence, client), BELAY_EINVAL},     /* a name */
      {"ranking", NEW(ranking, client), 0},
      {"refiller", NEW(refiller, bucket), BELAY_EINVAL}, /* a name */
      {"session", NEW(session, client), 0},
      {"sweep", NEW(sweep, client), BELAY_EINVAL}, /* a pattern, or a callback */
      {"tls", NEW(tls, bed->belay), 0},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    if (rows[i].error != rows[i].expected)
      fail_msg("belay_%s_new(): %s", rows[i].name, belay_err_name(rows[i].error));
    if (strcmp(rows[i].name, "tls") == 0)
      belay_tls_close(out);
  }
  assert_error(belay_bloomset_new(NULL, NULL, (belay_bloomset_t **)(void *)&out), BELAY_EINVAL);
}

static unsigned closed;
static int mine;

#define CLOSED(type)                                                                               \
  static void on_##type##_closed(belay_##type##_t *handle, void *data) {                           \
    assert_non_null(handle);                                                                       \
    assert_ptr_equal(data, &mine);                                                                 \
    closed++;                                                                                      \
  }
CLOSED(barrier)
CLOSED(election)
CLOSED(latch)
CLOSED(lock)
CLOSED(subscription)

#define CLOSE(type, handle)                                                                        \
  assert_error(belay_##type##_close(handle, on_##type##_closed), 0);                               \
  expected++

BED_TEST(a_close_callback_is_given_the_data) {
  belay_client_t *client = bed->client;
  unsigned expected = closed = 0;
#define SET(type, ...)                                                                             \
  belay_##type##_t *type##_handle;                                                                 \
  assert_error(belay_##type##_new(__VA_ARGS__, belay_string("n"), NULL, &type##_handle), 0);       \
  belay_##type##_set_data(type##_handle, &mine);                                                   \
  CLOSE(type, type##_handle)
  SET(latch, client);
  SET(barrier, client);
  SET(lock, client);
  SET(election, &client, 1);
  belay_subscription_t *subscription;
  assert_error(belay_topic_subscribe(client, belay_string("n"), on_message, &mine, &subscription),
               0);
  CLOSE(subscription, subscription);
  bed_until(bed, closed == expected);
}

/* A fake Sentinel: it reports what the test wants, true or not. The name of its master is
 * FAKE_SENTINEL_MASTER. */
#ifndef TEST_SUPPORT_DEPLOYMENTS_FAKE_SENTINEL_H
#define TEST_SUPPORT_DEPLOYMENTS_FAKE_SENTINEL_H

#include <stdbool.h>
#include <stdint.h>

#define FAKE_SENTINEL_MASTER "mymaster"

typedef struct fake_sentinel fake_sentinel_t;

typedef struct fake_sentinel_options {
  const char *password; /* the password that it requires; NULL: none */
  bool old;             /* as before Redis 6: knows no HELLO */
  bool secretive;       /* refuses subscriptions */
} fake_sentinel_options_t;

/* On a port of 127.0.0.1; at first it knows no master. options may be NULL. */
fake_sentinel_t *fake_sentinel_start(const fake_sentinel_options_t *options);
void fake_sentinel_stop(fake_sentinel_t *sentinel);
int fake_sentinel_port(const fake_sentinel_t *sentinel);

/* Sets the primary and its epoch in later replies. host NULL: the Sentinel knows no master. */
void fake_sentinel_set_primary(fake_sentinel_t *sentinel, const char *host, int port,
                               uint64_t epoch);

/* Sets the flags of the master; "master" at first. The string must outlive the Sentinel. */
void fake_sentinel_set_flags(fake_sentinel_t *sentinel, const char *flags);

/* Adds another Sentinel to its list; the run id is that of fake_sentinel_run_id(). */
void fake_sentinel_add_sentinel(fake_sentinel_t *sentinel, const char *host, int port);
/* Removes the other Sentinels from its list. */
void fake_sentinel_clear_sentinels(fake_sentinel_t *sentinel);
/* Adds a replica to its list; flags: as a Sentinel reports them, "slave" for a healthy one. */
void fake_sentinel_add_replica(fake_sentinel_t *sentinel, const char *host, int port,
                               const char *flags);

/* Sets the raw reply to queries for the primary's address. NULL: the usual reply. */
void fake_sentinel_set_reply(fake_sentinel_t *sentinel, const char *text);
/* on: it reads queries, and does not reply. Else it replies from the next query on. */
void fake_sentinel_mute(fake_sentinel_t *sentinel, bool on);

/* Publishes a message on +switch-master, or on the given channel. */
void fake_sentinel_publish(fake_sentinel_t *sentinel, const char *message);
void fake_sentinel_publish_on(fake_sentinel_t *sentinel, const char *channel, const char *message);

/* The run id that fake Sentinels report for the Sentinel on that port. */
void fake_sentinel_run_id(int port, char out[41]);

/* Sets the raw reply to all commands. NULL: the usual replies. */
void fake_sentinel_set_any_reply(fake_sentinel_t *sentinel, const char *text);

/* The numbers of connections, and of queries for the primary's address. */
unsigned fake_sentinel_connections(fake_sentinel_t *sentinel);
unsigned fake_sentinel_queries(fake_sentinel_t *sentinel);
/* The number of subscribers. */
unsigned fake_sentinel_subscribers(fake_sentinel_t *sentinel);

#endif /* TEST_SUPPORT_DEPLOYMENTS_FAKE_SENTINEL_H */

/* A fake Sentinel: it reports what the test wants, true or not. Its master is ORACLE_MASTER. */
#ifndef TEST_SUPPORT_DEPLOYMENTS_FAKE_SENTINEL_H
#define TEST_SUPPORT_DEPLOYMENTS_FAKE_SENTINEL_H

#include <stdbool.h>
#include <stdint.h>

#define ORACLE_MASTER "mymaster"

typedef struct oracle oracle_t;

typedef struct oracle_options {
  const char *password; /* the password that it requires; NULL: none */
  bool old;             /* as before Redis 6: knows no HELLO */
  bool secretive;       /* lets nobody listen */
} oracle_options_t;

/* On a port of 127.0.0.1; at first it knows no master. options may be NULL. */
oracle_t *oracle_start(const oracle_options_t *options);
void oracle_stop(oracle_t *oracle);
int oracle_port(const oracle_t *oracle);

/* Sets the primary and its epoch in later replies. host NULL: the Sentinel knows no master. */
void oracle_name(oracle_t *oracle, const char *host, int port, uint64_t epoch);

/* Sets the flags of the master; "master" at first. The string must outlive the Sentinel. */
void oracle_flag(oracle_t *oracle, const char *flags);

/* Adds another Sentinel to its list; the run id is that of oracle_run_id(). */
void oracle_introduce(oracle_t *oracle, const char *host, int port);
/* Removes the other Sentinels from its list. */
void oracle_forget(oracle_t *oracle);
/* Adds a replica to its list; flags: as a Sentinel reports them, "slave" for a healthy one. */
void oracle_add_replica(oracle_t *oracle, const char *host, int port, const char *flags);

/* It answers that to the question where the primary is, whatever it is. NULL: it answers again. */
void oracle_answer(oracle_t *oracle, const char *text);
/* It reads, and does not say a word any more; or does again, from the next question on. */
void oracle_mute(oracle_t *oracle, bool on);

/* Publishes a message on +switch-master, or on the given channel. */
void oracle_publish(oracle_t *oracle, const char *message);
void oracle_publish_on(oracle_t *oracle, const char *channel, const char *message);

/* The run id of the sentinel on that port, as oracles say it. */
void oracle_run_id(int port, char out[41]);

/* The same for anything at all. */
void oracle_say(oracle_t *oracle, const char *text);

/* So far: connections, and questions where the primary is. */
unsigned oracle_connections(oracle_t *oracle);
unsigned oracle_questions(oracle_t *oracle);
/* How many have said that they listen. */
unsigned oracle_listeners(oracle_t *oracle);

#endif /* TEST_SUPPORT_DEPLOYMENTS_FAKE_SENTINEL_H */

/* The scripts of readers and writers, and their callers. */
#ifndef TEST_SUPPORT_MODELS_RW_SCRIPTS_H
#define TEST_SUPPORT_MODELS_RW_SCRIPTS_H

#include <stdbool.h>

#include "scripts.gen.h"
#include "support/models/scripts.h"

#define LOCK "{door}"
#define READERS LOCK "::readers"
#define WAITING LOCK "::waiting"
#define WRITERS LOCK "::writers"
#define ADMITTED LOCK "::admitted"
#define FENCE LOCK "::fence"

#define read_script (&belay__script_rwlock_read)
#define write_script (&belay__script_rwlock_write)
#define extend_script (&belay__script_rwlock_extend)
#define release_script (&belay__script_rwlock_release)

typedef struct actor {
  char token[24], ticket[24];
} actor_t;

actor_t actor(unsigned i);

typedef struct acquire_args {
  const char *ttl, *place; /* milliseconds */
  bool counted, waits;
  const char *host; /* a reader's: the token of another */
} acquire_args_t;

extern const acquire_args_t usual;

/* The keys and arguments of a script. */
script_input_t acquire_input(const belay__script_t *script, const actor_t *a, acquire_args_t how);
script_input_t extend_input(const actor_t *a, const char *ttl, const char *retake,
                            const char *mode);
script_input_t release_input(const actor_t *a, bool ticket);

/* An actor runs it; the reply, which must be an integer. */
int64_t acquire_as(server_t *server, const belay__script_t *script, unsigned i, acquire_args_t how);
int64_t read_as(server_t *server, unsigned i);
int64_t write_as(server_t *server, unsigned i);
int64_t extend_as(server_t *server, unsigned i, const char *ttl, const char *mode);
int64_t release_as(server_t *server, unsigned i);

#endif /* TEST_SUPPORT_MODELS_RW_SCRIPTS_H */

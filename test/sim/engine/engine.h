/* A Redis server without its sockets and without its clock: commands go in, RESP bytes come out.
 *
 *   words of one command --engine_execute()--> command.h's table --> keyspace (store.h)
 *                                                |    ^    |
 *         RESP bytes, appended to a buffer <-----+    |    +--EVAL, EVALSHA--+
 *                                                     |                      v
 *                                                     +--redis.call()-- Lua 5.1 (script.h)
 *
 * It has Redis 7.0's semantics, for the commands and options of belay's handshakes and of the
 * scripts that the actors run, and no others; sim-conformance compares every reply with a real
 * server's. Time is what each call says it is: a command, a script too, happens at one instant,
 * as in Redis. One database, one thread, nothing random, no system call. */
#ifndef TEST_SIM_ENGINE_H
#define TEST_SIM_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct engine engine_t;

/* Bytes that belong to another object. */
typedef struct engine_bytes {
  const char *at;
  size_t len;
} engine_bytes_t;

/* A buffer of bytes. All zeros is an empty one; engine_buffer_free() releases it. */
typedef struct engine_buffer {
  char *at;
  size_t len, cap;
} engine_buffer_t;

void engine_buffer_add(engine_buffer_t *buffer, const char *at, size_t len);
void engine_buffer_free(engine_buffer_t *buffer);

/* The server's state of one connection, in the caller's memory. Zeros and a nonzero id before
 * the first command; engine_disconnect() after the last. */
typedef struct engine_conn {
  int64_t id;
  void *owner;                  /* the caller's */
  char name[64];                /* CLIENT SETNAME */
  int resp;                     /* 3: HELLO 3; anything else: RESP2 */
  struct engine_channel *first; /* its subscriptions; owned by the engine */
  size_t channels;
} engine_conn_t;

/* Why a key changed. */
typedef enum engine_cause {
  ENGINE_BY_COMMAND, /* a command or a script */
  ENGINE_BY_EXPIRY,  /* its ttl is over: reported by the next command that looks it up */
  ENGINE_BY_FLUSH    /* FLUSHALL, FLUSHDB */
} engine_cause_t;

/* Callbacks of the engine. Any may be NULL. None may call the engine. */
typedef struct engine_hooks {
  void *ctx; /* handed to each */

  /* A string value was created, changed or deleted: `was` and `is` are its bytes before and
   * after, at NULL where there is none. Called at each change, inside scripts too. Not called
   * for other types. */
  void (*changed)(void *ctx, engine_bytes_t key, engine_bytes_t was, engine_bytes_t is,
                  engine_cause_t cause);

  /* CLIENT KILL ID: the connection is to be closed; false: there is none of that number. */
  bool (*kill)(void *ctx, int64_t id);

  /* Bytes for a subscribed connection, in the order of publication, also for the connection
   * whose command is being executed. */
  void (*push)(void *ctx, engine_conn_t *conn, const char *at, size_t len);
} engine_hooks_t;

typedef struct engine_options {
  engine_hooks_t hooks;
  const char *run_id;  /* 40 bytes; copied */
  const char *data_id; /* master_replid2, 40 bytes; NULL: zeros, and a second_repl_offset of -1 */
  int64_t data_offset; /* second_repl_offset, where data_id is not NULL */
  uint64_t started_us; /* the wall clock when it started, in microseconds since 1970 */
  unsigned replicas;   /* the immediate reply to WAIT, if it asks for at least as many */
} engine_options_t;

engine_t *engine_new(const engine_options_t *options);
void engine_free(engine_t *engine);

/* Frees the interpreter that all engines of the process share. No engine may be left. */
void engine_shutdown(void);

/* Executes one command (argc >= 1) at this wall-clock time and appends its reply, also those of
 * SUBSCRIBE. Returns for any words. */
void engine_execute(engine_t *engine, engine_conn_t *conn, uint64_t now_us,
                    const engine_bytes_t *argv, size_t argc, engine_buffer_t *out);

/* The connection is gone. */
void engine_disconnect(engine_t *engine, engine_conn_t *conn);

/* The keys with their values and ttls, as on a disk: for a restart with the same or older data.
 * A restart is engine_free(), engine_new(), engine_load(): scripts and connections are lost. */
typedef struct engine_image engine_image_t;
engine_image_t *engine_save(const engine_t *engine);
void engine_load(engine_t *engine, const engine_image_t *image);
void engine_image_free(engine_image_t *image);

/* Visits every key whose ttl is not over. ttl_ms -1: it has none. type is the reply to TYPE.
 * Returns the number of keys. */
typedef void (*engine_key_fn)(void *ctx, engine_bytes_t key, const char *type, int64_t ttl_ms);
size_t engine_each_key(const engine_t *engine, uint64_t now_us, engine_key_fn fn, void *ctx);

/* Visits every word of every value: strings, fields and their values, members. until_ms: a
 * member's score, or the first word of a field's value, if it can be a time; else INT64_MAX. */
typedef void (*engine_value_fn)(void *ctx, engine_bytes_t key, engine_bytes_t word,
                                int64_t until_ms);
void engine_each_value(const engine_t *engine, uint64_t now_us, engine_value_fn fn, void *ctx);

/* The number of writing commands that were executed, in scripts too. */
uint64_t engine_writes(const engine_t *engine);

/* The bytes of a string; at NULL if there is none. Valid until the next command. */
engine_bytes_t engine_peek(const engine_t *engine, uint64_t now_us, engine_bytes_t key);

/* ---- RESP ---- */

#define ENGINE_ARGS_MAX 4096

/* Finds the first command in a stream of bytes, an array of bulk strings. Returns the number of
 * its bytes, and its words, which point into `at`. 0: it is not complete; -1: it is no RESP. */
long engine_parse(const char *at, size_t len, engine_bytes_t argv[ENGINE_ARGS_MAX], size_t *argc);

#endif /* TEST_SIM_ENGINE_H */

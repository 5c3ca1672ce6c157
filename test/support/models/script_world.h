/* Rows of support/models/script_rows.h on a server: the keys before a run, and their changes. */
#ifndef TEST_SUPPORT_MODELS_SCRIPT_WORLD_H
#define TEST_SUPPORT_MODELS_SCRIPT_WORLD_H

#include "scripts.gen.h"
#include "support/models/script_rows.h"
#include "support/servers/server.h"

typedef struct script_held {
  char *name, *dump, ttl[24];
  size_t dump_len;
} script_held_t;

typedef struct script_state {
  script_held_t keys[16];
  size_t len;
} script_state_t;

typedef struct script_world {
  server_t *server;
  resp_client_t client;
  char snapshot_sha[41], prepare_sha[41];
  unsigned cases, errors, failures, failed_of[BELAY__SCRIPTS];
  int64_t ttl_ms;
  char room[SCRIPT_ROW_ARGS][512]; /* of expanded arguments */
} script_world_t;

/* The script of a row; the row of that name. */
const belay__script_t *script_of_row(const script_row_t *row);
const script_row_t *script_row_named(const char *name, size_t len);

/* Build a command: one more word; the keys of a row behind their number, which is written to
 * count; keys and arguments. */
void script_add_word(resp_words_t *words, const char *word, size_t len);
size_t script_put_keys(const script_row_t *row, resp_words_t *words, char count[8]);
void script_put_run(script_world_t *world, const script_row_t *row, resp_words_t *words,
                    char count[8]);

/* Ask the server; the reply is freed by the caller. */
resp_t *script_world_call(script_world_t *world, const resp_words_t *words);
resp_t *script_world_eval(script_world_t *world, const script_row_t *row);
void script_world_command(script_world_t *world, const char *command);

/* The keys as the runs before the row leave them. */
void script_state_make(script_world_t *world, const script_row_t *row, script_state_t *state);
void script_state_clear(script_state_t *state);

/* Runs what comes before the row; with checked, their replies must have their forms. */
void script_world_run_before(script_world_t *world, const script_row_t *row, bool checked);

/* A server with all scripts; the end prints what went wrong, and fails the test if anything did. */
void script_world_open(script_world_t *world);
void script_world_close(script_world_t *world);

#endif /* TEST_SUPPORT_MODELS_SCRIPT_WORLD_H */

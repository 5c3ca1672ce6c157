/* Scripts as a server runs them, without belay around them. */
#ifndef TEST_SUPPORT_MODELS_SCRIPTS_H
#define TEST_SUPPORT_MODELS_SCRIPTS_H

#include "core/call/script.h"
#include "support/servers/server.h"

#define SCRIPT_KEYS_MAX 6
#define SCRIPT_ARGS_MAX 9

/* The keys and arguments of a script; both lists end with NULL. */
typedef struct script_input {
  const char *keys[SCRIPT_KEYS_MAX + 1];
  const char *args[SCRIPT_ARGS_MAX + 1];
} script_input_t;

/* Its reply; valid until the next question. */
const resp_t *script_run(server_t *server, const belay__script_t *script,
                         const script_input_t *input);

/* The reply must be an integer. */
int64_t script_integer(server_t *server, const belay__script_t *script,
                       const script_input_t *input);

/* The reply must be an error that has that word in it. */
void script_refused(server_t *server, const belay__script_t *script, const script_input_t *input,
                    const char *word);

/* Find the next command in a script's text: call('COMMAND' or pcall('COMMAND'. Returns false at the
 * end. */
bool script_next_command(const char **at, char out[32]);

/* The server's clock, in milliseconds. */
int64_t server_now_ms(server_t *server);

/* A server with DEBUG, for server_digest(). */
server_t *server_with_digest(void);

/* A hash of all data of the server; equal data have equal hashes. Ttls do not count. */
uint64_t server_digest(server_t *server);

/* No key of the server lives for ever, and none ends before the last of the times that stand in
 * it: the scores of a sorted set. */
void expect_ttls(server_t *server);

#endif /* TEST_SUPPORT_MODELS_SCRIPTS_H */

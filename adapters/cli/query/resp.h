/* Somebody with another client: one command, sent to a server by hand. For what belay, having no raw
 * commands, cannot do. It blocks, and so it runs in a process of its own. */
#ifndef BELAY_CLI_QUERY_RESP_H
#define BELAY_CLI_QUERY_RESP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Connects to a URL, as belay_connect() takes it, sends a command of n arguments, and reads the reply, which
 * has to be an integer. Returns whether all that went well. */
bool resp_ask(const char *url, const char *const *args, size_t n, int64_t *reply);

#endif /* BELAY_CLI_QUERY_RESP_H */

/* The server program: Redis, or the one that BELAY_TEST_SERVER names, found in PATH. */
#ifndef TEST_SUPPORT_SERVERS_PROGRAM_H
#define TEST_SUPPORT_SERVERS_PROGRAM_H

#include <stdbool.h>

/* In a child: becomes a server. The first argument is its own business. */
_Noreturn void program_become(char **argv);

/* Whether it is of that version or later; versions of Valkey go on from Redis's. */
bool program_is_since(int major, int minor);

#endif /* TEST_SUPPORT_SERVERS_PROGRAM_H */

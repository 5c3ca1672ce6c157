/* A blocking client for a test's own queries. */
#ifndef TEST_SUPPORT_SERVERS_RESP_H
#define TEST_SUPPORT_SERVERS_RESP_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

typedef enum resp_type {
  RESP_NIL,
  RESP_STATUS,
  RESP_ERROR,
  RESP_INTEGER,
  RESP_STRING,
  RESP_ARRAY
} resp_type_t;

typedef struct resp {
  resp_type_t type;
  int64_t integer;
  char *str; /* STATUS, ERROR, STRING: len bytes and a 0 */
  size_t len;
  struct resp **items; /* ARRAY */
  size_t count;
} resp_t;

typedef struct resp_client {
  int fd; /* -1: not connected */
  size_t start, end;
  char buffer[4096];
} resp_client_t;

#define RESP_WORDS 128 /* words of a command at most */

typedef struct resp_words {
  size_t count;
  const char *word[RESP_WORDS];
  size_t len[RESP_WORDS];
} resp_words_t;

/* Connects; 0, or -1 if no server listens. Blocking calls fail after 10 seconds. */
int resp_dial_unix(resp_client_t *client, const char *path);
int resp_dial_tcp(resp_client_t *client, const char *address, int port);
void resp_hang_up(resp_client_t *client);

/* Strings up to a NULL. */
resp_words_t resp_words(va_list strings);

/* Sends a command and reads its reply; NULL if the connection is lost. */
resp_t *resp_call(resp_client_t *client, const resp_words_t *words);
void resp_free(resp_t *reply);

/* Sends n commands together and reads their replies; 0, or -1 if the connection is lost. The
 * replies must fit into the buffers of the sockets. */
int resp_calls(resp_client_t *client, const resp_words_t *words, size_t n, resp_t **replies);

/* Sends everything, on any socket; 0, or -1 if the other side is gone. */
int resp_send(int fd, const char *data, size_t len);

#endif /* TEST_SUPPORT_SERVERS_RESP_H */

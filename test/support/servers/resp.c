#include "support/servers/resp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* ---- sockets ---- */

static int dial(resp_client_t *client, int family, const void *address, size_t len) {
  struct timeval patience = {.tv_sec = 10};
  client->start = client->end = 0;
  client->fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (client->fd < 0)
    return -1;
  setsockopt(client->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  if (connect(client->fd, address, (socklen_t)len) == 0)
    return 0;
  resp_hang_up(client);
  return -1;
}

int resp_dial_unix(resp_client_t *client, const char *path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
  return dial(client, AF_UNIX, &address, sizeof address);
}

int resp_dial_tcp(resp_client_t *client, const char *text, int port) {
  struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
  if (inet_pton(AF_INET, text, &v4.sin_addr) == 1)
    return dial(client, AF_INET, &v4, sizeof v4);
  if (inet_pton(AF_INET6, text, &v6.sin6_addr) == 1)
    return dial(client, AF_INET6, &v6, sizeof v6);
  return -1;
}

void resp_hang_up(resp_client_t *client) {
  if (client->fd >= 0)
    close(client->fd);
  client->fd = -1;
}

int resp_send(int fd, const char *data, size_t len) {
  while (len > 0) {
    ssize_t n = send(fd, data, len, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return -1;
    data += n;
    len -= (size_t)n;
  }
  return 0;
}

/* ---- reading ---- */

static bool read_byte(resp_client_t *client, char *out) {
  if (client->start == client->end) {
    ssize_t n;
    do {
      n = recv(client->fd, client->buffer, sizeof client->buffer, 0);
    } while (n < 0 && errno == EINTR);
    if (n <= 0)
      return false;
    client->start = 0;
    client->end = (size_t)n;
  }
  *out = client->buffer[client->start++];
  return true;
}

static bool read_bytes(resp_client_t *client, char *out, size_t len) {
  for (size_t i = 0; i < len; i++)
    if (!read_byte(client, &out[i]))
      return false;
  out[len] = '\0';
  return true;
}

/* A line without its end. */
static bool read_line(resp_client_t *client, char *out, size_t size) {
  size_t n = 0;
  char c;
  while (read_byte(client, &c)) {
    if (c == '\n') {
      out[n > 0 && out[n - 1] == '\r' ? n - 1 : n] = '\0';
      return true;
    }
    if (n + 1 < size)
      out[n++] = c;
  }
  return false;
}

void resp_free(resp_t *reply) {
  if (reply == NULL)
    return;
  for (size_t i = 0; i < reply->count; i++)
    resp_free(reply->items[i]);
  free(reply->items);
  free(reply->str);
  free(reply);
}

static resp_t *read_reply(resp_client_t *client);

static bool read_string(resp_client_t *client, resp_t *reply, long len) {
  char end[3];
  if (len < 0) {
    reply->type = RESP_NIL;
    return true;
  }
  reply->type = RESP_STRING;
  reply->len = (size_t)len;
  reply->str = malloc(reply->len + 1);
  return read_bytes(client, reply->str, reply->len) && read_bytes(client, end, 2);
}

static bool read_array(resp_client_t *client, resp_t *reply, long count) {
  reply->type = count < 0 ? RESP_NIL : RESP_ARRAY;
  if (count <= 0)
    return true;
  reply->items = calloc((size_t)count, sizeof *reply->items);
  for (reply->count = 0; reply->count < (size_t)count; reply->count++)
    if ((reply->items[reply->count] = read_reply(client)) == NULL)
      return false;
  return true;
}

static bool read_into(resp_client_t *client, resp_t *reply) {
  char line[1024];
  if (!read_line(client, line, sizeof line))
    return false;
  switch (line[0]) {
  case '+':
  case '-':
    reply->type = line[0] == '+' ? RESP_STATUS : RESP_ERROR;
    reply->str = strdup(line + 1);
    reply->len = strlen(reply->str);
    return true;
  case ':':
    reply->type = RESP_INTEGER;
    reply->integer = strtoll(line + 1, NULL, 10);
    return true;
  case '$':
    return read_string(client, reply, strtol(line + 1, NULL, 10));
  case '*':
    return read_array(client, reply, strtol(line + 1, NULL, 10));
  default:
    return false;
  }
}

static resp_t *read_reply(resp_client_t *client) {
  resp_t *reply = calloc(1, sizeof *reply);
  if (read_into(client, reply))
    return reply;
  resp_free(reply);
  return NULL;
}

/* ---- commands ---- */

resp_words_t resp_words(va_list strings) {
  resp_words_t words = {0};
  const char *word;
  while (words.count < RESP_WORDS && (word = va_arg(strings, const char *)) != NULL) {
    words.word[words.count] = word;
    words.len[words.count++] = strlen(word);
  }
  return words;
}

static void put_command(FILE *out, const resp_words_t *words) {
  fprintf(out, "*%zu\r\n", words->count);
  for (size_t i = 0; i < words->count; i++) {
    fprintf(out, "$%zu\r\n", words->len[i]);
    fwrite(words->word[i], 1, words->len[i], out);
    fputs("\r\n", out);
  }
}

static int send_commands(int fd, const resp_words_t *words, size_t n) {
  char *text = NULL;
  size_t len = 0;
  FILE *out = open_memstream(&text, &len);
  for (size_t i = 0; i < n; i++)
    put_command(out, &words[i]);
  fclose(out);
  int error = resp_send(fd, text, len);
  free(text);
  return error;
}

resp_t *resp_call(resp_client_t *client, const resp_words_t *words) {
  if (client->fd < 0 || send_commands(client->fd, words, 1) != 0)
    return NULL;
  return read_reply(client);
}

int resp_calls(resp_client_t *client, const resp_words_t *words, size_t n, resp_t **replies) {
  if (client->fd < 0 || send_commands(client->fd, words, n) != 0)
    return -1;
  for (size_t i = 0; i < n; i++)
    if ((replies[i] = read_reply(client)) == NULL)
      return -1;
  return 0;
}

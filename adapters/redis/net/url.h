/* Parses the URL of a deployment. belay/client.h (belay_connect()) lists the forms.
 *
 * The parser is strict. A scheme is lower case. A numeric IPv6 address is in brackets, without a
 * zone. Numbers are decimal, without leading zeros. User, password and path are percent-decoded.
 * In them a control character, a space and the characters that end them ('#', and in user and
 * password '/', '?', '@') must be percent-encoded. */
#ifndef BELAY_REDIS_NET_URL_H
#define BELAY_REDIS_NET_URL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define BELAY__URL_MAX 2048 /* bytes of a URL, without its 0 */
#define BELAY__URL_HOSTS 16
#define BELAY__HOST_MAX 255 /* bytes of a host's name */
#define BELAY__MASTER_MAX 128

typedef enum belay__url_kind {
  BELAY__URL_SINGLE,
  BELAY__URL_REPLICAS,
  BELAY__URL_SENTINEL,
  BELAY__URL_CLUSTER
} belay__url_kind_t;

typedef struct belay__place {
  char host[BELAY__HOST_MAX + 1]; /* name or numeric address, without brackets */
  uint16_t port;                  /* default in a URL: 6379, for Sentinels 26379 */
} belay__place_t;

static inline bool belay__place_is(const belay__place_t *place, const belay__place_t *other) {
  return place->port == other->port && strcmp(place->host, other->host) == 0;
}

/* Sets the host. False if it is empty, too long, or contains a zero byte. */
bool belay__place_set_host(belay__place_t *place, const char *host, size_t len);

typedef struct belay__url {
  belay__url_kind_t kind;
  bool tls;
  bool is_unix;
  size_t place_count; /* 0 if is_unix; 1 of a SINGLE */
  belay__place_t places[BELAY__URL_HOSTS];
  char path[108];                     /* absolute; fits sun_path with its 0; "" unless is_unix */
  char master[BELAY__MASTER_MAX + 1]; /* the master's name at the Sentinels; "" unless SENTINEL */
  bool has_username;                  /* false for an empty one: the default user */
  bool has_password;                  /* true also for an empty one, after ':' */
  char username[257], password[513];  /* "" if there is none. The password is never logged. */
  int db;                             /* 0 to 65535; 0 if not given */
} belay__url_t;

/* write: writes "host:port", the host in brackets if it contains a colon; at most size bytes, the
 * terminating 0 included. read: the reverse; false if the text has another form. */
void belay__place_write(const belay__place_t *place, char *out, size_t size);
bool belay__place_read(const char *text, belay__place_t *out);

/* Parses a URL. Returns 0 or BELAY_EURL. On an error *out is all zeros, *part names the wrong part
 * ("scheme", "user", "password", "host", "port", "master", "db", "path", "query", "url"), and *why
 * is the reason. Both are constants without text of the URL; on success both are "". */
int belay__url_parse(const char *text, belay__url_t *out, const char **part, const char **why);

#endif /* BELAY_REDIS_NET_URL_H */

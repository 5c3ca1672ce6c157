/* Where a deployment is: its URL, taken apart.
 *
 *   redis://[user[:password]@]host[:port][/db]                      unix://[user[:password]@]/path[?db=n]
 *   redis+replicas://[user[:password]@]host[:port],...[/db]
 *   redis+sentinel://[user[:password]@]host[:port],.../master[/db]  hosts are sentinels; user, of its servers
 *   redis+cluster://[user[:password]@]host[:port],...[/db]          hosts are some of its nodes
 *
 * "rediss" in the place of "redis" is the same over TLS, sentinels included.
 * The reading is strict. A scheme is written in lower case; a numeric IPv6 address stands in brackets,
 * where a zone may follow it after '%' or, as RFC 6874 has it, after "%25"; numbers are decimal, without
 * leading zeros. User, password and path are percent-decoded; in them a control character, a space and
 * what would end them ('#', and in user and password '/', '?', '@' too) must be percent-encoded. */
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
  char
      host[BELAY__HOST_MAX + 1]; /* name or numeric address, without brackets, zone after one '%' */
  uint16_t port;                 /* in a URL: 6379, of a sentinel 26379, if not given */
} belay__place_t;

static inline bool belay__place_is(const belay__place_t *place, const belay__place_t *other) {
  return place->port == other->port && strcmp(place->host, other->host) == 0;
}

/* Sets the host; false if it is empty or too long, or has a NUL byte in it. */
bool belay__place_set_host(belay__place_t *place, const char *host, size_t len);

typedef struct belay__url {
  belay__url_kind_t kind;
  bool tls;
  bool is_unix;
  size_t place_count; /* 0 if is_unix; 1 of a SINGLE */
  belay__place_t places[BELAY__URL_HOSTS];
  char path[108];                     /* absolute; fits sun_path with its 0; "" unless is_unix */
  char master[BELAY__MASTER_MAX + 1]; /* the master's name at the Sentinels; "" unless SENTINEL */
  bool has_username;                  /* one that is not empty: an empty one is the default user */
  bool has_password;                  /* also an empty one: there was a ':' */
  char username[257], password[513];  /* "" if there is none. The password is never logged. */
  int db;                             /* 0 to 65535; 0 if not given */
} belay__url_t;

/* "host:port", the host in brackets if there are colons in it, as in a URL: writes at most size bytes, a 0 included. And the
 * reverse: false if it is none. */
void belay__place_write(const belay__place_t *place, char *out, size_t size);
bool belay__place_read(const char *text, belay__place_t *out);

/* Takes a URL apart. Returns 0, or BELAY_EURL: then *out is all zeros, *part names what is wrong, "scheme",
 * "user", "password", "host", "port", "master", "db", "path", "query", or "url" if it is the whole, and *why says
 * in a few words how. Both are constants: nothing of the text is in them. On success both are "". */
int belay__url_parse(const char *text, belay__url_t *out, const char **part, const char **why);

#endif /* BELAY_REDIS_NET_URL_H */

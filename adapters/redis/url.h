/* Where a deployment is: its URL, taken apart.
 *
 *   redis://[user[:password]@]host[:port][/db]      unix://[user[:password]@]/path[?db=n]
 *
 * The reading is strict. A scheme is written in lower case; a numeric IPv6 address stands in brackets,
 * where a zone may follow it after '%' or, as RFC 6874 has it, after "%25"; numbers are decimal, without
 * leading zeros. User, password and path are percent-decoded; in them a control character, a space and
 * what would end them ('#', and in user and password '/', '?', '@' too) must be percent-encoded. */
#ifndef BELAY_REDIS_URL_H
#define BELAY_REDIS_URL_H

#include <stdbool.h>
#include <stdint.h>

#define BELAY__URL_MAX 2048 /* bytes of a URL, without its 0 */

typedef struct belay__url {
  bool is_unix;
  char host[256]; /* name or numeric address, without brackets, zone after one '%'; "" if is_unix */
  char path[108]; /* absolute; fits sun_path with its 0; "" unless is_unix */
  uint16_t port;  /* 6379 if not given */
  bool has_username;                 /* one that is not empty: an empty one is the default user */
  bool has_password;                 /* also an empty one: there was a ':' */
  char username[257], password[513]; /* "" if there is none. The password is never logged. */
  int db;                            /* 0 to 65535; 0 if not given */
} belay__url_t;

/* Takes a URL apart. Returns 0, or BELAY_EURL: then *out is all zeros, *part names what is wrong, "scheme",
 * "user", "password", "host", "port", "db", "path", "query", or "url" if it is the whole, and *why says
 * in a few words how. Both are constants: nothing of the text is in them. On success both are "". */
int belay__url_parse(const char *text, belay__url_t *out, const char **part, const char **why);

#endif /* BELAY_REDIS_URL_H */

#include "redis/net/url.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "belay/error.h"

#define DEFAULT_PORT 6379
#define DEFAULT_SENTINEL_PORT 26379
#define BARE "has a character that must be percent-encoded"

typedef struct parser {
  belay__url_t *url;
  const char *part, *why; /* constants, so that no secret can get into them */
} parser_t;

/* A part of the text. */
typedef struct span {
  const char *at, *end;
} span_t;

static bool wrong(parser_t *p, const char *part, const char *why) {
  p->part = part;
  p->why = why;
  return false;
}

/* ---- leaves ---- */

static size_t length(span_t s) {
  return (size_t)(s.end - s.at);
}

/* Returns the first c, or NULL. */
static const char *find(span_t s, char c) {
  return memchr(s.at, c, length(s));
}

/* Returns the text after the last c, or NULL. */
static const char *after_last(span_t s, char c) {
  for (const char *at = s.end; at > s.at; at--)
    if (at[-1] == c)
      return at;
  return NULL;
}

/* Returns the text up to one of these characters, or up to the end. */
static span_t until(const char *at, const char *stops) {
  return (span_t){at, at + strcspn(at, stops)};
}

static bool starts_with(const char *text, const char *prefix) {
  return strncmp(text, prefix, strlen(prefix)) == 0;
}

static bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

static bool is_name_char(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '.' ||
         c == '_';
}

static bool is_name(span_t s) {
  for (; s.at < s.end; s.at++)
    if (!is_name_char(*s.at))
      return false;
  return true;
}

static int hex_value(char c) {
  if (is_digit(c))
    return c - '0';
  if (c >= 'a' && c <= 'f')
    return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static void copy(char *out, span_t s) {
  memcpy(out, s.at, length(s));
  out[length(s)] = '\0';
}

/* Returns a number of at most five digits, or -1. */
static int number(span_t s) {
  int value = 0;
  if (length(s) < 1 || length(s) > 5 || (*s.at == '0' && length(s) > 1))
    return -1;
  for (; s.at < s.end; s.at++) {
    if (!is_digit(*s.at))
      return -1;
    value = 10 * value + (*s.at - '0');
  }
  return value;
}

/* Percent-decodes into a buffer. reserved: characters that must be encoded. */
static bool decode(parser_t *p, const char *part, span_t s, const char *reserved, char *out,
                   size_t size) {
  size_t n = 0;
  while (s.at < s.end) {
    char c = *s.at++;
    if ((unsigned char)c <= ' ' || c == 0x7f || strchr(reserved, c) != NULL)
      return wrong(p, part, BARE);
    if (c == '%') {
      int high = s.at < s.end ? hex_value(s.at[0]) : -1;
      int low = high >= 0 && s.at + 1 < s.end ? hex_value(s.at[1]) : -1;
      if (low < 0)
        return wrong(p, part, "has a '%' without two hexadecimal digits behind it");
      c = (char)(high << 4 | low);
      s.at += 2;
      if (c == '\0')
        return wrong(p, part, "contains a zero byte");
    }
    if (n + 1 >= size)
      return wrong(p, part, "is too long");
    out[n++] = c;
  }
  out[n] = '\0';
  return true;
}

/* ---- parts ---- */

static bool take_db(parser_t *p, span_t s) {
  p->url->db = number(s);
  if (p->url->db < 0 || p->url->db > UINT16_MAX)
    return wrong(p, "db", "is not a number from 0 to 65535");
  return true;
}

static bool take_port(parser_t *p, belay__place_t *place, span_t s) {
  int port = number(s);
  if (port < 1 || port > UINT16_MAX)
    return wrong(p, "port", "is not a number from 1 to 65535");
  place->port = (uint16_t)port;
  return true;
}

/* user[:password]; the first ':' divides them. */
static bool take_user(parser_t *p, span_t s) {
  static const char reserved[] = "#/?@";
  belay__url_t *url = p->url;
  const char *colon = find(s, ':');
  span_t user = {s.at, colon != NULL ? colon : s.end};
  url->has_username = length(user) > 0;
  url->has_password = colon != NULL;
  if (!decode(p, "user", user, reserved, url->username, sizeof url->username))
    return false;
  return colon == NULL || decode(p, "password", (span_t){colon + 1, s.end}, reserved, url->password,
                                 sizeof url->password);
}

/* Reads the text in brackets. */
static bool take_address(parser_t *p, belay__place_t *place, span_t s) {
  struct in6_addr ignored;
  char text[INET6_ADDRSTRLEN];
  if (length(s) >= sizeof text)
    return wrong(p, "host", "is not an IPv6 address");
  copy(text, s);
  if (inet_pton(AF_INET6, text, &ignored) != 1)
    return wrong(p, "host", "is not an IPv6 address");
  copy(place->host, s);
  return true;
}

/* A name of at most max characters. */
static bool take_name(parser_t *p, const char *part, span_t s, size_t max, char *out) {
  if (length(s) < 1)
    return wrong(p, part, "is empty");
  if (length(s) > max)
    return wrong(p, part, "is too long");
  if (!is_name(s))
    return wrong(p, part, "has a character that no name has");
  copy(out, s);
  return true;
}

/* host[:port] */
static bool take_host(parser_t *p, belay__place_t *place, span_t s) {
  if (length(s) > 0 && *s.at == '[') {
    const char *bracket = find(s, ']');
    if (bracket == NULL)
      return wrong(p, "host", "has a bracket that is not closed");
    if (!take_address(p, place, (span_t){s.at + 1, bracket}))
      return false;
    s.at = bracket + 1;
    if (length(s) > 0 && *s.at != ':')
      return wrong(p, "host", "is followed by something that is no port");
  } else {
    const char *colon = find(s, ':');
    if (colon != NULL && find((span_t){colon + 1, s.end}, ':') != NULL)
      return wrong(p, "host", "has more than one ':': an IPv6 address stands in brackets");
    span_t name = {s.at, colon != NULL ? colon : s.end};
    if (!take_name(p, "host", name, BELAY__HOST_MAX, place->host))
      return false;
    s.at = name.end;
  }
  return length(s) == 0 || take_port(p, place, (span_t){s.at + 1, s.end});
}

/* host[:port],... */
static bool take_hosts(parser_t *p, span_t s) {
  belay__url_t *url = p->url;
  bool several = url->kind != BELAY__URL_SINGLE;
  for (;;) {
    const char *comma = several ? find(s, ',') : NULL;
    if (url->place_count == BELAY__URL_HOSTS)
      return wrong(p, "host", "is one of more than 16");
    belay__place_t *place = &url->places[url->place_count++];
    place->port = url->kind == BELAY__URL_SENTINEL ? DEFAULT_SENTINEL_PORT : DEFAULT_PORT;
    if (!take_host(p, place, (span_t){s.at, comma != NULL ? comma : s.end}))
      return false;
    if (comma == NULL)
      return true;
    s.at = comma + 1;
  }
}

/* master[/db] */
static bool take_master(parser_t *p, const char *text) {
  span_t name = until(text, "/");
  if (!take_name(p, "master", name, BELAY__MASTER_MAX, p->url->master))
    return false;
  return name.end[0] == '\0' || name.end[1] == '\0' || take_db(p, until(name.end + 1, ""));
}

/* ---- the schemes ---- */

/* [user[:password]@]hosts[/master][/db] */
static bool take_redis(parser_t *p, const char *text) {
  span_t authority = until(text, "/?");
  const char *hosts = after_last(authority, '@'), *rest = authority.end;
  /* No '@' can follow: a user or password contains a bare '/' or '?'. */
  if (hosts == NULL && strchr(rest, '@') != NULL)
    return wrong(p, find(authority, ':') != NULL ? "password" : "user", BARE);
  if (hosts != NULL && !take_user(p, (span_t){text, hosts - 1}))
    return false;
  if (!take_hosts(p, (span_t){hosts != NULL ? hosts : text, rest}))
    return false;
  if (strchr(rest, '?') != NULL)
    return wrong(p, "query", "is for unix:// only");
  if (p->url->kind == BELAY__URL_SENTINEL)
    return take_master(p, rest[0] == '\0' ? rest : rest + 1);
  if (rest[0] == '\0' || rest[1] == '\0')
    return true;
  return take_db(p, until(rest + 1, ""));
}

/* [user[:password]@]/path[?db=n] */
static bool take_unix(parser_t *p, const char *text) {
  span_t authority = until(text, "/?");
  const char *path = after_last(authority, '@');
  if (path == NULL)
    path = text;
  else if (!take_user(p, (span_t){text, path - 1}))
    return false;
  span_t s = until(path, "?");
  if (*path != '/')
    return wrong(p, "path", "is not absolute");
  if (!decode(p, "path", s, "#", p->url->path, sizeof p->url->path))
    return false;
  if (p->url->path[strlen(p->url->path) - 1] == '/')
    return wrong(p, "path", "names a directory");
  if (*s.end == '\0')
    return true;
  const char *query = s.end + 1;
  if (!starts_with(query, "db=") || strchr(query, '&') != NULL)
    return wrong(p, "query", "is not db=number");
  return take_db(p, until(query + strlen("db="), ""));
}

static bool take_url(parser_t *p, const char *text) {
  static const struct {
    const char *scheme; /* after redis or rediss */
    belay__url_kind_t kind;
  } rows[] = {
      {"://", BELAY__URL_SINGLE},
      {"+replicas://", BELAY__URL_REPLICAS},
      {"+sentinel://", BELAY__URL_SENTINEL},
      {"+cluster://", BELAY__URL_CLUSTER},
  };
  if (strnlen(text, BELAY__URL_MAX + 1) > BELAY__URL_MAX)
    return wrong(p, "url", "is longer than 2048 bytes");
  p->url->is_unix = starts_with(text, "unix://");
  if (p->url->is_unix) {
    p->url->kind = BELAY__URL_SINGLE;
    return take_unix(p, text + strlen("unix://"));
  }
  p->url->tls = starts_with(text, "rediss");
  const char *rest = starts_with(text, "redis") ? text + (p->url->tls ? 6 : 5) : "";
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (starts_with(rest, rows[i].scheme)) {
      p->url->kind = rows[i].kind;
      return take_redis(p, rest + strlen(rows[i].scheme));
    }
  return wrong(p, "scheme",
               "is none of redis, rediss, unix, redis+replicas, redis+sentinel, redis+cluster");
}

int belay__url_parse(const char *text, belay__url_t *out, const char **part, const char **why) {
  parser_t p = {.url = out, .part = "", .why = ""};
  *out = (belay__url_t){0};
  bool good = take_url(&p, text);
  if (!good)
    *out = (belay__url_t){0};
  *part = p.part;
  *why = p.why;
  return good ? 0 : BELAY_EURL;
}

bool belay__place_set_host(belay__place_t *place, const char *host, size_t len) {
  if (len < 1 || len > BELAY__HOST_MAX || memchr(host, '\0', len) != NULL)
    return false;
  memcpy(place->host, host, len);
  place->host[len] = '\0';
  return true;
}

void belay__place_write(const belay__place_t *place, char *out, size_t size) {
  bool bare = strchr(place->host, ':') == NULL;
  (void)snprintf(out, size, bare ? "%s:%u" : "[%s]:%u", place->host, place->port);
}

bool belay__place_read(const char *text, belay__place_t *out) {
  const char *colon = strrchr(text, ':');
  size_t len = colon == NULL ? 0 : (size_t)(colon - text);
  bool bare = text[0] != '[';
  if (len < (bare ? 1 : 3) || (!bare && text[len - 1] != ']'))
    return false;
  len -= bare ? 0 : 2;
  int port = number((span_t){colon + 1, colon + 1 + strlen(colon + 1)});
  if (port < 1 || port > UINT16_MAX || !belay__place_set_host(out, text + !bare, len))
    return false;
  out->port = (uint16_t)port;
  return true;
}

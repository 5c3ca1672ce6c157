#include "redis/deployment/redirect.h"

#include <string.h>

#include "core/key/slot.h"

bool belay__redirect_read_host(const char *text, size_t len, const belay__place_t *here,
                               belay__place_t *out) {
  if (len == 0) {
    memcpy(out->host, here->host, sizeof out->host);
    return true;
  }
  return !(len == 1 && text[0] == '?') && belay__place_set_host(out, text, len);
}

/* Reads a number up to max. Returns the rest of the text; NULL if there is no number. */
static const char *read_number(const char *at, const char *end, unsigned max, unsigned *out) {
  const char *begin = at;
  for (*out = 0; at < end && *at >= '0' && *at <= '9' && *out <= max; at++)
    *out = 10 * *out + (unsigned)(*at - '0');
  return at == begin || *out > max ? NULL : at;
}

bool belay__redirect_parse(const belay__reply_t *reply, const belay__place_t *here,
                           belay__redirect_t *out) {
  const char *at = reply->str, *end = at + reply->len, *colon = NULL;
  unsigned slot, port;
  out->ask = reply->len > 4 && memcmp(at, "ASK ", 4) == 0;
  if (!out->ask && (reply->len < 6 || memcmp(at, "MOVED ", 6) != 0))
    return false;
  at = read_number(at + (out->ask ? 4 : 6), end, BELAY__SLOTS - 1, &slot);
  if (at == NULL || at == end || *at != ' ')
    return false;
  for (const char *p = ++at; p < end; p++)
    if (*p == ':')
      colon = p; /* the last: an IPv6 address has some of its own */
  if (colon == NULL || read_number(colon + 1, end, UINT16_MAX, &port) != end || port == 0)
    return false;
  out->slot = (uint16_t)slot;
  out->place.port = (uint16_t)port;
  return belay__redirect_read_host(at, (size_t)(colon - at), here, &out->place);
}

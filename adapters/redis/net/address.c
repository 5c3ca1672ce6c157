#include "redis/net/address.h"

#include <stdio.h>

#include "core/call/error_text.h"

const char *belay__place_words(const belay__place_t *place, char out[BELAY__TARGET_WORDS]) {
  char host[BELAY__TARGET_WORDS - 8]; /* brackets, a colon, a port, a 0 */
  belay__words(host, sizeof host, place->host, strlen(place->host));
  bool bare = strchr(place->host, ':') == NULL;
  snprintf(out, BELAY__TARGET_WORDS, bare ? "%s:%u" : "[%s]:%u", host, place->port);
  return out;
}

const char *belay__target_words(const belay__target_t *target, char out[BELAY__TARGET_WORDS]) {
  if (target->path == NULL)
    return belay__place_words(&target->place, out);
  static const char scheme[] = "unix:";
  memcpy(out, scheme, sizeof scheme - 1);
  belay__words(out + sizeof scheme - 1, BELAY__TARGET_WORDS - (sizeof scheme - 1), target->path,
               strlen(target->path));
  return out;
}

#include "redis/conn/cause.h"

#include <stdarg.h>
#include <stdio.h>

bool belay__link_is_lasting(int error) {
  return error == BELAY_EAUTH || error == BELAY_EPERM || error == BELAY_EREFUSED ||
         error == BELAY_ETLS;
}

int belay__link_unsent(int error) {
  bool vague =
      error == 0 || error == BELAY_EPROTO || error == BELAY_ENOMEM || error == BELAY_ESYSTEM;
  return vague ? BELAY_EUNREACHABLE : error;
}

void belay__link_blame(belay__link_t *link, const char *format, ...) {
  va_list args;
  if (link->blamed)
    return;
  link->blamed = true;
  va_start(args, format);
  (void)vsnprintf(link->cause, sizeof link->cause, format, args);
  va_end(args);
}

void belay__link_refuse_with(const belay__link_t *link, int error, const char *cause) {
  char place[BELAY__TARGET_WORDS], text[BELAY__WORDS_MAX];
  int n = snprintf(text, sizeof text, "%s: %s", belay__target_words(&link->target, place), cause);
  belay__client_refused(link->cable->trunk->client, error, text,
                        n < (int)sizeof text ? (size_t)n : sizeof text - 1);
}

void belay__link_explain(const belay__link_t *link, int error) {
  if (link->cause[0] != '\0')
    belay__link_refuse_with(link, error, link->cause);
}

/* A cause that is known from before is that of whoever ended the connection. */
void belay__link_blame_wire(belay__link_t *link, int error) {
  const belay__wire_t *wire = &link->wire;
  const belay__refused_t *refused = &link->cable->trunk->client->refused;
  if (wire->why != NULL)
    belay__link_blame(link, "%s", wire->why);
  else if (wire->reason != 0 && wire->error == 0)
    belay__link_blame(link, "%s", uv_strerror(wire->reason));
  else if (wire->reason == UV_ETIMEDOUT)
    belay__link_blame(link, "timed out: the handshake was not answered within %lld ms",
                      (long long)link->cable->trunk->connect_timeout_ms);
  else if (belay__link_is_up(link)) /* the server may have said why */
    belay__link_blame(link, "%s", refused->error == error ? refused->text : belay_strerror(error));
}

#include "redis/conn/cause.h"

#include <stdarg.h>
#include <stdio.h>

bool belay__error_is_lasting(int error) {
  return error == BELAY_EAUTH || error == BELAY_EPERM || error == BELAY_EREFUSED ||
         error == BELAY_ETLS;
}

int belay__unsent_error(int error) {
  bool vague =
      error == 0 || error == BELAY_EPROTO || error == BELAY_ENOMEM || error == BELAY_ESYSTEM;
  return vague ? BELAY_EUNREACHABLE : error;
}

void belay__connection_set_cause(belay__connection_t *connection, const char *format, ...) {
  va_list args;
  if (connection->cause_set)
    return;
  connection->cause_set = true;
  va_start(args, format);
  (void)vsnprintf(connection->cause, sizeof connection->cause, format, args);
  va_end(args);
}

void belay__connection_report(const belay__connection_t *connection, int error, const char *cause) {
  char place[BELAY__TARGET_WORDS], text[BELAY__WORDS_MAX];
  int n =
      snprintf(text, sizeof text, "%s: %s", belay__target_words(&connection->target, place), cause);
  belay__client_refused(connection->server->settings->client, error, text,
                        n < (int)sizeof text ? (size_t)n : sizeof text - 1);
}

void belay__connection_report_cause(const belay__connection_t *connection, int error) {
  if (connection->cause[0] != '\0')
    belay__connection_report(connection, error, connection->cause);
}

/* A cause that was set earlier wins: the code that closed the transport has set it. */
void belay__connection_set_transport_cause(belay__connection_t *connection, int error) {
  const belay__transport_t *transport = &connection->transport;
  const belay__refused_t *refused = &connection->server->settings->client->refused;
  if (transport->cause != NULL)
    belay__connection_set_cause(connection, "%s", transport->cause);
  else if (transport->system_error != 0 && transport->error == 0)
    belay__connection_set_cause(connection, "%s", uv_strerror(transport->system_error));
  else if (transport->system_error == UV_ETIMEDOUT)
    belay__connection_set_cause(
        connection, "timed out: the handshake was not answered within %lld ms",
        (long long)connection->server->settings->options.connect_timeout_ms);
  /* The last reply of the server may have said why. */
  else if (belay__connection_is_up(connection))
    belay__connection_set_cause(connection, "%s",
                                refused->error == error ? refused->text : belay_strerror(error));
}

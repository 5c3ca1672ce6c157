#include "redis/conn/auth.h"

#include <string.h>

#include "core/call/refusal.h"
#include "core/call/error_text.h"

#define CREDENTIAL_MAX ((size_t)65536) /* bytes of a username or a password */

static void explain(belay_client_t *client, int error, const char *words) {
  belay__client_refused(client, error, words, strlen(words));
}

static bool is_too_long(const char *text) {
  return text != NULL && strnlen(text, CREDENTIAL_MAX + 1) > CREDENTIAL_MAX;
}

/* Gets the credentials to send. Returns NULL, or the reason for which there are none. */
static const char *find(const belay__login_t *login, belay_credentials_t *out) {
  *out = (belay_credentials_t){login->username, login->password};
  if (login->credentials == NULL)
    return NULL;
  *out = (belay_credentials_t){NULL, NULL};
  if (login->credentials(login->credentials_ctx, out) != 0)
    return "the credentials function has failed";
  if (is_too_long(out->username))
    return "the credentials function: username: too long";
  if (is_too_long(out->password))
    return "the credentials function: password: too long";
  if (out->username != NULL && out->username[0] == '\0')
    out->username = NULL;
  if (out->username != NULL && out->password == NULL)
    out->password = "";
  return NULL;
}

int belay__auth_send(const belay__login_t *login, belay_client_t *client,
                     belay__transport_t *transport, redisCallbackFn *fn) {
  belay_credentials_t found;
  const char *reason = find(login, &found);
  if (reason != NULL) {
    explain(client, BELAY_EAUTH, reason);
    return BELAY_EAUTH;
  }
  if (found.password == NULL)
    return 0;
  const char *const with_user[] = {"AUTH", found.username, found.password};
  const char *const without[] = {"AUTH", found.password};
  bool user = found.username != NULL;
  belay__transport_command(transport, fn, NULL, user ? 3 : 2, user ? with_user : without);
  return 0;
}

/* Some servers do not know AUTH with these arguments and repeat them in the error. The password
 * is therefore removed from the text. */
void belay__auth_report(const belay__login_t *login, belay_client_t *client,
                        const belay__reply_t *reply, int error) {
  belay__redacted_t said;
  char text[BELAY__WORDS_MAX];
  belay__redacted_init(&said, reply->str, reply->len);
  if (login->password != NULL)
    belay__redacted_hide(&said, login->password, strlen(login->password));
  belay__client_refused(client, error, text, belay__redacted_write(&said, text));
}

int belay__auth_read(const belay__login_t *login, belay_client_t *client,
                     const belay__reply_t *reply) {
  if (belay__reply_is(reply, "OK", 2))
    return 0;
  if (reply->type != BELAY__REPLY_ERROR)
    return BELAY_EPROTO;
  int error = belay__refusal_find(reply->str, reply->len)->error;
  if (error != BELAY_EMAXCLIENTS)
    error = BELAY_EAUTH;
  /* Credentials of a callback are not kept, so they cannot be removed from the server's text. */
  if (login->credentials != NULL)
    explain(client, error, "AUTH was refused");
  else
    belay__auth_report(login, client, reply, error);
  return error;
}

#include "core/refusal.h"

#include <string.h>

#include "belay/error.h"

/* A lease treats every refusal of a renewal, release or undo that is not BELAY_EWRONGTYPE as indefinite,
 * and asks again until its deadline; a waiter goes on waiting after those that
 * belay_err_retryable() says may pass. */
static const belay__refusal_t table[] = {
    {"NOSCRIPT", BELAY_EREFUSED, BELAY__REMEDY_EVAL},
    {"TRYAGAIN", BELAY_ECLUSTERDOWN, BELAY__REMEDY_RETRY},
    {"CLUSTERDOWN", BELAY_ECLUSTERDOWN, BELAY__REMEDY_RETRY},
    {"MASTERDOWN", BELAY_ECLUSTERDOWN, BELAY__REMEDY_RETRY},
    {"LOADING", BELAY_ELOADING, BELAY__REMEDY_RETRY},
    {"BUSY", BELAY_ESCRIPTBUSY, BELAY__REMEDY_RETRY},
    {"READONLY", BELAY_EREADONLY, BELAY__REMEDY_RECONNECT},
    /* a WAIT, when a primary becomes a replica */
    {"UNBLOCKED", BELAY_EREADONLY, BELAY__REMEDY_RECONNECT},
    {"NOAUTH", BELAY_EAUTH, BELAY__REMEDY_RECONNECT},
    {"WRONGPASS", BELAY_EAUTH, BELAY__REMEDY_NONE},
    {"ERR invalid password", BELAY_EAUTH, BELAY__REMEDY_NONE},
    {"ERR AUTH", BELAY_EAUTH, BELAY__REMEDY_NONE},
    {"ERR Client sent", BELAY_EAUTH, BELAY__REMEDY_NONE}, /* before Redis 6 */
    {"DENIED", BELAY_EAUTH, BELAY__REMEDY_NONE},          /* protected mode */
    {"NOPERM", BELAY_EPERM, BELAY__REMEDY_NONE},
    {"ERR The user executing the script can't", BELAY_EPERM, BELAY__REMEDY_NONE},
    {"WRONGTYPE", BELAY_EWRONGTYPE, BELAY__REMEDY_NONE},
    {"ERR value is not an integer", BELAY_EWRONGTYPE, BELAY__REMEDY_NONE},
    {"ERR hash value is not an integer", BELAY_EWRONGTYPE, BELAY__REMEDY_NONE},
    {"ERR increment or decrement would overflow", BELAY_EOVERFLOW, BELAY__REMEDY_NONE},
    {"INVALIDOBJ", BELAY_EMISMATCH, BELAY__REMEDY_NONE}, /* a HyperLogLog that is damaged */
    {"CROSSSLOT", BELAY_ECROSSSLOT, BELAY__REMEDY_NONE},
    {"MOVED", BELAY_EMOVED, BELAY__REMEDY_REDIRECT},
    {"ASK", BELAY_EMOVED, BELAY__REMEDY_REDIRECT},
    {"OOM", BELAY_EOOM, BELAY__REMEDY_NONE},
    {"MISCONF", BELAY_EMISCONF, BELAY__REMEDY_NONE},
    {"NOREPLICAS", BELAY_ENOREPLICAS, BELAY__REMEDY_NONE},
    {"ERR max number of clients", BELAY_EMAXCLIENTS, BELAY__REMEDY_NONE},
    {"", BELAY_EREFUSED, BELAY__REMEDY_NONE},
};

/* Before Redis 7 an error that a command raises inside a script is wrapped:
 * "ERR Error running script (call to f_...): @user_script:1: @user_script: 1: -OOM command ...". */
static const char *unwrap(const char *text, size_t *len) {
  static const char wrapping[] = "ERR Error running script ", mark[] = "@user_script:";
  const size_t wrapping_len = sizeof wrapping - 1, mark_len = sizeof mark - 1;
  if (*len < wrapping_len || memcmp(text, wrapping, wrapping_len) != 0)
    return text;
  const char *end = text + *len, *inner = text;
  for (const char *p = text; (size_t)(end - p) >= mark_len; p++)
    if (memcmp(p, mark, mark_len) == 0)
      inner = p + mark_len;
  while (inner > text && inner < end && strchr(" 0123456789:-", *inner) != NULL)
    inner++;
  *len = (size_t)(end - inner);
  return inner;
}

const belay__refusal_t *belay__refusal_find(const char *text, size_t len) {
  text = unwrap(text, &len);
  const belay__refusal_t *row = table;
  for (;; row++) {
    size_t n = strlen(row->prefix);
    if (n == 0)
      return row;
    if (len >= n && memcmp(text, row->prefix, n) == 0 && (len == n || text[n] == ' '))
      return row;
  }
}

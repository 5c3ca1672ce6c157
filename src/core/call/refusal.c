#include "core/call/refusal.h"

#include <string.h>

#include "belay/error.h"

/* After a renewal, release or undo, a lease treats every refusal as indefinite, and sends the
 * command again until its deadline. Exception: BELAY_EWRONGTYPE for a lease with one key, which
 * shows that the key is not the lease's. A waiter stops if belay__refusal_is_lasting() is true.
 *
 * Inside a script, a server checks memory, disk, replicas and its own role before the script's
 * first write. The scripts of belay check their keys before they write. So rows with `false` mean
 * that nothing was written. Servers check permissions for each command, also after a write. */
static const belay__refusal_t table[] = {
    {"NOSCRIPT", BELAY_EREFUSED, BELAY__REMEDY_EVAL, false},
    {"TRYAGAIN", BELAY_ECLUSTERDOWN, BELAY__REMEDY_RETRY, false},
    {"CLUSTERDOWN", BELAY_ECLUSTERDOWN, BELAY__REMEDY_RETRY, false},
    {"MASTERDOWN", BELAY_ECLUSTERDOWN, BELAY__REMEDY_RETRY, false},
    {"LOADING", BELAY_ELOADING, BELAY__REMEDY_RETRY, false},
    {"BUSY", BELAY_ESCRIPTBUSY, BELAY__REMEDY_RETRY, false},
    {"READONLY", BELAY_EREADONLY, BELAY__REMEDY_RECONNECT, false},
    /* replies to WAIT: while the primary becomes a replica, and after that */
    {"UNBLOCKED", BELAY_EREADONLY, BELAY__REMEDY_RECONNECT, false},
    {"ERR WAIT cannot be used with replica", BELAY_EREADONLY, BELAY__REMEDY_RECONNECT, false},
    {"NOAUTH", BELAY_EAUTH, BELAY__REMEDY_REAUTH, false},
    {"WRONGPASS", BELAY_EAUTH, BELAY__REMEDY_NONE, false},
    {"ERR invalid password", BELAY_EAUTH, BELAY__REMEDY_NONE, false},
    {"ERR AUTH", BELAY_EAUTH, BELAY__REMEDY_NONE, false},
    {"ERR Client sent", BELAY_EAUTH, BELAY__REMEDY_NONE, false}, /* before Redis 6 */
    {"DENIED", BELAY_EAUTH, BELAY__REMEDY_NONE, false},          /* protected mode */
    {"NOPERM", BELAY_EPERM, BELAY__REMEDY_NONE, false},
    /* from inside a script: the first up to Redis 7.0, the second from later versions */
    {"ERR The user executing the script can't", BELAY_EPERM, BELAY__REMEDY_NONE, true},
    {"ERR ACL failure in script:", BELAY_EPERM, BELAY__REMEDY_NONE, true},
    {"WRONGTYPE", BELAY_EWRONGTYPE, BELAY__REMEDY_NONE, false},
    {"ERR Key should be of string type", BELAY_EWRONGTYPE, BELAY__REMEDY_NONE, false}, /* DELEX */
    {"ERR value is not an integer", BELAY_EWRONGTYPE, BELAY__REMEDY_NONE, false},
    {"ERR hash value is not an integer", BELAY_EWRONGTYPE, BELAY__REMEDY_NONE, false},
    {"ERR increment or decrement would overflow", BELAY_EOVERFLOW, BELAY__REMEDY_NONE, false},
    {"ERR the fencing number is used up", BELAY_EOVERFLOW, BELAY__REMEDY_NONE, false},
    {"INVALIDOBJ", BELAY_EMISMATCH, BELAY__REMEDY_NONE, false}, /* a damaged HyperLogLog */
    {"CROSSSLOT", BELAY_ECROSSSLOT, BELAY__REMEDY_NONE, false},
    {"MOVED", BELAY_EMOVED, BELAY__REMEDY_REDIRECT, false},
    {"ASK", BELAY_EMOVED, BELAY__REMEDY_REDIRECT, false},
    {"OOM", BELAY_EOOM, BELAY__REMEDY_NONE, false},
    {"MISCONF", BELAY_EMISCONF, BELAY__REMEDY_NONE, false},
    {"NOREPLICAS", BELAY_ENOREPLICAS, BELAY__REMEDY_NONE, false},
    {"ERR max number of clients", BELAY_EMAXCLIENTS, BELAY__REMEDY_NONE, false},
    {"ERR unknown command", BELAY_EREFUSED, BELAY__REMEDY_NONE,
     false}, /* the command was renamed on this server */
    {"", BELAY_EREFUSED, BELAY__REMEDY_NONE, true},
};

static const char mark[] = "@user_script:";
#define MARK_LEN (sizeof mark - 1)

/* Return the inner text of a wrapped error, or the text itself if it is not wrapped. Before Redis 7
 * an error that a command raises inside a script is wrapped: "ERR Error running script (call to
 * f_...): @user_script:1: @user_script: 1: -OOM command ...". An error of the script environment
 * itself has no code, such as ERR, then. */
static const char *unwrap(const char *text, size_t *len, bool *wrapped) {
  static const char wrapping[] = "ERR Error running script ";
  const size_t wrapping_len = sizeof wrapping - 1;
  *wrapped = *len >= wrapping_len && memcmp(text, wrapping, wrapping_len) == 0;
  if (!*wrapped)
    return text;
  const char *end = text + *len, *inner = text;
  for (const char *p = text; (p = memmem(p, (size_t)(end - p), mark, MARK_LEN)) != NULL;)
    inner = p += MARK_LEN;
  while (inner > text && inner < end && strchr(" 0123456789:-", *inner) != NULL)
    inner++;
  *len = (size_t)(end - inner);
  return inner;
}

/* true if the text begins with these words, as whole words. */
static bool begins(const char *text, size_t len, const char *words) {
  size_t n = strlen(words);
  return len >= n && memcmp(text, words, n) == 0 && (len == n || text[n] == ' ');
}

const belay__refusal_t *belay__refusal_find(const char *text, size_t len) {
  static const char code[] = "ERR ";
  bool wrapped;
  text = unwrap(text, &len, &wrapped);
  const belay__refusal_t *row = table;
  for (; row->prefix[0] != '\0'; row++) {
    bool bare = wrapped && strncmp(row->prefix, code, sizeof code - 1) == 0;
    if (begins(text, len, row->prefix) ||
        (bare && begins(text, len, row->prefix + sizeof code - 1)))
      break;
  }
  return row;
}

unsigned belay__refusal_line(const char *text, size_t len) {
  const char *at = memmem(text, len, mark, MARK_LEN), *end = text + len;
  unsigned line = 0;
  if (at == NULL)
    return 0;
  for (at += MARK_LEN; at < end && *at >= '0' && *at <= '9' && line < 100000; at++)
    line = 10 * line + (unsigned)(*at - '0');
  return line;
}

bool belay__refusal_is_lasting(int status) {
  return status < 0 && !belay_err_retryable(status) && status != BELAY_EUNKNOWN &&
         status != BELAY_EPROTO;
}

/* When contexts are due to have ended: sorted sets, in slots of their own. */
#include <string.h>

#include "core/key/key.h"
#include "data/session/session.h"
#include "scripts.gen.h"

uint32_t belay__session_shard_escaped(const char *escaped, size_t len) {
  return belay__key_hash(escaped, len) % BELAY__SESSION_SHARDS;
}

uint32_t belay__session_shard(const char *user, size_t len) {
  char escaped[3 * BELAY_SESSION_USER_MAX];
  return belay__session_shard_escaped(escaped, belay__key_escape(escaped, user, len));
}

void belay__session_due_arg(const belay_session_t *session, belay__call_t *call, uint32_t shard) {
  const char digits[2] = {(char)('0' + shard / 10), (char)('0' + shard % 10)};
  size_t skip = shard < 10;
  belay__handle_arg(&session->handle, call, digits + skip, 2 - skip, "}::due");
}

size_t belay__session_entry(char out[BELAY__SESSION_ENTRY_MAX], const void *id, size_t id_len,
                            const char *user, size_t user_len) {
  size_t at = 0;
  if (id_len >= 10)
    out[at++] = (char)('0' + id_len / 10);
  out[at++] = (char)('0' + id_len % 10);
  out[at++] = ':';
  memcpy(out + at, id, id_len);
  memcpy(out + at + id_len, user, user_len);
  return at + id_len + user_len;
}

bool belay__session_entry_read(const char *entry, size_t len, belay_session_ended_t *out) {
  size_t id_len = 0, at = 0;
  for (; at < len && at < 2 && entry[at] >= '0' && entry[at] <= '9'; at++)
    id_len = 10 * id_len + (size_t)(entry[at] - '0');
  if (at >= len || entry[at] != ':' || entry[0] == '0' || id_len < 1 ||
      id_len > BELAY_SESSION_ID_MAX)
    return false;
  at++;
  if (len - at <= id_len || len - at - id_len > BELAY_SESSION_USER_MAX)
    return false;
  *out = (belay_session_ended_t){.user = entry + at + id_len,
                                 .user_len = len - at - id_len,
                                 .id = entry + at,
                                 .id_len = id_len};
  return true;
}

belay__call_t *belay__session_index(const belay_session_t *session, uint32_t shard,
                                    const char *mode, size_t n) {
  belay__call_t *call = belay__call_new(session->handle.client, BELAY__LANE_DATA);
  if (call == NULL)
    return NULL;
  belay__call_script(call, &belay__script_session_index, 1, 2 + 2 * n);
  belay__session_due_arg(session, call, shard);
  belay__call_arg_int(call, session->notice_keep_ms);
  belay__call_arg(call, mode, strlen(mode));
  return call;
}

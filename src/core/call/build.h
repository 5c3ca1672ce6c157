/* Building a call: its memory, its arguments, scripts as text or as hash; and reading the
 * arguments back. */
#ifndef BELAY_CORE_CALL_BUILD_H
#define BELAY_CORE_CALL_BUILD_H

#include "core/call/error_text.h"
#include "core/call/state.h"

/* Take a call from the pool; NULL if memory is out. Before sending it, set call->route, and
 * call->deadline if it differs from the client's timeout_ms. */
belay__call_t *belay__call_new(belay_client_t *client, belay__conn_class_t conn_class);

/* The functions that add arguments do nothing if the call is NULL. The function that sends the call
 * then returns BELAY_ENOMEM. */

/* Begin a command of argc arguments (its name included), or a script with this number of keys and
 * other arguments. The script is sent as its hash. If its text was not sent on the connection
 * before, belay__call_bring_script() puts the text into the call. */
void belay__call_command(belay__call_t *call, const char *name, size_t argc);
void belay__call_script(belay__call_t *call, const belay__script_t *script, size_t keys,
                        size_t args);
/* Begin a script as belay__call_script() does, but always with the script's text. For a call that
 * another call must follow: after a NOSCRIPT, such a call cannot be sent again with the text. */
void belay__call_script_text(belay__call_t *call, const belay__script_t *script, size_t keys,
                             size_t args);

/* For the node, before it hands over a call: put the text of a script into the call if the text was
 * not sent on this connection before. Otherwise a script that the server does not know needs a
 * second round trip, and later calls overtake the call. brought: the scripts whose text was sent on
 * this connection; the function adds this script. */
void belay__call_bring_script(belay__call_t *call, belay__scripts_t *brought);

/* Add one argument. The second function makes it from two pieces. */
void belay__call_arg(belay__call_t *call, const char *data, size_t len);
void belay__call_arg_joined(belay__call_t *call, const char *a, size_t a_len, const char *b,
                            size_t b_len);
void belay__call_arg_text(belay__call_t *call, const char *text); /* with a terminating 0 */
void belay__call_arg_int(belay__call_t *call, int64_t value);
void belay__call_arg_uint(belay__call_t *call, uint64_t value);

/* For a call that only reads and may get slightly old data: allow a replica to answer it, if
 * read_from of the client permits replicas. call may be NULL. Returns call. */
belay__call_t *belay__call_stale(belay__call_t *call);

/* State that the command needs a feature that some servers lack, and for which a fallback exists.
 * If the server does not know the command or one of its options, or the user may not run it,
 * call->denied is set in `done`. The client then does not use the feature until this connection
 * ends. Other refusals, such as OOM, do not set it. */
void belay__call_needs(belay__call_t *call, belay__capability_t what);

/* Return the first key of a script call; of another command, the first argument. NULL: no key. */
const char *belay__call_key(const belay__call_t *call, size_t *len);

/* Return the slot of the call: that of its first key, or of the route if the call has no key. */
uint16_t belay__call_slot(const belay__call_t *call);

/* The parts of a script call, for the code that sends several calls as one command. They are in
 * the wire format and valid until the call changes. */
typedef struct belay__call_parts {
  const char *keys, *args;
  size_t keys_len, args_len;
  size_t keys_count, args_count;
} belay__call_parts_t;

belay__call_parts_t belay__call_parts(const belay__call_t *call);

/* Copy the command and all arguments of `original`, which is not broken, into a call that has none
 * yet. */
void belay__call_repeat(belay__call_t *call, const belay__call_t *original);

/* Create the same command again, to be sent alone. Call this inside `done`. The copy has the
 * same deadline, route and owner. The caller sets `done`. NULL if memory is out. */
belay__call_t *belay__call_copy(const belay__call_t *call);

/* A lean call has its command only until the command is handed to a connection. Its owner, a lease,
 * builds the command again (client->extension->rebuild) in the rare case that the call is sent
 * again, or that a text about it is made. So few buffers serve many calls.
 *
 * Make a call lean that has an owner. The command of the call may be gone when this returns. */
void belay__call_lean(belay__call_t *call);

/* Build the command again if it is gone. The call can then be sent again. Returns false if memory
 * is out, or if the call is no longer lean because it has another owner. */
bool belay__call_restore(belay__call_t *call);

/* ---- for call.c ---- */

/* Give a call back to the pool. */
void belay__call_recycle(belay__call_t *call);

/* Return the call, or a copy with its arguments if the command of the call is gone. The caller
 * gives a copy back by belay__call_recycle(). NULL in the cases in which belay__call_restore()
 * returns false. */
belay__call_t *belay__call_readable(belay__call_t *call);

/* true for a script with more than one key. */
bool belay__call_has_keys(const belay__call_t *call);

/* Hide the call's arguments where the server's text repeats them. but_keys: do not hide keys that
 * begin with the client's namespace. */
void belay__call_redact(const belay__call_t *call, belay__redacted_t *redacted, bool but_keys);

/* Replace the script's hash with its text. Returns false if memory is out, or if
 * belay__call_restore() returns false. */
bool belay__call_become_eval(belay__call_t *call);

/* Free the client's pool of calls. */
void belay__call_pool_free(belay_client_t *client);

#endif /* BELAY_CORE_CALL_BUILD_H */

/* How a call is made, up to when it is sent: memory, words, scripts by their text or their hash; and what its words say. */
#ifndef BELAY_CORE_CALL_BUILD_H
#define BELAY_CORE_CALL_BUILD_H

#include "core/call/error_text.h"
#include "core/call/state.h"

/* Takes a call from the pool; NULL if memory is out. Set call->route, and call->deadline if it
 * is not the client's timeout_ms, before it is sent. */
belay__call_t *belay__call_new(belay_client_t *client, belay__conn_class_t conn_class);

/* The functions that add words do nothing if the call is NULL. So an operation builds its call without a check of each
 * step, and hands it to a function that starts a request, which returns BELAY_ENOMEM. */

/* Begins a command of argc words (its name included), or a script with that many keys and other arguments: by its
 * hash, unless it is the first on its connection (belay__call_bring_script()). */
void belay__call_command(belay__call_t *call, const char *name, size_t argc);
void belay__call_script(belay__call_t *call, const belay__script_t *script, size_t keys,
                        size_t args);
/* The same with the script's text in any case, for a call that is followed: it could not fall back to it later. */
void belay__call_script_text(belay__call_t *call, const belay__script_t *script, size_t keys,
                             size_t args);

/* For the node, before it hands over a call: of a script whose text has not gone over this connection yet it has the text
 * in it from now on. One that the server does not know would need a second trip, and a call behind it would overtake it.
 * brought: of the connection, nothing at its beginning. */
void belay__call_bring_script(belay__call_t *call, belay__scripts_t *brought);

/* Adds one argument; and one that is made of two pieces. */
void belay__call_arg(belay__call_t *call, const char *data, size_t len);
void belay__call_arg_joined(belay__call_t *call, const char *a, size_t a_len, const char *b,
                            size_t b_len);
void belay__call_arg_text(belay__call_t *call, const char *text); /* terminated */
void belay__call_arg_int(belay__call_t *call, int64_t value);
void belay__call_arg_uint(belay__call_t *call, uint64_t value);

/* It only reads, and what is a little old will do: a replica may answer it, if the client wants that. NULL, which it may
 * be given, or the call. */
belay__call_t *belay__call_stale(belay__call_t *call);

/* The command is one that not every server has, and there is another way. If it is refused because of that, call->denied
 * is set in done: the user may not run it, or it came to another server than it was made for. Then it is not used any more
 * while that connection lasts. */
void belay__call_needs(belay__call_t *call, belay__capability_t what);

/* The first key of a script that was called; of another command the first word behind its name. NULL: it has no key. */
const char *belay__call_key(const belay__call_t *call, size_t *len);

/* The slot that it belongs to: its first key's; of one that has none, the route's. */
uint16_t belay__call_slot(const belay__call_t *call);

/* The words of another call, which is not broken, for a call that has none yet. */
void belay__call_repeat(belay__call_t *call, const belay__call_t *said);

/* The same command again, to be sent by itself, from inside done: with its deadline, route, owner and settled;
 * done is to be set. NULL if memory is out. */
belay__call_t *belay__call_copy(const belay__call_t *call);

/* ---- for call.c ---------------------------------------------------------------------------------------- */

/* Gives a call back to the pool. */
void belay__call_recycle(belay__call_t *call);

/* It is a script that was given more than one. */
bool belay__call_has_keys(const belay__call_t *call);

/* Hides what a server repeats of its arguments; but_keys: not keys of our own. */
void belay__call_hide(const belay__call_t *call, belay__said_t *said, bool but_keys);

/* Puts the script's text in the place of its hash; false if memory is out. */
bool belay__call_become_eval(belay__call_t *call);

/* Frees the client's pool of calls. */
void belay__call_pool_free(belay_client_t *client);

#endif /* BELAY_CORE_CALL_BUILD_H */

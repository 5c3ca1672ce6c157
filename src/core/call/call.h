/* A call: one command on its way to a server and back.
 *
 *    new --> BUILDING --send--> QUEUED --handed to a connection--> SENT --reply--> over
 *                                ^  ^|                              |||
 *     RESTING --time to retry----+  |+--deadline: NOT_SENT--> over  ||+--drop--> UNKNOWN, over;
 *        ^                          +--MOVED, ASK, five times-------+|           if no byte left:
 *        +--temporary refusal, deadline ahead------------------------+           QUEUED again
 *                                                                    |
 *                     deadline: UNKNOWN, then LATE <-----------------+
 *                                              +--reply or drop--> over
 *
 * `done` is called once after a successful send, unless the call is abandoned before. It is called
 * again when a LATE call ends, but only if the call got an owner again (belay__call_own()). When
 * the call is over and the last callback has returned, the call goes back to its client's pool. No
 * callback is called inside belay__call_send(). */
#ifndef BELAY_CORE_CALL_CALL_H
#define BELAY_CORE_CALL_CALL_H

#include "core/call/build.h"
#include "core/call/state.h"

/* Report that the value at a key of the call is not valid: the client's last refusal becomes
 * `error`, with "KEY: TEXT". The first function uses the call's first key. Both return error. */
int belay__call_blame(const belay__call_t *call, int error, const char *text);
int belay__call_blame_key(const belay__call_t *call, const char *key, size_t key_len, int error,
                          const char *text, size_t text_len);

/* Send n calls, all or none. joined: the calls follow each other on one connection, with no other
 * call between them. If a call has a place, *call->place becomes the call. Returns 0, BELAY_ENOMEM
 * (also if a call is broken), BELAY_EBUSY or another error of node_ops->submit. On an error no
 * callback runs, and all calls go back to the pool. */
int belay__call_send(belay__call_t **calls, size_t n, bool joined);

/* *place is the owner's pointer to its call. It is NULL before the call is started:
 *
 *    NULL --start--> the call --it ends--> NULL, then done is called
 *                      |  ^ |--cancel--> NULL; no callback runs
 *                      |  +--own (another place)
 *                      +--own (from another place)--> NULL
 *
 * A LATE call has no place any more: its owner was notified of UNKNOWN. belay__call_own() gives
 * the call a place again. Then the new `done` runs when the late reply arrives, or when the
 * connection is lost. */

/* Send one call. call: NULL if memory was out. Returns as belay__call_send() does. */
int belay__call_start(belay__call_t **place, belay__call_t *call, belay__call_cb done, void *owner);

/* Transfer a call that was sent, or is LATE, to another owner. A lean call is then no longer sent
 * again. */
void belay__call_own(belay__call_t **place, belay__call_t *call, belay__call_cb done, void *owner);

/* Abandon the call in *place, if any (belay__call_abandon()), and set *place to NULL. Returns true
 * if the server may have executed the call, or may still execute it. */
bool belay__call_cancel(belay__call_t **place);

/* Drop the callback of a call: `done` will not run, and the call is not retried.
 * Returns as belay__call_cancel() does. */
bool belay__call_abandon(belay__call_t *call);

/* Give back n calls that were not sent; some may be NULL. */
void belay__calls_discard(belay__call_t *const *calls, size_t n);

/* End all resting calls with their last refusal, because the client closes. */
void belay__call_end_rests(belay_client_t *client);

/* Shorten the rest of all resting calls: a new connection is up, so a retry may succeed. */
void belay__call_hurry_rests(belay_client_t *client);

/* Report, inside `done`, that the caller cannot read the reply. The connection is
 * dropped after an unreadable reply to a plain command, and after a nil or a status as the reply
 * to a script, because no script replies with these. Any other reply of a script depends on the
 * content of its keys and says nothing about the connection: then only this call fails. */
void belay__call_distrust(belay__call_t *call, const belay__reply_t *reply);

/* ---- for the node ---- */

/* Report that a call was handed to the connection with this number. */
void belay__call_sent(belay__call_t *call, uint32_t epoch);

/* Check whether the reply refuses the feature that the call needs, and set call->denied. Call this
 * before belay__call_reply(). Returns the bit 1 << belay__capability_t of the feature that the
 * connection lacks from now on; 0: none. */
unsigned belay__call_denied(belay__call_t *call, const belay__reply_t *reply);

/* Pass on the reply to a call. */
belay__verdict_t belay__call_reply(belay__call_t *call, const belay__reply_t *reply);

/* After BELAY__VERDICT_REDIRECT, for the call and all calls that must follow it, once the server
 * has answered them too.
 *
 * - belay__call_may_redirect(): true if the call may go to another server. Restores a lean call.
 * - belay__call_redirect(): the call is QUEUED again, as if it had not been sent. The node sends
 *   the call to the other server.
 * - belay__call_stay(): the call does not go to another server and ends with `error`. With
 *   BELAY_ECLUSTERDOWN, the call rests first if it may be retried and there is time. reply: the
 *   cause, or NULL. */
bool belay__call_may_redirect(belay__call_t *call);
void belay__call_redirect(belay__call_t *call);
void belay__call_stay(belay__call_t *call, const belay__reply_t *reply, int error);

/* Report that the connection of a call is gone. sent: true if a byte of the call may have left.
 * Returns true if no byte left and the call is not LATE: queue the call again. Otherwise the call
 * is over: UNKNOWN if it was sent, else NOT_SENT, with BELAY_EPROTO if that is `error`, else
 * BELAY_EUNKNOWN. */
bool belay__call_dropped(belay__call_t *call, bool sent, int error);

/* End a queued call as NOT_SENT: the deployment refuses all calls for a lasting reason, the server
 * of a call with fail_fast is away, or the call before it, which it must follow, is not sent. */
void belay__call_refused(belay__call_t *call, int error);

#endif /* BELAY_CORE_CALL_CALL_H */

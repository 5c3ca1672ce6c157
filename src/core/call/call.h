/* A call: one command on its way to a server and back.
 *
 *   new --args--> BUILDING --send--> QUEUED --handed to a connection--> SENT --reply--> over
 *                                     ^  |                              |  |
 *          RESTING --time to retry----+  +--deadline: NOT_SENT--> over  |  +--drop--> UNKNOWN, over;
 *             ^                      ^                                 |  |           or back to QUEUED
 *             +--------a refusal that may pass, deadline ahead---------+  |           if not a byte left
 *                                    +--MOVED, ASK: five times in a row---+
 *                                                                      |
 *                                        deadline: UNKNOWN, then LATE -+--reply or drop--> settled, over
 *
 * done is called exactly once, settled at most once and after it. When the last of them has returned the call
 * goes back to its client's pool. Neither is called inside belay__call_send(). */
#ifndef BELAY_CORE_CALL_CALL_H
#define BELAY_CORE_CALL_CALL_H

#include "core/call/build.h"
#include "core/call/state.h"

/* What is kept at that key is not what it must be: makes text, behind the key, the detail of the error, which is
 * returned. */
int belay__call_blame(const belay__call_t *call, int error, const char *text);
/* The same of another of its keys. */
int belay__call_blame_key(const belay__call_t *call, const char *key, size_t key_len, int error,
                          const char *text, size_t text_len);

/* Sends n calls, all or none, on one connection: contiguous there. Sets call->place where a call has one. On an error
 * nothing was sent, none of them calls back, and all are given back to the pool. Returns 0, BELAY_ENOMEM, BELAY_EBUSY or a
 * lasting error of the deployment, such as BELAY_EAUTH. */
int belay__call_send(belay__call_t **calls, size_t n);
/* The same for calls none of which belongs behind another. */
int belay__call_send_separately(belay__call_t **calls, size_t n);

/* A call that has an owner, and the owner's pointer to it (*place, which is NULL before):
 *
 *   NULL --start--> the call --it ends--> NULL, then done is called
 *                     |  ^ |--cancel--> NULL; nothing is called
 *                     |  +--own (another place)
 *                     +--own (from another place)--> NULL
 *
 * A LATE call has no place any more: its owner was notified of UNKNOWN. belay__call_own() gives it a
 * place again; then done runs with the late reply. */

/* Sends one call; NULL: memory was out. Returns as belay__call_send() does. */
int belay__call_start(belay__call_t **place, belay__call_t *call, belay__call_cb done, void *owner);

/* Makes a call that was sent another owner's. */
void belay__call_own(belay__call_t **place, belay__call_t *call, belay__call_cb done, void *owner);

/* Abandons the call that is there, if there is one. Returns true if the server may have executed it, or still may. */
bool belay__call_cancel(belay__call_t **place);

/* The caller is not interested any more: neither done nor settled will be called, no retry and no
 * fallback is made. Returns true if the server may have executed the call, or still may. */
bool belay__call_abandon(belay__call_t *call);

/* Gives back n calls that were not sent; some may be NULL. */
void belay__calls_discard(belay__call_t *const *calls, size_t n);

/* The client closes: what rests is over. */
void belay__call_end_rests(belay_client_t *client);

/* There is a new connection, and so reason to hope: what rests does not rest for long any more. */
void belay__call_hurry_rests(belay_client_t *client);

/* The caller cannot read the reply. A plain command's reply then comes from a connection that cannot be trusted, and so
 * does a nil or a status to a script, since no script replies these: the connection is dropped. What else a script
 * replies is made of what its keys hold, and says nothing about the connection: only this call fails. Is called from
 * inside done or settled. */
void belay__call_distrust(belay__call_t *call, const belay__reply_t *reply);

/* ---- for the node --------------------------------------------------------------------------------------- */

/* A call was handed to the connection of that number. */
void belay__call_sent(belay__call_t *call, uint32_t epoch);

/* For the node, before belay__call_reply(): what the connection counts as unable to do from now on, a bit of a
 * belay__capability_t; 0: nothing new. */
unsigned belay__call_denied(belay__call_t *call, const belay__reply_t *reply);

/* Its reply came. */
belay__verdict_t belay__call_reply(belay__call_t *call, const belay__reply_t *reply);

/* After BELAY__VERDICT_REDIRECT, for it and all that belong behind it, when they have been answered too: whether it may
 * go elsewhere; it does, and is as if it had not been sent; or it does not, with that error. With BELAY_ECLUSTERDOWN it is
 * tried again later where it may be and there is time, else it is over. reply: which tells why, or NULL. */
bool belay__call_may_redirect(const belay__call_t *call);
void belay__call_redirect(belay__call_t *call);
void belay__call_stay(belay__call_t *call, const belay__reply_t *reply, int error);

/* Its connection is gone, or will never be. If no byte of the call left and its caller still waits, it is to
 * be queued again and true is returned; else it is over, and error says why. */
bool belay__call_dropped(belay__call_t *call, bool sent, int error);

/* The deployment refuses every call for a lasting reason: a queued call is over. */
void belay__call_refused(belay__call_t *call, int error);

#endif /* BELAY_CORE_CALL_CALL_H */

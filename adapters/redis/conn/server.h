/* A server: all connections of a client to it (a cable), opened and closed together. */
#ifndef BELAY_REDIS_CONN_SERVER_H
#define BELAY_REDIS_CONN_SERVER_H

#include "redis/conn/state.h"

/* Makes a cable with its links and its listener, in one piece of memory; its target is to be set. NULL: memory is out. */
belay__cable_t *belay__cable_new(belay__trunk_t *trunk, size_t lane_links);

void belay__cable_free(belay__cable_t *cable);

/* For a cable that gets no more calls: closes the links that nothing is under way on; the others end with the last answer,
 * and lost() is told. True if no connection and no handle is left: then its memory may be given back. */
bool belay__cable_drain(belay__cable_t *cable);

/* The link for calls of that lane and affinity. */
belay__link_t *belay__cable_link(const belay__cable_t *cable, belay__lane_t lane,
                                 uint32_t affinity);

size_t belay__cable_links_up(const belay__cable_t *cable);

/* A server that owes an answer for that time may not be well, and calls go elsewhere where they can. */
#define BELAY__SILENCE_MS UINT64_C(250)

/* Whether a connection owes an answer for ms milliseconds, by belay__link_owes(). */
bool belay__cable_owes(const belay__cable_t *cable, uint64_t ms);
/* The same for BELAY__SILENCE_MS, by belay__link_is_silent(). */
bool belay__cable_is_silent(belay__cable_t *cable);

/* For who reads from replicas. Connects, so that it can be read from. */
void belay__cable_want(belay__cable_t *cable);
/* Whether what only reads may be asked there now: it is connected, has been found to be what it must be, and is not
 * silent. */
bool belay__cable_reads(const belay__cable_t *cable, belay__lane_t lane, uint32_t affinity);

/* What find() was to find out: 0 with the target set, or an error. */
void belay__cable_found(belay__cable_t *cable, int error);

/* Those that wait before they try again need not wait any longer: there is reason to hope. */
void belay__cable_hurry(belay__cable_t *cable);

/* Its connections lead to a server that is not the right one any more: they end before the loop sleeps. cause: in
 * words. */
void belay__cable_leave(belay__cable_t *cable, int error, const char *cause);
/* The server is to be used for something else from now on: those that carry calls end when they have been answered. */
void belay__cable_renew(belay__cable_t *cable);

/* ---- all servers of a client --------------------------------------------------------------------------- */

size_t belay__trunk_links_up(const belay__trunk_t *trunk);

/* Whether all servers that the client is connected to can do that, retired ones aside; false while there is none. */
bool belay__trunk_can(belay__trunk_t *trunk, belay__capability_t what);

/* Ends all connections at once. They are over when belay__trunk_is_over(). */
void belay__trunk_close(belay__trunk_t *trunk);
bool belay__trunk_is_over(const belay__trunk_t *trunk);
void belay__trunk_free(belay__trunk_t *trunk);

#endif /* BELAY_REDIS_CONN_SERVER_H */

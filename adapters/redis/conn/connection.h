/* A link: the place of one connection to one server, which is made, lost and made again. connection.c has the
 * diagram. */
#ifndef BELAY_REDIS_CONN_CONNECTION_H
#define BELAY_REDIS_CONN_CONNECTION_H

#include "redis/conn/state.h"

void belay__link_init(belay__link_t *link, belay__cable_t *cable, bool extra);

/* 0, BELAY_EBUSY, or the error of a link that is REFUSED. */
int belay__link_submit(belay__link_t *link, belay__call_t *const *calls, size_t n);
int belay__link_withdraw(belay__link_t *link, belay__call_t *call);

/* The error with which it would not take n more calls; 0: it would. */
int belay__link_admits(const belay__link_t *link, bool urgent, size_t n);
/* Queues a call that was queued before: there is no limit for it, and if it can be queued no more it is refused. */
void belay__link_adopt(belay__link_t *link, belay__call_t *call);

/* For a call with fail_fast: 0; or the server is away, and the error with which the call ends in place of being queued.
 * Then the link connects, unless it tries already. */
int belay__link_fail_fast(belay__link_t *link);

/* What the cable is told (redis/conn/server.h). */
void belay__link_found(belay__link_t *link, int error);
void belay__link_hurry(belay__link_t *link);
void belay__link_leave(belay__link_t *link, int error, const char *cause);
void belay__link_drain(belay__link_t *link, int error, const char *cause);

/* Drops the connection, if it is the one of that number. */
void belay__link_distrust(belay__link_t *link, uint32_t epoch);

/* Ends everything at once. The link is over when belay__link_is_over(). */
void belay__link_close(belay__link_t *link);
bool belay__link_is_over(const belay__link_t *link);
/* Gives back what it still has; called last. */
void belay__link_fini(belay__link_t *link);

/* Connects, unless it does or waits until it may, although no call asks for it. */
void belay__link_want(belay__link_t *link);

/* What follows is for a link that listens. One that is REFUSED: there is reason to try again at once. */
void belay__link_try_again(belay__link_t *link);
/* Nobody needs the connection any more. Not in a callback of the wire's. */
void belay__link_retire(belay__link_t *link);

#endif /* BELAY_REDIS_CONN_CONNECTION_H */

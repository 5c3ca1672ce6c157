/* What a get is served: from which place, and what its caller is told. The table of this process, as the options want it. */
#ifndef BELAY_CACHE_SERVE_H
#define BELAY_CACHE_SERVE_H

#include "cache/state.h"

/* Puts it into the table of this process, if there is one; by a stamp that was taken before the server was asked, at
 * `asked`. NULL: the server has nothing that is good, and what the table has goes. */
void belay__cache_store_local(belay_cache_t *cache, const char *key, size_t key_len,
                              belay__record_t *record, const belay__stamp_t *stamp,
                              uint64_t asked_at);

/* Listens to what others invalidate, if there is a table, unless it does. */
void belay__cache_subscribe(belay_cache_t *cache);

typedef struct belay__served {
  belay__record_t
      *record; /* NULL: there is nothing; whoever keeps one of these says whose reference it is */
  int32_t status; /* as in belay_cache_result_t, as are the others */
  int32_t reason;
  int32_t load_error;
  uint8_t from; /* belay_cache_from_t */
  bool stale;
} belay__served_t;

/* A record, served as what it is; reason: why it is, though it is not fresh; or 0. */
belay__served_t belay__cache_serve(belay__record_t *record, belay_cache_from_t from, bool stale,
                                   int reason, int load_error);
/* Nothing, and why. */
belay__served_t belay__cache_refuse(int status, int load_error);

/* The server could not be asked, and that is not the key's fault. */
bool belay__cache_is_outage(int status);
/* true if there is a policy for that, so that what a get asks does not wait for a server that is away. */
bool belay__cache_fails_fast(const belay_cache_t *cache);
/* What is served then, if options.away allows it and there is something; the table's reference. */
belay__served_t belay__cache_serve_in_outage(belay_cache_t *cache, const char *key, size_t key_len,
                                             int status);

/* What the table of this process has fresh: true, and it is counted; the table's reference. */
bool belay__cache_serve_local(belay_cache_t *cache, const char *key, size_t key_len, uint64_t now,
                              belay__served_t *served);

/* Somebody is served; at_once: he had not to wait. */
void belay__cache_count(belay_cache_t *cache, const belay__served_t *served, bool without_wait);

/* As the caller is told. */
void belay__cache_result(const belay_cache_t *cache, const belay__served_t *served, uint64_t now,
                         belay_cache_result_t *result);

#endif /* BELAY_CACHE_SERVE_H */

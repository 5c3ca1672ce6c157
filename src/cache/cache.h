/* belay_cache_t: what all of the cache shares.
 *
 *   get.c, get_many.c --lookup.c--> is it there?        write.c  put, touch, invalidate
 *       | no, or not fresh                        keep_fresh.c     what is refreshed ahead of time
 *   waiters.c: who waits in which flight             local.c   the table of this process
 *       |                                         record.c  what is kept, and how it is written
 *       v                                         xfetch.c   how good it is
 *   single_flight.c: one for each key: the way to a value
 *       |      \--load_steps.c--> the filter, the lease, the generation, the limiter
 *       v
 *   loader.c: the caller's loader */
#ifndef BELAY_CACHE_CACHE_H
#define BELAY_CACHE_CACHE_H

#include "cache/xfetch.h"
#include "cache/local.h"
#include "core/client/channel.h"
#include "core/client/handle.h"
#include "core/client/server_time.h"

struct belay_cache {
  belay__family_t family;        /* first */
  belay_cache_options_t options; /* resolved; its name is not kept */
  belay__fresh_terms_t terms;
  belay__servertime_t time;
  belay__local_t local;
  belay__ear_t ear; /* hears what is invalidated elsewhere */
  belay__table_t flights;
  belay__table_t pins;
  belay__list_t pinned;
  belay__list_t ready;    /* flights whose loads begin next; loader.c's */
  belay__list_t together; /* the same, by load_many */
  belay__task_t task;     /* begins them */
  size_t away_loads;      /* under way */
  belay_cache_stats_t stats;
};

/* ---- keys and calls (cache/key.c) ------------------------------------------------------------------------ */

#define BELAY__CACHE_GENERATION "}::gen"
#define BELAY__CACHE_LEASE "}::lease"
#define BELAY__CACHE_TAG "}::tag"
#define BELAY__CACHE_DROPPED "}::dropped" /* the channel; its key is '' */
#define BELAY__CACHE_FILLED "::filled"    /* the channel of a key, behind its whole name */

/* A key of the cache's as it is on the server: bytes of belay__alloc(), *len of them; NULL if memory is out. */
char *belay__cache_key(const belay_cache_t *cache, const char *key, size_t key_len,
                       const char *tail, size_t *len);

/* A call of n words; or a script, with its two keys, record and generation, added. NULL: memory is out. */
belay__call_t *belay__cache_command(const belay_cache_t *cache, const char *name, size_t n);
belay__call_t *belay__cache_script(const belay_cache_t *cache, const belay__script_t *script,
                                   const char *key, size_t key_len, size_t args);

/* Its tags, as options.tags says; at most BELAY_CACHE_TAGS_MAX, too long ones cut. */
size_t belay__cache_tags(const belay_cache_t *cache, const char *key, size_t key_len,
                         belay_bytes_t tags[BELAY_CACHE_TAGS_MAX]);

/* The call that asks for a tag's generation, and makes it if there is none; for what is fresh for ttl_ms, or BELAY_DEFAULT.
 * Its generation is drawn here: it is not sent twice. */
belay__call_t *belay__cache_capture(const belay_cache_t *cache, const belay_bytes_t *tag,
                                    int64_t ttl_ms);

/* A fresh generation; or 0s of what is nowhere: 0 or BELAY_ESYSTEM. */
int belay__cache_generation(const belay_cache_t *cache, unsigned char out[BELAY__RECORD_ID]);

/* For how long a generation is good. */
int64_t belay__cache_generation_ms(const belay_cache_t *cache);

/* Whether there is a loader. */
static inline bool belay__cache_loads(const belay_cache_t *cache) {
  return cache->options.load != NULL || cache->options.load_many != NULL;
}

/* ---- life (cache/cache.c) --------------------------------------------------------------------------------- */

/* The server's clock at a time of the host's; 0 if it is not known. And when the loop woke us, belay__turn(): when what is
 * judged now was here. */
int64_t belay__cache_ms_at(const belay_cache_t *cache, uint64_t now);
int64_t belay__cache_now_ms(const belay_cache_t *cache);

/* Sets when the record is stored and until when it is fresh, ttl_ms (BELAY_DEFAULT: the options', by its kind) less the
 * jitter from now. Returns for how long the server is to keep it. */
int64_t belay__cache_date(belay_cache_t *cache, belay__record_t *record, int64_t ttl_ms);

/* Puts it into the table of this process, if there is one; by a stamp that was taken before the server was asked, at
 * `asked`. NULL: the server has nothing that is good, and what the table has goes. */
void belay__cache_keep_local(belay_cache_t *cache, const char *key, size_t key_len,
                             belay__record_t *record, const belay__stamp_t *stamp, uint64_t asked);

/* Listens to what others invalidate, if there is a table, unless it does. */
void belay__cache_listen(belay_cache_t *cache);

/* When a get that begins now is over; and when its calls are, which is earlier if there is time to do something else. */
void belay__cache_deadlines(const belay_cache_t *cache, belay__pending_t *pending, uint64_t now,
                            uint64_t *deadline);

/* ---- what a get came to --------------------------------------------------------------------------------------- */

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
bool belay__cache_is_away(int status);
/* true if there is a policy for that, so that what a get asks does not wait for a server that is away. */
bool belay__cache_fails_fast(const belay_cache_t *cache);
/* What is served then, if options.away allows it and there is something; the table's reference. */
belay__served_t belay__cache_serve_away(belay_cache_t *cache, const char *key, size_t key_len,
                                        int status);

/* What the table of this process has fresh: true, and it is counted; the table's reference. */
bool belay__cache_serve_local(belay_cache_t *cache, const char *key, size_t key_len, uint64_t now,
                              belay__served_t *served);

/* Somebody is served; at_once: he had not to wait. */
void belay__cache_count(belay_cache_t *cache, const belay__served_t *served, bool at_once);

/* As the caller is told. */
void belay__cache_result(const belay_cache_t *cache, const belay__served_t *served, uint64_t now,
                         belay_cache_result_t *result);

#endif /* BELAY_CACHE_CACHE_H */

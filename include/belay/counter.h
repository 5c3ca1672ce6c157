/* Counters: numbers that many add to. */
#ifndef BELAY_COUNTER_H
#define BELAY_COUNTER_H

#include <stdbool.h>

#include "belay/request.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Counters, any number of them, each a key of its own: a whole number of 64 bits with a sign, INT64_MIN to INT64_MAX,
 * exact in all of that range, 0 where there is none. Or a group of them: a hash, of which each field is one. A key is
 * one or the other.
 *
 * What would leave the range is BELAY_EOVERFLOW, and nothing is changed.
 *
 * An add whose answer was lost may or may not have happened: it is not sent again, and ends with BELAY_EUNKNOWN. One
 * that has an operation id is sent again until its time is over, and counts once.
 *
 * A counter that very many add to at once can be spread over shards: keys of their own, in slots of their own. And what
 * is added very often can be summed up here first (belay_counter_add_local()).
 *
 * @code
 * static void on_view(belay_request_t *request, int status, const belay_counter_result_t *result) {
 *   (void)request;
 *   if (status == 0)
 *     printf("seen %lld times\n", (long long)result->value);
 * }
 *
 * int count_view(belay_counter_t *counter, belay_request_t *request, const char *view_id, size_t len) {
 *   return belay_counter_add_once(counter, request, belay_string("page::7"), 1,
 *                                 belay_bytes(view_id, len), on_view);
 * }
 * @endcode */
typedef struct belay_counter belay_counter_t;

#define BELAY_COUNTER_KEY_MAX ((size_t)1024)  /**< bytes of a key */
#define BELAY_COUNTER_FIELD_MAX ((size_t)256) /**< bytes of a field's name */
#define BELAY_COUNTER_OP_ID_MAX ((size_t)64)  /**< bytes of an operation's id */
#define BELAY_COUNTER_OPS_MAX 10000000        /**< the largest max_ops */
#define BELAY_COUNTER_MANY_MAX 65536  /**< keys, or keys times shards, or fields, in one request */
#define BELAY_COUNTER_FIELDS_MAX 4096 /**< fields that are added to in one step */
#define BELAY_COUNTER_SHARDS_MAX 256  /**< of one counter */

/** Something that was added by belay_counter_add_local(), and will not be sent any more. */
typedef struct belay_counter_loss {
  const char *key; /**< its; valid until the callback returns */
  size_t key_len;  /**< bytes of it */
  int64_t amount;  /**< the sum of what was added */
  int status; /**< why: the server's refusal; BELAY_EUNKNOWN: no answer for too long; BELAY_ECANCELED: all was closed */
  bool maybe; /**< it was sent, and may have been counted all the same; false: it was not */
} belay_counter_loss_t;

/** Tells of one, on the loop, never inside a call into belay. It may call anything, a close too. */
typedef void (*belay_counter_lost_cb)(belay_counter_t *counter, void *data,
                                      const belay_counter_loss_t *loss);

/** Options; belay_counter_options_init() sets the defaults. */
typedef struct belay_counter_options {
  /** Part of the keys, NAMESPACE::counter::NAME::{KEY}; at most 128 bytes; copied. Default: no name,
   * and keys are NAMESPACE::counter::{KEY}. */
  belay_bytes_t name;
  /** For how long a counter lives: 1 to 31,536,000,000. Default 0: for ever, since what it counts is the user's data.
   * It is set in the step that creates the key: no key is ever there without it. */
  int64_t ttl_ms;
  /** The ttl begins again with each add; default false: it is counted from the creation, by an add or a set. A get
   * does not extend_ttl it. Not without ttl_ms. */
  bool extend_ttl;
  /** For how long an operation id is known after the add, in milliseconds: 1,000 to 31,536,000,000;
   * default an hour. It is longer if the request may be sent again for longer: timeout_ms of the
   * request, plus 1 %, plus 2 ms. */
  int64_t op_ttl_ms;
  /** Records of operations that a counter has at most: 0 to BELAY_COUNTER_OPS_MAX. Default 0: no
   * limit, and each record is a key of its own beside the counter
   * (its key, and behind that once and the id), for op_ttl_ms: 10 adds per second leave 36,000 keys
   * in an hour.
   *
   * More than 0: all records of a counter (of each shard) are in one hash beside it
   * (its key, and ops behind that), which lives until its last record is op_ttl_ms old. An
   * add drops records that are older than that, oldest first, and never a younger one: where
   * max_ops younger records exist, the add ends with BELAY_EBUSY, and nothing is added. So choose
   * more than the adds with an id that come in op_ttl_ms. A record takes some 200 bytes.
   *
   * All who share a counter have the same: an operation is looked for only where this says. */
  int64_t max_ops;
  /** Keys that one counter is spread over, 1 to BELAY_COUNTER_SHARDS_MAX; default 1. All who share a counter must say
   * the same: who says less does not see all of it. More of them than 1: the keys are
   * NAMESPACE::counter::NAME::{KEY::SHARD}, each with a ttl of its own. An add goes to one of them, in turn; one with
   * an operation id to the one that its id says. A get sums them up. */
  unsigned shards;
  /** What is added locally is sent so long after the first add: 1 to 60,000; default 100. */
  int64_t batch_ms;
  /** And no later than after so many adds, as soon as the loop turns: at least 1; default 0: only time counts. */
  int64_t batch_max;
  size_t max_keys; /**< keys that have something to be sent: 1 to 1,000,000; default 10,000 */
  belay_counter_lost_cb on_lost; /**< may be NULL */
  void *data;                    /**< belay_counter_data() */
} belay_counter_options_t;

BELAY_API void belay_counter_options_init(belay_counter_options_t *options);

/** Sends nothing. Returns 0, BELAY_EINVAL, BELAY_ENOMEM, BELAY_ESYSTEM, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_counter_new(belay_client_t *client, const belay_counter_options_t *options,
                                belay_counter_t **out);

/** The result of an operation, or of one of many. If status is not 0, all the rest is 0. */
typedef struct belay_counter_result {
  int status; /**< as that of belay_counter_cb, for this key or field alone */
  bool
      applied; /**< of an add, a set: it was done. A bounded add that would leave its bounds was not */
  bool found; /**< of a get, a set, a delete: it was there */
  int64_t
      value; /**< after an add, or as it is; of a set: before it; 0 if it was not there, or status is not 0 */
} belay_counter_result_t;

/** A callback of the shape of belay/request.h; result->status is status. status:
 *
 *   0                    the server answered
 *   BELAY_EOVERFLOW      the number would leave its range, or a sum of shards has left it: nothing was changed
 *   BELAY_EUNREACHABLE   nothing was sent (also BELAY_ERESOLVE, BELAY_ENOMEM)
 *   BELAY_EBUSY          nothing was sent, since too much is pending; or, of an add with an
 *                        operation id, max_ops records exist: nothing was added
 *   BELAY_EUNKNOWN       sent, and not answered: it may have been executed. Gets are sent again until their deadline,
 *                        and so are adds with an operation id. Nothing else is: other adds, sets, deletes
 *   BELAY_ECANCELED      belay_request_cancel() or a close
 *   BELAY_EWRONGTYPE     the key is no counter (or no group of them), and was left alone; belay_detail() names it
 *   BELAY_EMISMATCH      of an add with an operation id: that operation added something else, or what is known of it
 *                        is garbage; nothing was changed. Of a set: it was done; what was there before was no number
 *   another error        the server's refusal, such as BELAY_EOOM */
typedef void (*belay_counter_cb)(belay_request_t *request, int status,
                                 const belay_counter_result_t *result);

/** The results of many, in the order in which they were asked for; n is as asked for, whatever the status. status is 0 if all went
 * well; else BELAY_EUNKNOWN if that is one of them, or the first that came. Each has a status of its own. */
typedef void (*belay_counter_many_cb)(belay_request_t *request, int status,
                                      const belay_counter_result_t *results, size_t n);

/* All operations that follow return 0, BELAY_EINVAL, BELAY_ESTATE (the request is pending), BELAY_EBUSY, BELAY_ENOMEM,
 * BELAY_ECLOSING or BELAY_EFORK. A key has 1 to BELAY_COUNTER_KEY_MAX bytes. Everything is copied. */

/** Adds delta, any number. Of a counter with shards, value is that of one shard. Not sent again. */
BELAY_API int belay_counter_add(belay_counter_t *counter, belay_request_t *request,
                                belay_bytes_t key, int64_t delta, belay_counter_cb cb);

/** The range of a value: min to max, both included. */
typedef struct belay_counter_bounds {
  int64_t min; /**< the lowest value */
  int64_t max; /**< the highest value, at least min */
} belay_counter_bounds_t;

/** Adds delta if the value after it is from min to max, in one step, or nothing: applied says which, value is as it is
 * then. A value that was out of bounds before can only be brought back in. What would overflow is out of bounds. Not
 * sent again. Not with shards: no shard knows the others (BELAY_EINVAL). */
BELAY_API int belay_counter_add_bounded(belay_counter_t *counter, belay_request_t *request,
                                        belay_bytes_t key, int64_t delta,
                                        const belay_counter_bounds_t *bounds, belay_counter_cb cb);

/** Adds delta, unless an operation with that id (1 to BELAY_COUNTER_OP_ID_MAX bytes, unique among
 * those on this key within op_ttl_ms) has done it: then value is what the first one was told. Sent
 * again.
 *
 * Each operation leaves a key for op_ttl_ms, by default for an hour; with the option max_ops the
 * operations of a counter share one key. The same goes for each sum of belay_counter_add_local().
 *
 * What a server forgets before that time because it evicts keys, or because its clock steps
 * forward, may be added twice; what it loses in a failover or a restart it loses together with the
 * add, so that to say the same id again makes it right. An overflow is not remembered. A delete or
 * a set of the counter forgets no operation. BELAY_EBUSY: max_ops records exist, and nothing was
 * added. */
BELAY_API int belay_counter_add_once(belay_counter_t *counter, belay_request_t *request,
                                     belay_bytes_t key, int64_t delta, belay_bytes_t op_id,
                                     belay_counter_cb cb);

/** Of a counter with shards, value is their sum. It is no snapshot: what is added meanwhile may be in it or not, and of
 * two such adds the later one may be in it without the earlier one. Sent again. A replica may answer (read_from). */
BELAY_API int belay_counter_get(belay_counter_t *counter, belay_request_t *request,
                                belay_bytes_t key, belay_counter_cb cb);

/** Replaces the value by another one, and the ttl by the handle's; a set to 0 reads and resets in one step. Not sent
 * again: what others have added since would be lost. With a ttl it needs Redis 6.2. Not with shards (BELAY_EINVAL). */
BELAY_API int belay_counter_set(belay_counter_t *counter, belay_request_t *request,
                                belay_bytes_t key, int64_t value, belay_counter_cb cb);

/** Removes it, or the whole group, whatever the key holds. Of a counter with shards each is removed for itself, so that
 * something added meanwhile may be left; found: at least one was there. Not sent again. */
BELAY_API int belay_counter_delete(belay_counter_t *counter, belay_request_t *request,
                                   belay_bytes_t key, belay_counter_cb cb);

/* ---- many keys ------------------------------------------------------------------------------------------- */

/** An add to one of many keys; or to one of many fields. */
typedef struct belay_counter_add_item {
  belay_bytes_t key;   /**< of the counter, or the field's name */
  int64_t delta;       /**< what to add */
  belay_bytes_t op_id; /**< its operation id; NULL: it has none. Not for fields */
} belay_counter_add_item_t;

/** Adds to n keys (1 to BELAY_COUNTER_MANY_MAX) in one round trip. Each add is done by itself: some may be, and others
 * not. The same key may come more than once. If each has an operation id, those whose answer is lost are sent again;
 * else none is. */
BELAY_API int belay_counter_add_many(belay_counter_t *counter, belay_request_t *request,
                                     const belay_counter_add_item_t *items, size_t n,
                                     belay_counter_many_cb cb);

/** Reads n keys in one round trip: 1 to BELAY_COUNTER_MANY_MAX divided by the shards. No snapshot of all of them. Sent
 * again. A replica may answer (read_from). */
BELAY_API int belay_counter_get_many(belay_counter_t *counter, belay_request_t *request,
                                     const belay_bytes_t *keys, size_t n, belay_counter_many_cb cb);

/* ---- many counters in one key ---------------------------------------------------------------------------- */

/* A field's name has 1 to BELAY_COUNTER_FIELD_MAX bytes, any. The ttl is that of all of them together. Not with shards
 * (BELAY_EINVAL). */

/** Adds delta to a field. Not sent again. */
BELAY_API int belay_counter_add_field(belay_counter_t *counter, belay_request_t *request,
                                      belay_bytes_t key, belay_bytes_t field, int64_t delta,
                                      belay_counter_cb cb);

/** Adds to n fields (1 to BELAY_COUNTER_FIELDS_MAX, each another one, and no more than one for each 256 bytes of the
 * client's max_reply) in one step: to all of them or to none. Not sent again. */
BELAY_API int belay_counter_add_fields(belay_counter_t *counter, belay_request_t *request,
                                       belay_bytes_t key, const belay_counter_add_item_t *items,
                                       size_t n, belay_counter_many_cb cb);

/** Reads one field. Sent again. A replica may answer (read_from). */
BELAY_API int belay_counter_get_field(belay_counter_t *counter, belay_request_t *request,
                                      belay_bytes_t key, belay_bytes_t field, belay_counter_cb cb);

/** Reads n fields in one step: 1 to BELAY_COUNTER_MANY_MAX, and no more than one for each 256 bytes of the
 * client's max_reply. Sent again. A replica may answer (read_from). */
BELAY_API int belay_counter_get_fields(belay_counter_t *counter, belay_request_t *request,
                                       belay_bytes_t key, const belay_bytes_t *fields, size_t n,
                                       belay_counter_many_cb cb);

/** A field of a group. */
typedef struct belay_counter_field {
  const char *name; /**< any bytes, and a 0 behind them */
  size_t name_len;  /**< without that */
  int64_t value;    /**< as it is */
} belay_counter_field_t;

/** All fields, in no order. n is 0 if there are none, or status is not 0. */
typedef void (*belay_counter_all_cb)(belay_request_t *request, int status,
                                     const belay_counter_field_t *fields, size_t n);

/** Reads all fields in one step, if they are no more than max (1 to BELAY_COUNTER_MANY_MAX) and fit into the client's
 * max_reply, where each takes some 400 bytes and twice its name; else the status is BELAY_EOVERFLOW, and belay_detail()
 * says how many there are. Sent again. A replica may answer (read_from). */
BELAY_API int belay_counter_get_all(belay_counter_t *counter, belay_request_t *request,
                                    belay_bytes_t key, size_t max, belay_counter_all_cb cb);

/** Removes n fields (1 to BELAY_COUNTER_MANY_MAX); value: how many were there. Not sent again. */
BELAY_API int belay_counter_delete_fields(belay_counter_t *counter, belay_request_t *request,
                                          belay_bytes_t key, const belay_bytes_t *fields, size_t n,
                                          belay_counter_cb cb);

/* ---- what is added here first ---------------------------------------------------------------------------- */

/** Adds delta here, and sends nothing: what was added to a key within batch_ms is sent as one sum, some hundred keys in
 * one round trip, and keeps the loop alive until it is answered. Each sum has an operation id: it counts once, however
 * often it has to be sent. While a key's sum is not answered, what is added to it waits for the next one.
 *
 * What can be lost: when the process is killed, the adds of the last batch_ms, and what is on the way then may have been
 * counted or not. While no server answers, everything since then is only here, and sent when one does; a sum that was
 * sent and not answered is sent again for op_ttl_ms, after which the server might not know it any more. What the server
 * refuses for good, and what is not answered in the end, is told to on_lost. belay_counter_close() sends what there is,
 * and waits for the answers for at most the client's close_timeout_ms; what is left then is told too. A sum whose
 * operation id was evicted may count twice; one that a server confirms, and loses in a failover, is missing.
 *
 * Returns 0, BELAY_EINVAL, BELAY_EOVERFLOW (the sum would leave its range: nothing is added), BELAY_EBUSY (max_keys
 * others have something to be sent), BELAY_ENOMEM, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_counter_add_local(belay_counter_t *counter, belay_bytes_t key, int64_t delta);

/** Sends what there is as soon as the loop turns; of a key whose sum is on the way, when that is answered. Returns 0, BELAY_EINVAL, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_counter_flush(belay_counter_t *counter);

/** Figures of what was added locally, since the handle was made unless they say "now". */
typedef struct belay_counter_stats {
  uint64_t adds;    /**< that were accepted */
  uint64_t sums;    /**< that were sent, each once */
  uint64_t resends; /**< of sums that had not been answered */
  uint64_t counted; /**< sums that are known to have been counted */
  uint64_t lost;    /**< sums that on_lost was or would have been told of */
  size_t keys;      /**< now: that have something to be sent, or on the way */
} belay_counter_stats_t;

BELAY_API void belay_counter_stats(const belay_counter_t *counter, belay_counter_stats_t *out);

BELAY_API void *belay_counter_data(const belay_counter_t *counter);

/** Runs once when belay_counter_close() is through. data: see CLOSING in belay/loop.h. */
typedef void (*belay_counter_close_cb)(belay_counter_t *counter, void *data);

/** Ends it, in any callback: what is pending ends with BELAY_ECANCELED; what was added locally is sent. cb may be NULL.
 *
 * Returns 0, BELAY_EINVAL, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_counter_close(belay_counter_t *counter, belay_counter_close_cb cb);

#ifdef __cplusplus
}
#endif

#endif /* BELAY_COUNTER_H */

/* Counters: 64-bit numbers to which many programs add. */
#ifndef BELAY_COUNTER_H
#define BELAY_COUNTER_H

#include <stdbool.h>

#include "belay/request.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Counters: any number of them, each with its own key. A counter is a signed 64-bit number, exact
 * from INT64_MIN to INT64_MAX. A counter that does not exist is 0. A key can also hold a group of
 * counters instead: a hash, of which each field is a counter.
 *
 * Use it for page views, stock, quotas and other sums. To count different users, use
 * belay/active.h. To bound a rate, use belay/limiter.h.
 *
 *   - An add that would leave the range ends with BELAY_EOVERFLOW and changes nothing.
 *   - An add whose reply is lost may or may not have happened. It is not retried and ends with
 *     BELAY_EUNKNOWN.
 *   - An add with an operation id (belay_counter_add_once()) is retried until its deadline and
 *     counts once.
 *   - A counter with very many concurrent adds can have several shards: keys in different slots of
 *     a cluster.
 *   - Very frequent adds can be summed in this process first (belay_counter_add_local()).
 *
 * @code
 * static void on_view(belay_request_t *request, int status, const belay_counter_result_t *result) {
 *   (void)request;
 *   if (status == 0)
 *     printf("seen %lld times\n", (long long)result->value);
 * }
 *
 * int count_view(belay_counter_t *counter, belay_request_t *request, belay_bytes_t view_id) {
 *   return belay_counter_add_once(counter, request, belay_string("page::7"), 1, view_id, on_view);
 * }
 * @endcode */
typedef struct belay_counter belay_counter_t;

#define BELAY_COUNTER_KEY_MAX ((size_t)1024)  /**< bytes of a key */
#define BELAY_COUNTER_FIELD_MAX ((size_t)256) /**< bytes of a field's name */
#define BELAY_COUNTER_OP_ID_MAX ((size_t)64)  /**< bytes of an operation id */
#define BELAY_COUNTER_OPS_MAX 10000000        /**< largest max_ops */
#define BELAY_COUNTER_MANY_MAX 65536          /**< keys times shards, or fields, in one request */
#define BELAY_COUNTER_FIELDS_MAX 4096         /**< fields of one belay_counter_add_fields() */
#define BELAY_COUNTER_SHARDS_MAX 256          /**< shards of a counter */

/** A sum of belay_counter_add_local() that will not be sent any more. */
typedef struct belay_counter_loss {
  /** Key of the counter, not terminated. Valid until the callback returns. */
  const char *key;
  /** Length of the key, in bytes. */
  size_t key_len;
  /** Sum of the adds that are lost. */
  int64_t amount;
  /** Reason: the server's refusal; BELAY_EUNKNOWN if the sum was retried in vain, as
   * belay_counter_add_local() describes; BELAY_ECANCELED if the handle was closed. */
  int status;
  /** true if the sum was sent and may have been counted. false: it was not counted. */
  bool maybe;
} belay_counter_loss_t;

/** Reports a lost sum of belay_counter_add_local(), once per sum. It runs on the loop, never inside
 * a call of the program. It may call any function, also a close. data is options.data. loss is
 * valid until it returns. */
typedef void (*belay_counter_lost_cb)(belay_counter_t *counter, void *data,
                                      const belay_counter_loss_t *loss);

/** Options; belay_counter_options_init() sets the defaults. */
typedef struct belay_counter_options {
  /** Name of the counters, 0 to 128 bytes; copied. It is part of the keys:
   * NAMESPACE::counter::NAME::{KEY}. Default: no name, the keys are NAMESPACE::counter::{KEY}. */
  belay_bytes_t name;
  /** Lifetime of a counter after its creation, in milliseconds: 1 to 31,536,000,000. It is set in
   * the step that creates the key. Default 0: no end, because a count is data of the program. */
  int64_t ttl_ms;
  /** true if each add starts ttl_ms again. Default false: ttl_ms counts from the creation by an add
   * or a set. A get never extends it. Requires ttl_ms. */
  bool extend_ttl;
  /** Time that the server remembers an operation id after the add, in milliseconds: 1,000 to
   * 31,536,000,000. It is longer if the request may be retried for longer: timeout_ms of the
   * request, plus 1 %, plus 2 ms. Default 3,600,000, an hour. */
  int64_t op_ttl_ms;
  /** Maximum number of operation records of a counter, or of a shard: 0 to BELAY_COUNTER_OPS_MAX.
   * It must be the same in all programs that share a counter, because a record is searched only in
   * one of the two places below.
   *
   * Default 0: no limit. Each record is a key of its own (the counter's key, "once" and the id)
   * with a lifetime of op_ttl_ms. 10 adds per second leave 36,000 keys in an hour.
   *
   * More than 0: the records of a counter are in one hash (the counter's key and "ops"), about 200
   * bytes each. An add removes records older than op_ttl_ms. If max_ops younger records exist, it
   * ends with BELAY_EBUSY and adds nothing. */
  int64_t max_ops;
  /** Number of keys over which a counter is spread, 1 to BELAY_COUNTER_SHARDS_MAX. Default 1. It
   * must be the same in all programs that share a counter: a program with fewer shards sees only a
   * part of it.
   *
   * With more than 1 the keys are NAMESPACE::counter::NAME::{KEY::SHARD}, each with its own ttl.
   * Adds use the shards in turn. An add with an operation id uses the shard that the id determines.
   * A get returns the sum. */
  unsigned shards;
  /** Local adds: time from the first add until the sums are sent, in milliseconds: 1 to 60,000.
   * Default 100. */
  int64_t batch_ms;
  /** Local adds: number of adds after which sums are sent in the next iteration of the loop, even
   * before batch_ms. Default 0: only batch_ms counts. */
  int64_t batch_max;
  /** Local adds: maximum number of keys with a sum that is not sent or not answered, 1 to
   * 1,000,000. Default 10,000. */
  size_t max_keys;
  /** Local adds: reports lost sums. Default NULL: not reported. */
  belay_counter_lost_cb on_lost;
  /** Pointer of the caller, returned by belay_counter_data(). Default NULL. */
  void *data;
} belay_counter_options_t;

/** Set all options to their defaults. */
BELAY_API void belay_counter_options_init(belay_counter_options_t *options);

/** Make a handle. It sends nothing to the server.
 *
 * Returns 0, BELAY_EINVAL (belay_detail() names the option), BELAY_ENOMEM, BELAY_ESYSTEM (no random
 * bytes), BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_counter_new(belay_client_t *client, const belay_counter_options_t *options,
                                belay_counter_t **out);

/** Result of an operation on a counter, or of one part of an operation on many. If status is not 0,
 * all other fields are 0 or false. */
typedef struct belay_counter_result {
  /** 0 or an error of this counter, as listed at belay_counter_cb. */
  int status;
  /** true if an add, a set or a delete was done. false for a get, and for a bounded add that would
   * leave its bounds. */
  bool applied;
  /** true if the counter existed before a get, a set or a delete. */
  bool found;
  /** Value of the counter: after an add; before a set; now, otherwise. 0 if there is no counter. */
  int64_t value;
} belay_counter_result_t;

/** Receives the result of an operation; result->status is status. It runs exactly once, on the
 * loop, never inside the call that started the operation. It may call any function, also reuse the
 * request or close the handle. result is valid until it returns. status:
 *
 *   0                    the server answered
 *   BELAY_EOVERFLOW      the value would leave its range, and nothing was changed; or a sum of
 *                        shards is out of range
 *   BELAY_EUNREACHABLE   nothing was sent (also BELAY_ERESOLVE, BELAY_ENOMEM)
 *   BELAY_EBUSY          nothing was sent, because too much is pending; or, of an add with an
 *                        operation id, max_ops records exist and nothing was added
 *   BELAY_EUNKNOWN       sent and not answered; it may have been executed. Each function says
 *                        whether it is retried
 *   BELAY_ECANCELED      belay_request_cancel() or a close
 *   BELAY_EWRONGTYPE     the key holds no counter, or no group of counters; it was not changed.
 *                        belay_detail() names the key
 *   BELAY_EMISMATCH      of an add with an operation id: the operation added another amount, or its
 *                        record is damaged; nothing was changed. Of a set: it was done, and the
 *                        value before it was not a number
 *   another error        the server's refusal, such as BELAY_EOOM */
typedef void (*belay_counter_cb)(belay_request_t *request, int status,
                                 const belay_counter_result_t *result);

/** Receives the results of an operation on many counters, in the order of the arguments; n is
 * always their number. Each result has its own status. status is 0 if all of them are 0;
 * BELAY_EUNKNOWN if one of them is BELAY_EUNKNOWN; otherwise the first error that arrived. The
 * rules of belay_counter_cb apply. */
typedef void (*belay_counter_many_cb)(belay_request_t *request, int status,
                                      const belay_counter_result_t *results, size_t n);

/* ---- one key ----
 *
 * All functions with a request return 0, BELAY_EINVAL, BELAY_ESTATE (the request is pending),
 * BELAY_EBUSY, BELAY_ENOMEM, BELAY_ECLOSING or BELAY_EFORK. After an error the callback does not
 * run. A key has 1 to BELAY_COUNTER_KEY_MAX bytes. Arguments are copied. */

/** Add delta, any number. With shards, result->value is the value of one shard. Not retried.
 *
 * Adds to one key of one handle that begin in the same iteration of the loop are sent as one
 * command, their sum, if their deltas have the same sign and their requests the same timeout. Each
 * gets the value that it would have got alone, in the order in which they began. If the sum
 * overflows, they are sent one by one. The same is true for bounded adds of equal deltas and
 * bounds. If the reply is lost, all of them end with BELAY_EUNKNOWN. */
BELAY_API int belay_counter_add(belay_counter_t *counter, belay_request_t *request,
                                belay_bytes_t key, int64_t delta, belay_counter_cb cb);

/** Bounds of a value. */
typedef struct belay_counter_bounds {
  int64_t min; /**< lowest allowed value */
  int64_t max; /**< highest allowed value; at least min */
} belay_counter_bounds_t;

/** Add delta in one step if the new value is within the bounds; otherwise change nothing.
 * result->applied is true if delta was added, result->value is the value afterwards. A value that
 * is out of bounds can only be brought back within them. An overflow counts as out of bounds. Not
 * retried.
 *
 * BELAY_EINVAL with shards, because no shard knows the sum. */
BELAY_API int belay_counter_add_bounded(belay_counter_t *counter, belay_request_t *request,
                                        belay_bytes_t key, int64_t delta,
                                        const belay_counter_bounds_t *bounds, belay_counter_cb cb);

/** Add delta once per operation id. If an operation with this id has already added it, nothing is
 * added and result->value is the value of the first reply. op_id: 1 to BELAY_COUNTER_OP_ID_MAX
 * bytes, unique among the operations on this key within op_ttl_ms. Retried if the reply is lost.
 *
 * The record of an operation lives for options.op_ttl_ms; options.max_ops says where. The same is
 * true for each sum of belay_counter_add_local().
 *
 *   - If the server loses a record earlier, by eviction or because its clock steps forward, the add
 *     can count twice.
 *   - If a failover or restart loses a record, it loses the add too. A call with the same id adds
 *     it again.
 *   - An add that ended with BELAY_EOVERFLOW leaves no record.
 *   - A delete or a set of the counter keeps its records. */
BELAY_API int belay_counter_add_once(belay_counter_t *counter, belay_request_t *request,
                                     belay_bytes_t key, int64_t delta, belay_bytes_t op_id,
                                     belay_counter_cb cb);

/** Read a counter. With shards, result->value is their sum. The sum is not a snapshot: it may
 * include a concurrent add and lack an earlier one. Retried if the reply is lost. A replica may
 * answer (belay_client_options_t.read_from). */
BELAY_API int belay_counter_get(belay_counter_t *counter, belay_request_t *request,
                                belay_bytes_t key, belay_counter_cb cb);

/** Replace the value, and set the ttl to options.ttl_ms. result->value is the value before, so a
 * set to 0 reads and resets in one step. Not retried, because a retry could overwrite later adds.
 * With a ttl it needs Redis 6.2.
 *
 * BELAY_EINVAL with shards. */
BELAY_API int belay_counter_set(belay_counter_t *counter, belay_request_t *request,
                                belay_bytes_t key, int64_t value, belay_counter_cb cb);

/** Delete the key, a counter or a whole group, whatever it holds. With shards each one is deleted
 * by itself, so a concurrent add may stay; result->found is true if at least one existed. Not
 * retried. */
BELAY_API int belay_counter_delete(belay_counter_t *counter, belay_request_t *request,
                                   belay_bytes_t key, belay_counter_cb cb);

/* ---- many keys ---- */

/** One add of belay_counter_add_many() or belay_counter_add_fields(). */
typedef struct belay_counter_add_item {
  /** Key of the counter, or name of the field. */
  belay_bytes_t key;
  /** Number to add. */
  int64_t delta;
  /** Operation id of this add, 1 to BELAY_COUNTER_OP_ID_MAX bytes. NULL: none. Must be NULL for a
   * field. */
  belay_bytes_t op_id;
} belay_counter_add_item_t;

/** Add to n keys (1 to BELAY_COUNTER_MANY_MAX) in one round trip. Each add is done by itself: some
 * may succeed and others fail. A key may occur several times. If every item has an operation id,
 * adds whose reply is lost are retried; otherwise none is. */
BELAY_API int belay_counter_add_many(belay_counter_t *counter, belay_request_t *request,
                                     const belay_counter_add_item_t *items, size_t n,
                                     belay_counter_many_cb cb);

/** Read n keys in one round trip: 1 to BELAY_COUNTER_MANY_MAX divided by options.shards. The values
 * are not a snapshot. Retried if a reply is lost. A replica may answer
 * (belay_client_options_t.read_from). */
BELAY_API int belay_counter_get_many(belay_counter_t *counter, belay_request_t *request,
                                     const belay_bytes_t *keys, size_t n, belay_counter_many_cb cb);

/* ---- many counters in one key ----
 *
 * A group is a hash; each field is a counter. A field's name has 1 to BELAY_COUNTER_FIELD_MAX bytes
 * of any value. All fields of a group have one ttl. With shards these functions return
 * BELAY_EINVAL. */

/** Add delta to a field. Not retried. */
BELAY_API int belay_counter_add_field(belay_counter_t *counter, belay_request_t *request,
                                      belay_bytes_t key, belay_bytes_t field, int64_t delta,
                                      belay_counter_cb cb);

/** Add to n different fields in one step: to all of them or to none. n: 1 to
 * BELAY_COUNTER_FIELDS_MAX, and at most one per 256 bytes of the client's max_reply. Not
 * retried. */
BELAY_API int belay_counter_add_fields(belay_counter_t *counter, belay_request_t *request,
                                       belay_bytes_t key, const belay_counter_add_item_t *items,
                                       size_t n, belay_counter_many_cb cb);

/** Read one field. Retried if the reply is lost. A replica may answer
 * (belay_client_options_t.read_from). */
BELAY_API int belay_counter_get_field(belay_counter_t *counter, belay_request_t *request,
                                      belay_bytes_t key, belay_bytes_t field, belay_counter_cb cb);

/** Read n fields in one step. n: 1 to BELAY_COUNTER_MANY_MAX, and at most one per 256 bytes of the
 * client's max_reply. Retried if the reply is lost. A replica may answer
 * (belay_client_options_t.read_from). */
BELAY_API int belay_counter_get_fields(belay_counter_t *counter, belay_request_t *request,
                                       belay_bytes_t key, const belay_bytes_t *fields, size_t n,
                                       belay_counter_many_cb cb);

/** A field of a group. Valid until the callback returns. */
typedef struct belay_counter_field {
  const char *name; /**< name of the field, any bytes, terminated by a 0 */
  size_t name_len;  /**< length of the name in bytes, without the terminating 0 */
  int64_t value;    /**< value of the field */
} belay_counter_field_t;

/** Receives all fields of a group, in no order. n is 0 if there are none, or if status is not 0.
 * The rules of belay_counter_cb apply. */
typedef void (*belay_counter_all_cb)(belay_request_t *request, int status,
                                     const belay_counter_field_t *fields, size_t n);

/** Read all fields in one step. max: largest number of fields to read, 1 to BELAY_COUNTER_MANY_MAX.
 * The fields must also fit into the client's max_reply, where each takes about 400 bytes and twice
 * its name. Otherwise the status is BELAY_EOVERFLOW, and belay_detail() says how many fields there
 * are. Retried if the reply is lost. A replica may answer (belay_client_options_t.read_from). */
BELAY_API int belay_counter_get_all(belay_counter_t *counter, belay_request_t *request,
                                    belay_bytes_t key, size_t max, belay_counter_all_cb cb);

/** Delete n fields (1 to BELAY_COUNTER_MANY_MAX). result->value is the number of fields that
 * existed. Not retried. */
BELAY_API int belay_counter_delete_fields(belay_counter_t *counter, belay_request_t *request,
                                          belay_bytes_t key, const belay_bytes_t *fields, size_t n,
                                          belay_counter_cb cb);

/* ---- local adds ---- */

/** Add delta in this process, without a call to the server. The adds of a key within batch_ms are
 * sent as one sum, hundreds of keys in one round trip; a sum of 0 is not sent. Each sum has an
 * operation id, so it counts once, however often it is sent. Adds to a key whose sum is not
 * answered yet wait for the next sum. The loop stays alive until the sums are answered.
 *
 * Possible losses:
 *
 *   - The process is killed: the adds of the last batch_ms are lost. Sums under way may have been
 *     counted or not.
 *   - No server answers: the sums stay in this process, and are sent when a server answers. A sum
 *     that was sent and not answered is retried for op_ttl_ms minus the client's timeout_ms, but
 *     for at least twice that timeout_ms. After that the server may have forgotten its id, so the
 *     sum is reported as lost.
 *   - The server refuses a sum for good: it is reported as lost.
 *   - belay_counter_close() sends all sums, and waits for the replies for at most the client's
 *     close_timeout_ms. The rest is reported as lost.
 *   - The server evicts an operation id: its sum may count twice.
 *   - A failover loses a confirmed sum: it is missing.
 *
 * Lost sums are reported to options.on_lost.
 *
 *   0                 added
 *   BELAY_EOVERFLOW   the sum would leave its range; nothing was added
 *   BELAY_EBUSY       max_keys other keys have a sum
 *   BELAY_EINVAL, BELAY_ENOMEM, BELAY_ECLOSING, BELAY_EFORK */
BELAY_API int belay_counter_add_local(belay_counter_t *counter, belay_bytes_t key, int64_t delta);

/** Send all local sums in the next iteration of the loop. A key whose last sum is not answered yet
 * follows after the reply.
 *
 * Returns 0, BELAY_EINVAL, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_counter_flush(belay_counter_t *counter);

/** Statistics of local adds since the handle was made, unless a comment says "now". */
typedef struct belay_counter_stats {
  uint64_t adds;    /**< accepted calls of belay_counter_add_local() */
  uint64_t sums;    /**< sums that were sent, each counted once */
  uint64_t resends; /**< retries of sums that were not answered */
  uint64_t counted; /**< sums that are known to be counted */
  uint64_t lost;    /**< lost sums, reported to on_lost if there is one */
  size_t keys;      /**< keys with a sum that is not sent or not answered now */
} belay_counter_stats_t;

/** Copy the statistics to *out. */
BELAY_API void belay_counter_stats(const belay_counter_t *counter, belay_counter_stats_t *out);

/** Return options.data. */
BELAY_API void *belay_counter_data(const belay_counter_t *counter);

/** Runs once, on the loop, when belay_counter_close() has completed. The handle is freed: do not
 * use it. data is options.data; see CLOSING in belay/loop.h. */
typedef void (*belay_counter_close_cb)(belay_counter_t *counter, void *data);

/** Close the handle. Allowed inside any callback. Pending requests end with BELAY_ECANCELED. Local
 * sums are sent, for at most the client's close_timeout_ms. Counters stay on the server. cb may be
 * NULL.
 *
 * Returns 0, BELAY_EINVAL, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_counter_close(belay_counter_t *counter, belay_counter_close_cb cb);

#ifdef __cplusplus
}
#endif

#endif /* BELAY_COUNTER_H */

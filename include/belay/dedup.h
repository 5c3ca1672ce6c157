/* Dedup: sets that report whether an item has been seen before. */
#ifndef BELAY_DEDUP_H
#define BELAY_DEDUP_H

#include <stdbool.h>

#include "belay/request.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Sets of seen items: any number of them under one name, each with its own key, all in one slot of
 * a cluster. A mark adds an item and reports whether it was new, in one step: of many concurrent
 * marks of an item, exactly one reports NEW.
 *
 * Use it to drop duplicate messages, or to count different items. If a repeated request must get
 * the result of the first one, use belay/idempotency.h. If some false positives are acceptable and
 * memory matters, use belay/bloom.h, where one handle is one filter.
 *
 * All programs that share a name should use the same options. If a server evicts or loses a set,
 * its items are new again.
 *
 * @code
 * static void on_mark(belay_request_t *request, int status, belay_dedup_verdict_t verdict) {
 *   const char *id = request->data;
 *   if (status == 0 && verdict == BELAY_DEDUP_NEW)
 *     printf("process %s\n", id);
 *   else if (status == BELAY_EUNKNOWN)
 *     printf("not known whether %s is new\n", id);
 * }
 *
 * int arrived(belay_dedup_t *orders, belay_request_t *request, char *id) {
 *   request->data = id;
 *   return belay_dedup_mark(orders, request, belay_string("paid"), belay_string(id), on_mark);
 * }
 * @endcode */
typedef struct belay_dedup belay_dedup_t;

#define BELAY_DEDUP_NAME_MAX ((size_t)128)    /**< bytes of a handle's name */
#define BELAY_DEDUP_KEY_MAX ((size_t)1024)    /**< bytes of a set's key */
#define BELAY_DEDUP_ITEM_MAX ((size_t)512)    /**< bytes of an item */
#define BELAY_DEDUP_ITEMS_MAX ((size_t)65536) /**< items in one call */
#define BELAY_DEDUP_ONCE_MAX ((size_t)512)    /**< items of belay_dedup_mark_once() */
#define BELAY_DEDUP_OP_ID_MAX ((size_t)128)   /**< bytes of an operation id */
#define BELAY_DEDUP_KEYS_MAX ((size_t)64)     /**< sets that are counted or merged at once */
#define BELAY_DEDUP_PAGE_MAX ((size_t)10000)  /**< largest limit of a page */
#define BELAY_DEDUP_WINDOW_ITEMS_MAX INT64_C(100000000) /**< largest max_items */
#define BELAY_DEDUP_OFFSET_MAX UINT32_MAX               /**< largest max_offset */

/** Type of the sets of a handle. It decides which operations are allowed; others return
 * BELAY_EINVAL.
 *
 *               mark  seen  forget  count  clear  union  intersection, difference  page
 *   SET           x     x      x      x      x      x               x              x
 *   COUNT         x                   x      x      x
 *   WINDOW        x     x      x      x      x                                        x
 *   BITMAP        x     x      x      x      x
 */
typedef enum belay_dedup_kind {
  /** Exact set with members (a Redis set). Only ttl_ms bounds it. */
  BELAY_DEDUP_SET,
  /** Estimate of the number of items, with a standard error of 0.81 % and without members (a
   * HyperLogLog of at most 12 KiB). */
  BELAY_DEDUP_COUNT,
  /** Exact set; each member is forgotten window_ms after its mark, by the server's clock (a sorted
   * set). */
  BELAY_DEDUP_WINDOW,
  /** Exact set of numbers from 0 to max_offset, written in decimal digits without leading zeros (a
   * string with one bit per number, up to the largest marked one). The server cannot tell a bitmap
   * from any other string. */
  BELAY_DEDUP_BITMAP
} belay_dedup_kind_t;

/** Options; belay_dedup_options_init() sets the defaults. */
typedef struct belay_dedup_options {
  /** Type of the sets. Default BELAY_DEDUP_SET. */
  belay_dedup_kind_t kind;
  /** Name of the sets, 1 to BELAY_DEDUP_NAME_MAX bytes; copied. It is part of the keys:
   * NAMESPACE::dedup::{NAME}, "::" and the key of the set. Required. */
  belay_bytes_t name;
  /** SET, COUNT, BITMAP: lifetime of a set after its creation, in milliseconds: 1,000 to
   * 31,536,000,000. 0: no end. Default 86,400,000, a day. */
  int64_t ttl_ms;
  /** WINDOW: time that a member is kept after its mark, in milliseconds: 1 to 31,536,000,000.
   * Default 3,600,000, an hour. */
  int64_t window_ms;
  /** true if each mark starts ttl_ms of the set again; for WINDOW window_ms of the item, if that
   * makes it longer. Default false: only the first mark counts. */
  bool extend_ttl;
  /** WINDOW: maximum number of members of a set, 1 to BELAY_DEDUP_WINDOW_ITEMS_MAX. Default
   * 1,000,000. */
  int64_t max_items;
  /** WINDOW: true if a full set removes the members that would expire first. Default false: a new
   * item then gets BELAY_DEDUP_FULL. */
  bool evict;
  /** BITMAP: largest number, at most BELAY_DEDUP_OFFSET_MAX, with which a single mark makes 512
   * MiB. Default 2^24 - 1, 2 MiB. */
  uint64_t max_offset;
  /** Time that the server remembers an operation id of belay_dedup_mark_once() and its result, in
   * milliseconds: 1,000 to 86,400,000. It is longer if the request may be retried for longer.
   * Default 60,000, a minute. */
  int64_t op_ttl_ms;
  /** Pointer of the caller, returned by belay_dedup_data(). Default NULL. */
  void *data;
} belay_dedup_options_t;

/** Set all options to their defaults. */
BELAY_API void belay_dedup_options_init(belay_dedup_options_t *options);

/** Make a handle, without the server. Returns 0, BELAY_EINVAL (belay_detail() names the option),
 * BELAY_ENOMEM, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_dedup_new(belay_client_t *client, const belay_dedup_options_t *options,
                              belay_dedup_t **out);

/** Result for one item. */
typedef enum belay_dedup_verdict {
  BELAY_DEDUP_SEEN, /**< the item was in the set */
  BELAY_DEDUP_NEW,  /**< the item was not in the set; after a mark it is */
  /** Mark of a WINDOW: the item was not in the set, and was not added, because the set is full. */
  BELAY_DEDUP_FULL,
  /** Mark of a COUNT: the item is counted, and may have been counted before. (BELAY_DEDUP_NEW is
   * certain for a COUNT too: the item was not counted before.) Also the value if status is not
   * 0. */
  BELAY_DEDUP_MAYBE
} belay_dedup_verdict_t;

/** Receives the result for one item; verdict is BELAY_DEDUP_MAYBE if status is not 0. CALLBACKS in
 * belay/request.h has the common rules and errors. Other values of status, for all operations:
 *
 *   BELAY_EUNKNOWN       it may have been executed, of many items any part. Each function says
 *                        whether it is retried (belay/request.h)
 *   BELAY_EMISMATCH      the scores of the key are no times; or the operation id was used for other
 *                        items, or for the same items in another order
 *   another error        the server's refusal, such as BELAY_EWRONGTYPE. Many items are sent in
 *                        parts of 512: other parts may have been executed */
typedef void (*belay_dedup_cb)(belay_request_t *request, int status, belay_dedup_verdict_t verdict);

/** Receives the results for n items, in their order; n is 0 if status is not 0. verdicts is valid
 * until it returns. The rules of belay_dedup_cb apply. */
typedef void (*belay_dedup_many_cb)(belay_request_t *request, int status,
                                    const belay_dedup_verdict_t *verdicts, size_t n);

/** Receives a number; count is 0 if status is not 0. The rules of belay_dedup_cb apply. */
typedef void (*belay_dedup_count_cb)(belay_request_t *request, int status, int64_t count);

/** Receives a page of n members. next is the cursor of the next page; 0: this was the last page. n
 * and next are 0 if status is not 0. items is valid until it returns. The rules of belay_dedup_cb
 * apply. */
typedef void (*belay_dedup_page_cb)(belay_request_t *request, int status,
                                    const belay_bytes_t *items, size_t n, uint64_t next);

/* ---- operations ----
 *
 * Each function returns 0, BELAY_EINVAL, BELAY_ESTATE (the request is pending), BELAY_EBUSY,
 * BELAY_ENOMEM, BELAY_ECLOSING or BELAY_EFORK. After an error the callback does not run. A key has
 * 1 to BELAY_DEDUP_KEY_MAX bytes. An item has 0 to BELAY_DEDUP_ITEM_MAX bytes; the empty item is an
 * item too (not of a BITMAP). Arguments are copied. */

/** Mark an item, and report whether it was new.
 *
 * Not retried if the reply is lost, because the retry could report SEEN for its own first attempt;
 * it ends with BELAY_EUNKNOWN. Use belay_dedup_mark_once() for a mark that is retried. A COUNT is
 * retried, because MAYBE stays correct. */
BELAY_API int belay_dedup_mark(belay_dedup_t *dedup, belay_request_t *request, belay_bytes_t key,
                               belay_bytes_t item, belay_dedup_cb cb);

/** Mark n items, 1 to BELAY_DEDUP_ITEMS_MAX, in one round trip. Each mark is one step; together
 * they are not. An item that occurs twice is NEW once. Retried as belay_dedup_mark(). */
BELAY_API int belay_dedup_mark_many(belay_dedup_t *dedup, belay_request_t *request,
                                    belay_bytes_t key, const belay_bytes_t *items, size_t n,
                                    belay_dedup_many_cb cb);

/** Items of belay_dedup_mark_once(), and the id of the operation. */
typedef struct belay_dedup_once {
  const belay_bytes_t *items; /**< items to mark */
  size_t n;                   /**< number of items, 1 to BELAY_DEDUP_ONCE_MAX */
  belay_bytes_t op_id;        /**< operation id, 1 to BELAY_DEDUP_OP_ID_MAX bytes */
} belay_dedup_once_t;

/** Mark up to BELAY_DEDUP_ONCE_MAX items in one step, once per operation id. Use an id for these
 * items only, and always in this order.
 *
 * The first result is stored in NAMESPACE::dedup::{NAME}::KEY::op::ID for options.op_ttl_ms. Calls
 * with the same id in this time get that result again and mark nothing, also after
 * belay_dedup_forget() or belay_dedup_clear() has removed the items. So the operation is retried if
 * the reply is lost, and after BELAY_EUNKNOWN the caller may repeat it with the same id. If a
 * server evicts the stored result, a repeated call marks the items once more and reports SEEN. */
BELAY_API int belay_dedup_mark_once(belay_dedup_t *dedup, belay_request_t *request,
                                    belay_bytes_t key, const belay_dedup_once_t *once,
                                    belay_dedup_many_cb cb);

/** Report whether an item is in the set: SEEN or NEW. It writes nothing. Retried if the reply is
 * lost. A replica may answer (belay_client_options_t.read_from); an item that was marked just
 * before may be NEW there. */
BELAY_API int belay_dedup_seen(belay_dedup_t *dedup, belay_request_t *request, belay_bytes_t key,
                               belay_bytes_t item, belay_dedup_cb cb);

/** Report whether n items are in the set, 1 to BELAY_DEDUP_ITEMS_MAX, in one round trip, as
 * belay_dedup_seen(). */
BELAY_API int belay_dedup_seen_many(belay_dedup_t *dedup, belay_request_t *request,
                                    belay_bytes_t key, const belay_bytes_t *items, size_t n,
                                    belay_dedup_many_cb cb);

/** Remove n items, 1 to BELAY_DEDUP_ITEMS_MAX. count is the number of items that were in the set.
 * Not retried. A second call does no harm, unless an item was marked in between. */
BELAY_API int belay_dedup_forget(belay_dedup_t *dedup, belay_request_t *request, belay_bytes_t key,
                                 const belay_bytes_t *items, size_t n, belay_dedup_count_cb cb);

/** Count the members of a set. Retried if the reply is lost. A replica may answer
 * (belay_client_options_t.read_from). For a BITMAP the server reads every byte: 512 MiB take tens
 * of milliseconds. */
BELAY_API int belay_dedup_count(belay_dedup_t *dedup, belay_request_t *request, belay_bytes_t key,
                                belay_dedup_count_cb cb);

/** Delete a set, whatever the key holds. Stored results of belay_dedup_mark_once() stay. count is 1
 * if the key existed, otherwise 0. The server frees the memory in the background. Not retried. */
BELAY_API int belay_dedup_clear(belay_dedup_t *dedup, belay_request_t *request, belay_bytes_t key,
                                belay_dedup_count_cb cb);

/** Operation on several sets. With one set, the result is that set. */
typedef enum belay_dedup_operator {
  BELAY_DEDUP_UNION,        /**< items of any of the sets */
  BELAY_DEDUP_INTERSECTION, /**< SET: items of both sets */
  BELAY_DEDUP_DIFFERENCE    /**< SET: items of the first set that are not in the second */
} belay_dedup_operator_t;

/** Several sets, and an operation on them. */
typedef struct belay_dedup_sets {
  belay_dedup_operator_t how; /**< operation */
  const belay_bytes_t *keys;  /**< keys of the sets; the order matters for a difference */
  size_t n;                   /**< number of keys */
} belay_dedup_sets_t;

/** Count the items of a combination of sets, without storing it. Retried if the reply is lost. A
 * replica may answer (belay_client_options_t.read_from).
 *
 *   SET    1 or 2 keys. The server computes the intersection, in time proportional to the smaller
 *          set; before Redis 7 it also takes memory
 *   COUNT  a union of 1 to BELAY_DEDUP_KEYS_MAX keys: an estimate with the same standard error */
BELAY_API int belay_dedup_count_of(belay_dedup_t *dedup, belay_request_t *request,
                                   const belay_dedup_sets_t *sets, belay_dedup_count_cb cb);

/** Store a combination of sets under the key `into`, in one step. count is the number of items in
 * it. The server needs time proportional to the sizes of the sets.
 *
 *   SET    replaces the set at `into`, which may be one of the two, with a new ttl_ms. An empty
 *          result deletes the key
 *   COUNT  merges into the set at `into`. Its ttl continues, or starts again with
 *          options.extend_ttl
 *
 * Retried if the reply is lost, except for a difference that replaces its second set, because the
 * retry would have another result. */
BELAY_API int belay_dedup_store(belay_dedup_t *dedup, belay_request_t *request,
                                const belay_dedup_sets_t *sets, belay_bytes_t into,
                                belay_dedup_count_cb cb);

/** Read a page of members, in no order. Pass cursor 0 for the first page, then the cursor of the
 * callback, until that is 0. A page has about `limit` members (1 to BELAY_DEDUP_PAGE_MAX), or none;
 * a small set may come as one page. No page takes the server long. Retried if the reply is lost.
 *
 *   WINDOW  the current members of one set; sets->how is ignored
 *   SET     the members of a combination of 1 or 2 sets. The server iterates over the first set,
 *           and for a union then over the second. Put the smaller set of an intersection first
 *
 * The pages are not a snapshot. A member that is in the combination all the time comes at least
 * once, and may come twice. A member that is added or removed meanwhile may come or not. For a
 * snapshot, use belay_dedup_store() and read the pages of its result. */
BELAY_API int belay_dedup_page(belay_dedup_t *dedup, belay_request_t *request,
                               const belay_dedup_sets_t *sets, uint64_t cursor, size_t limit,
                               belay_dedup_page_cb cb);

/** Return options.data. */
BELAY_API void *belay_dedup_data(const belay_dedup_t *dedup);

/** Runs once, on the loop, after a close. See CLOSING in belay/loop.h. */
typedef void (*belay_dedup_close_cb)(belay_dedup_t *dedup, void *data);

/** Close the handle, as CLOSING in belay/loop.h says. Sets stay on the server. Returns 0,
 * BELAY_EINVAL, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_dedup_close(belay_dedup_t *dedup, belay_dedup_close_cb cb);

#ifdef __cplusplus
}
#endif

#endif /* BELAY_DEDUP_H */

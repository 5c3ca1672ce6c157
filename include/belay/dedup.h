/* Dedup: has this been seen? */
#ifndef BELAY_DEDUP_H
#define BELAY_DEDUP_H

#include <stdbool.h>

#include "belay/request.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Sets of what has been seen: any number of them under one name, each with a key of its own, all in one slot of a
 * cluster. To mark an item adds it and tells whether it was new, in one step: of many who mark the same one, one is
 * told so. All who share a name should have the same options. What was in a set that a server has evicted, or lost, is
 * new again.
 *
 * @code
 * static void on_mark(belay_request_t *request, int status, belay_dedup_verdict_t verdict) {
 *   const char *id = request->data;
 *   if (status == 0 && verdict == BELAY_DEDUP_NEW)
 *     printf("%s is to be worked on\n", id);
 *   else if (status == BELAY_EUNKNOWN)
 *     printf("whether %s was new is not known\n", id);
 * }
 *
 * int arrived(belay_dedup_t *orders, belay_request_t *request, char *id, size_t len) {
 *   request->data = id;
 *   return belay_dedup_mark(orders, request, belay_string("paid"), belay_bytes(id, len), on_mark);
 * }
 * @endcode */
typedef struct belay_dedup belay_dedup_t;

#define BELAY_DEDUP_NAME_MAX ((size_t)128)    /**< bytes of a handle's name */
#define BELAY_DEDUP_KEY_MAX ((size_t)1024)    /**< bytes of a set's key */
#define BELAY_DEDUP_ITEM_MAX ((size_t)512)    /**< bytes of an item */
#define BELAY_DEDUP_ITEMS_MAX ((size_t)65536) /**< items in one call */
#define BELAY_DEDUP_ONCE_MAX ((size_t)512)    /**< of belay_dedup_mark_once() */
#define BELAY_DEDUP_OP_ID_MAX ((size_t)128)   /**< bytes of an operation's id */
#define BELAY_DEDUP_KEYS_MAX ((size_t)64)     /**< sets that are counted or merged at once */
#define BELAY_DEDUP_PAGE_MAX ((size_t)10000)  /**< members that a page asks for */
#define BELAY_DEDUP_WINDOW_ITEMS_MAX INT64_C(100000000) /**< members of a window */
#define BELAY_DEDUP_OFFSET_MAX UINT32_MAX               /**< the largest item of a bitmap */

/** What the sets of a handle are made of, and so what they can do:
 *
 *               mark  seen  forget  count  clear  union  intersection, difference  page
 *   SET           x     x      x      x      x      x               x              x
 *   COUNT         x                   x      x      x
 *   WINDOW        x     x      x      x      x                                        x
 *   BITMAP        x     x      x      x      x
 *
 * What a kind cannot do is BELAY_EINVAL. Where it is enough that hardly anything new is taken for seen, and memory
 * counts, a Bloom filter is a set as well: one filter is one handle of its own, belay/bloom.h, whose add tells the
 * same. */
typedef enum belay_dedup_kind {
  BELAY_DEDUP_SET, /**< exact, with its members (a Redis set). Nothing but ttl_ms bounds it */
  /** counts, with a standard error of 0.81 %, and has no members (a HyperLogLog, 12 KiB at most) */
  BELAY_DEDUP_COUNT,
  /** exact; each member is forgotten window_ms after it was marked, by the server's clock (a sorted set) */
  BELAY_DEDUP_WINDOW,
  /** exact; its items are numbers from 0 to max_offset, in decimal digits without leading zeros (a string, a bit for
   * each number up to the largest that was marked). No other string is told from a bitmap. */
  BELAY_DEDUP_BITMAP
} belay_dedup_kind_t;

/** Options; belay_dedup_options_init() sets the defaults. */
typedef struct belay_dedup_options {
  belay_dedup_kind_t kind; /**< default BELAY_DEDUP_SET */
  /** part of the keys, NAMESPACE::dedup::{NAME} with two colons and the set's key behind it; 1 to BELAY_DEDUP_NAME_MAX bytes; copied; must be given */
  belay_bytes_t name;
  /** SET, COUNT, BITMAP: a set is forgotten, as a whole, so long after it was made: 1,000 to 31,536,000,000; 0: never;
   * default a day */
  int64_t ttl_ms;
  int64_t window_ms; /**< WINDOW: 1 to 31,536,000,000; default an hour */
  /** Each mark begins ttl_ms anew for the set; WINDOW: window_ms for the item, if that makes it longer. Default
   * false: only the first one counts. */
  bool extend_ttl;
  /** WINDOW: members of one set: 1 to BELAY_DEDUP_WINDOW_ITEMS_MAX; default 1,000,000 */
  int64_t max_items;
  /** WINDOW: where there are so many already, those that would be forgotten first make room. Default false: what is new
   * is BELAY_DEDUP_FULL. */
  bool evict;
  /** BITMAP: up to BELAY_DEDUP_OFFSET_MAX, which is 512 MiB for one number; default 2^24 - 1: 2 MiB */
  uint64_t max_offset;
  /** What belay_dedup_mark_once() answered is kept for so long, or for as long as the request may be sent again, if
   * that is longer: 1,000 to 86,400,000; default a minute */
  int64_t op_ttl_ms;
  void *data; /**< belay_dedup_data() */
} belay_dedup_options_t;

BELAY_API void belay_dedup_options_init(belay_dedup_options_t *options);

/** Sends nothing. Returns 0, BELAY_EINVAL, BELAY_ENOMEM, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_dedup_new(belay_client_t *client, const belay_dedup_options_t *options,
                              belay_dedup_t **out);

/** What is said of an item. */
typedef enum belay_dedup_verdict {
  BELAY_DEDUP_SEEN, /**< it was there */
  BELAY_DEDUP_NEW,  /**< it was not; after a mark it is */
  BELAY_DEDUP_FULL, /**< of a mark, WINDOW: it was not, there is no room for it, and it is not there now */
  /** of a mark, COUNT: it is counted; it may have been before. BELAY_DEDUP_NEW is certain there too: it was not, and
   * the estimate may have changed */
  BELAY_DEDUP_MAYBE
} belay_dedup_verdict_t;

/** Callbacks of the shape of belay/request.h. Status of all that follow:
 *
 *   0                    the server answered
 *   BELAY_EUNREACHABLE   nothing was sent (also BELAY_ERESOLVE, BELAY_EBUSY, BELAY_ENOMEM)
 *   BELAY_EUNKNOWN       sent, and not answered: it may have been executed, of a batch any part. It says at each
 *                        operation whether it is sent again; those that are end so only at their deadline
 *   BELAY_ECANCELED      belay_request_cancel() or a close
 *   BELAY_EMISMATCH      the key's scores are no times; or the operation's id was used for other items
 *   another error        the server's refusal, such as BELAY_EWRONGTYPE. A batch travels in parts of 512: others of
 *                        them may have been executed
 *
 * verdict, of one item: BELAY_DEDUP_MAYBE unless status is 0. */
typedef void (*belay_dedup_cb)(belay_request_t *request, int status, belay_dedup_verdict_t verdict);

/** Of n items, in their order; n is 0 unless status is 0. */
typedef void (*belay_dedup_many_cb)(belay_request_t *request, int status,
                                    const belay_dedup_verdict_t *verdicts, size_t n);

/** A number; 0 unless status is 0. */
typedef void (*belay_dedup_count_cb)(belay_request_t *request, int status, int64_t count);

/** Members, n of them, and the cursor of the next page: 0 if this was the last. n and
 * next are 0 unless status is 0. */
typedef void (*belay_dedup_page_cb)(belay_request_t *request, int status,
                                    const belay_bytes_t *items, size_t n, uint64_t next);

/* All that follow return 0, BELAY_EINVAL, BELAY_ESTATE (the request is pending), BELAY_EBUSY, BELAY_ENOMEM,
 * BELAY_ECLOSING or BELAY_EFORK. A key has 1 to BELAY_DEDUP_KEY_MAX bytes, an item 0 to BELAY_DEDUP_ITEM_MAX: the empty
 * one is an item (but not of a bitmap). All are copied. */

/** Marks an item, and tells whether it was new. It is not sent again when its answer is lost, since it might then be
 * SEEN because of its own first try: it ends with BELAY_EUNKNOWN. Where that is not good enough,
 * belay_dedup_mark_once() is, and the records of belay/idempotency.h do more. A COUNT does send it again: MAYBE is true
 * all the same. */
BELAY_API int belay_dedup_mark(belay_dedup_t *dedup, belay_request_t *request, belay_bytes_t key,
                               belay_bytes_t item, belay_dedup_cb cb);

/** The same for n items, 1 to BELAY_DEDUP_ITEMS_MAX, in one round trip: each of them is one step, all together are
 * not. One that is there twice is new once. */
BELAY_API int belay_dedup_mark_many(belay_dedup_t *dedup, belay_request_t *request,
                                    belay_bytes_t key, const belay_bytes_t *items, size_t n,
                                    belay_dedup_many_cb cb);

/** Items, and the id of the operation that marks them. */
typedef struct belay_dedup_once {
  const belay_bytes_t *items; /**< 1 to BELAY_DEDUP_ONCE_MAX items */
  size_t n;                   /**< number of items */
  belay_bytes_t op_id;        /**< of the operation, 1 to BELAY_DEDUP_OP_ID_MAX bytes */
} belay_dedup_once_t;

/** The same for at most BELAY_DEDUP_ONCE_MAX items, all in one step, under an operation's id (1 to
 * BELAY_DEDUP_OP_ID_MAX bytes) that is used for these items and nothing else: the first answer is kept beside the
 * set, NAMESPACE::dedup::{NAME}::KEY::op::ID, for op_ttl_ms, and whoever says the same id in this time gets it again.
 * So it is sent again when its answer is lost; and after BELAY_EUNKNOWN the caller may ask again himself, with the same
 * id. A server that evicts keys may evict the answer: then they are marked once more, and SEEN. */
BELAY_API int belay_dedup_mark_once(belay_dedup_t *dedup, belay_request_t *request,
                                    belay_bytes_t key, const belay_dedup_once_t *once,
                                    belay_dedup_many_cb cb);

/** Whether an item is there: SEEN or NEW. Writes nothing; is sent again. A replica may answer (read_from): one that was
 * marked a moment ago may be NEW there. */
BELAY_API int belay_dedup_seen(belay_dedup_t *dedup, belay_request_t *request, belay_bytes_t key,
                               belay_bytes_t item, belay_dedup_cb cb);

/** The same for n items, 1 to BELAY_DEDUP_ITEMS_MAX, in one round trip. */
BELAY_API int belay_dedup_seen_many(belay_dedup_t *dedup, belay_request_t *request,
                                    belay_bytes_t key, const belay_bytes_t *items, size_t n,
                                    belay_dedup_many_cb cb);

/** Takes items out, 1 to BELAY_DEDUP_ITEMS_MAX, and tells how many of them were there. It is not sent again. To forget
 * twice does no harm, unless somebody has marked it in between. */
BELAY_API int belay_dedup_forget(belay_dedup_t *dedup, belay_request_t *request, belay_bytes_t key,
                                 const belay_bytes_t *items, size_t n, belay_dedup_count_cb cb);

/** How many are there. Is sent again. Of a bitmap the server looks at every byte: half a gigabyte takes it tens of
 * milliseconds. A replica may answer (read_from). */
BELAY_API int belay_dedup_count(belay_dedup_t *dedup, belay_request_t *request, belay_bytes_t key,
                                belay_dedup_count_cb cb);

/** Forgets the whole set, whatever the key holds; 1 if there was anything, else 0. The memory is given back in the
 * background. It is not sent again. */
BELAY_API int belay_dedup_clear(belay_dedup_t *dedup, belay_request_t *request, belay_bytes_t key,
                                belay_dedup_count_cb cb);

/** What is made of two sets; of one alone each of them is the set itself. */
typedef enum belay_dedup_operator {
  BELAY_DEDUP_UNION,        /**< what is in any */
  BELAY_DEDUP_INTERSECTION, /**< SET: what is in both */
  BELAY_DEDUP_DIFFERENCE    /**< SET: what is in the first, and not in the second */
} belay_dedup_operator_t;

/** Several sets, and the operation that makes one of them. */
typedef struct belay_dedup_sets {
  belay_dedup_operator_t how; /**< the operation */
  const belay_bytes_t *keys;  /**< of the sets, in this order */
  size_t n;                   /**< number of keys */
} belay_dedup_sets_t;

/** How many are in what is made of these sets. SET: 1 or 2 keys; the intersection is counted, which takes the server as
 * long as the smaller set is large, and before Redis 7 memory too. COUNT: a union of 1 to BELAY_DEDUP_KEYS_MAX keys, an
 * estimate with the same error. Is sent again. A replica may answer (read_from). */
BELAY_API int belay_dedup_count_of(belay_dedup_t *dedup, belay_request_t *request,
                                   const belay_dedup_sets_t *sets, belay_dedup_count_cb cb);

/** Makes a set of them, in one step, under the key `into`, and tells how many are in it. SET: in place of what was
 * there (it may be one of the two), with a ttl_ms of its own; nothing stays if nothing is in it. COUNT: merges them into
 * what is there, whose ttl_ms goes on, or begins anew with `extend_ttl`. Is sent again, but for a difference in place of its
 * second set, which the second time would be another one. It takes the server as long as the sets are large. */
BELAY_API int belay_dedup_store(belay_dedup_t *dedup, belay_request_t *request,
                                const belay_dedup_sets_t *sets, belay_bytes_t into,
                                belay_dedup_count_cb cb);

/** WINDOW: the members of one set that count now, in no order; `how` does not matter. SET: the members of what is made of
 * 1 or 2 sets. They come page by page: from cursor 0, then from the one that came with the page before, until that is 0. A page has about `limit` members (1 to BELAY_DEDUP_PAGE_MAX), perhaps none; a small set
 * may come as one. No page keeps the server for long. Is sent again.
 *
 * It walks the first set (of a union, then the second), so let that be the smaller one of an intersection. It is a walk
 * and not one view: what is in it all the time comes at least once, and may come twice; what comes or goes meanwhile
 * may come. For one view store it, and page through that. */
BELAY_API int belay_dedup_page(belay_dedup_t *dedup, belay_request_t *request,
                               const belay_dedup_sets_t *sets, uint64_t cursor, size_t limit,
                               belay_dedup_page_cb cb);

BELAY_API void *belay_dedup_data(const belay_dedup_t *dedup);

/** Runs once when belay_dedup_close() is through. data: see CLOSING in belay/loop.h. */
typedef void (*belay_dedup_close_cb)(belay_dedup_t *dedup, void *data);

/** Ends it, in any callback: what is pending ends with BELAY_ECANCELED. cb may be NULL.
 *
 * Returns 0, BELAY_EINVAL, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_dedup_close(belay_dedup_t *dedup, belay_dedup_close_cb cb);

#ifdef __cplusplus
}
#endif

#endif /* BELAY_DEDUP_H */

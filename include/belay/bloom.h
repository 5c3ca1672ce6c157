/* Bloom filters: whether an item has been added, with a few bits per item. */
#ifndef BELAY_BLOOM_H
#define BELAY_BLOOM_H

#include <stdbool.h>

#include "belay/request.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A Bloom filter on the server. It can report false positives, with a probability that its size
 * determines, never false negatives: an item that was added is always found. Items cannot be
 * removed.
 *
 * Use it if some false positives are acceptable and memory matters. If answers must be exact, use
 * belay/dedup.h.
 *
 * All programs that use one name must use the same options, as far as they determine where bits
 * are. Otherwise operations end with BELAY_EMISMATCH. Three kinds: belay_bloom_kind_t.
 *
 * @code
 * static void on_added(belay_request_t *request, int status, bool answer) {
 *   (void)request;
 *   if (status == 0)
 *     printf("%s\n", answer ? "never seen before" : "probably seen before");
 * }
 *
 * int open_visitors(belay_client_t *client, belay_bloom_t **visitors) {
 *   belay_bloom_options_t options;
 *   belay_bloom_options_init(&options);
 *   options.name = belay_string("visitors");
 *   options.capacity = 1000000;
 *   return belay_bloom_new(client, &options, visitors);
 * }
 *
 * int visit(belay_bloom_t *visitors, belay_request_t *request, const char *user) {
 *   return belay_bloom_add(visitors, request, belay_string(user), on_added);
 * }
 * @endcode */
typedef struct belay_bloom belay_bloom_t;

/** Largest capacity in items. It is less if the error rate requires more than BELAY_BLOOM_BITS_MAX
 * bits. */
#define BELAY_BLOOM_CAPACITY_MAX (INT64_C(1) << 32)
/** Largest number of bits: 16 GiB, in 4,096 segments. */
#define BELAY_BLOOM_BITS_MAX (INT64_C(1) << 37)
/** Bits of a segment. A larger filter is spread over several keys. */
#define BELAY_BLOOM_SEGMENT_BITS (INT64_C(1) << 25)
#define BELAY_BLOOM_HASHES_MAX 32       /**< bits per item */
#define BELAY_BLOOM_ERROR_RATE_MIN 1e-9 /**< smallest error_rate */
#define BELAY_BLOOM_ERROR_RATE_MAX 0.5  /**< largest error_rate */
/** Bytes of an item. Items are hashed in this process, and not sent to the server. */
#define BELAY_BLOOM_ITEM_MAX ((size_t)1 << 30)
#define BELAY_BLOOM_ITEMS_MAX ((size_t)65536) /**< items in one call */
#define BELAY_BLOOM_KEY_LEN ((size_t)16)      /**< bytes of options.key */

/** Behavior of a full filter. If BELAY_HAS_BLOOM_GROWING (belay/features.h) is 0, belay_bloom_new()
 * accepts only BELAY_BLOOM_PLAIN and returns BELAY_EINVAL for the others. */
typedef enum belay_bloom_kind {
  /** Fixed size. Above its capacity, the rate of false positives rises. The bits may be spread over
   * the nodes of a cluster. */
  BELAY_BLOOM_PLAIN,
  /** Growing: the filter consists of layers. When the newest layer has reached its capacity, a
   * layer of twice the capacity and half the error rate is added, so that all layers together keep
   * error_rate.
   *
   * A layer has at most BELAY_BLOOM_SEGMENT_BITS. There are at most 32 layers. When the last one is
   * full (at 1 % after 10,000,000 to 40,000,000 items, by the capacity of the first layer), adding
   * a new item ends with BELAY_EOVERFLOW. */
  BELAY_BLOOM_SCALING,
  /** Forgetting: an item is found for at least window_ms and at most 2 * window_ms after its last
   * add, then it is new again.
   *
   * Windows begin at multiples of window_ms of the server's clock. If that clock is set back by
   * less than a window, items last longer by that time. If it is set back by more, all items are
   * forgotten. */
  BELAY_BLOOM_ROTATING
} belay_bloom_kind_t;

/** Options; belay_bloom_options_init() sets the defaults. Either capacity or bits is required. */
typedef struct belay_bloom_options {
  /** Name of the filter, 1 to 128 bytes; copied. It is part of the keys: NAMESPACE::bloom::{NAME}.
   * Required. */
  belay_bytes_t name;
  /** Behavior of a full filter. Default BELAY_BLOOM_PLAIN. */
  belay_bloom_kind_t kind;

  /** Expected number of items, 1 to BELAY_BLOOM_CAPACITY_MAX. SCALING: items of the first layer.
   * ROTATING: items of a window. For these two it is limited by BELAY_BLOOM_SEGMENT_BITS, to about
   * 3,000,000 at 1 %. 0: bits is used. */
  int64_t capacity;
  /** With capacity: rate of false positives when the filter contains `capacity` items; SCALING:
   * with any number of items. BELAY_BLOOM_ERROR_RATE_MIN to BELAY_BLOOM_ERROR_RATE_MAX. Default
   * 0.01. */
  double error_rate;

  /** Number of bits, instead of capacity: 1 to BELAY_BLOOM_BITS_MAX. ROTATING: bits of each window,
   * at most BELAY_BLOOM_SEGMENT_BITS. SCALING: not allowed. 0: capacity is used. */
  int64_t bits;
  /** With bits: bits per item, 1 to BELAY_BLOOM_HASHES_MAX. Default 0: 14. With capacity: must be
   * 0. */
  unsigned hashes;

  /** Seed of the hash function. Filters with different seeds have different false positives.
   * Default 0. */
  uint64_t seed;
  /** Secret key of the hash function, BELAY_BLOOM_KEY_LEN bytes, copied; for items that an attacker
   * can choose. It requires a seed of 0. Default NULL: no key.
   *
   * With a key, items are hashed with SipHash-2-4 instead of XXH3. Without one, an attacker can
   * compute items with the same bits, and so fill the filter or produce false positives. The key
   * does not protect from clients that can write the server's keys. The server stores a
   * fingerprint of the key, to detect a wrong one. */
  const uint8_t *key;

  /** Lifetime of the filter after its creation, in milliseconds: 1,000 to 315,360,000,000 (ten
   * years). 0: no end. Default 2,592,000,000, 30 days, because a full filter is of no use. The
   * program that creates the filter decides. ROTATING: not used; the filter ends two windows and
   * up to 2 s after the start of the window of the last add, or after its creation. Reads do not
   * extend it. */
  int64_t ttl_ms;
  /** ROTATING: length of a window in milliseconds, 1,000 to 31,536,000,000. Required. Other kinds:
   * must be 0. */
  int64_t window_ms;
  /** Pointer of the caller, returned by belay_bloom_data(). Default NULL. */
  void *data;
} belay_bloom_options_t;

/** Set all options to their defaults. */
BELAY_API void belay_bloom_options_init(belay_bloom_options_t *options);

/** Make a handle. It sends nothing to the server: the first operation reads the filter's
 * configuration, or creates the filter.
 *
 * Returns 0, BELAY_EINVAL (belay_detail() names the option), BELAY_ENOMEM, BELAY_ECLOSING or
 * BELAY_EFORK. */
BELAY_API int belay_bloom_new(belay_client_t *client, const belay_bloom_options_t *options,
                              belay_bloom_t **out);

/** Receives the result of an operation; see CALLBACKS in belay/loop.h. status, for all operations:
 *
 *   0                   the server answered
 *   BELAY_EUNREACHABLE  nothing was sent (also BELAY_ERESOLVE, BELAY_EBUSY, BELAY_ENOMEM)
 *   BELAY_ETIMEDOUT     nothing was sent, because the filter was still being opened
 *   BELAY_EUNKNOWN      sent and not answered, or a part of an add_many failed; it may have been
 *                       executed. An add is not retried, because a retry cannot know whether the
 *                       item was new. All other operations are retried until the deadline, or an
 *                       error (see BELAY_EUNKNOWN in belay/request.h)
 *   BELAY_EMISMATCH     the server has a filter of this name with other options, or another value;
 *                       belay_detail() names the difference. Nothing was done. Exception: if the
 *                       filter was recreated with other options after this handle opened it, an add
 *                       may have set some bits
 *   BELAY_ELOST         items that were added are lost, so there is no valid answer (see below)
 *   BELAY_EOVERFLOW     of an add to a SCALING filter: there is no room for new items. Earlier
 *                       items of the same call may have been added
 *   BELAY_ECANCELED     belay_request_cancel() or a close
 *   another error       the server's refusal, such as BELAY_EWRONGTYPE. If belay_err_retryable()
 *                       returns true for the error of an add_many, nothing was added; otherwise a
 *                       part may have been
 *
 * BELAY_ELOST has two causes:
 *
 *   - The whole filter is gone: another client cleared it, its ttl is over, or the server lost it.
 *     In each open handle all operations under way end so, or else the first one that starts
 *     later. The next one creates the filter anew.
 *   - Some of its keys are gone, by eviction or deletion. Every operation that needs one of them
 *     ends so, until belay_bloom_clear(). Bits that an add wrote to a missing key are removed at
 *     once; if that fails, by the next add, or when the filter is created or cleared.
 *
 * So a lost key is never read as an empty one. Not noticed:
 *
 *   - A server that returns with older data: items that were added in between are not found.
 *   - A filter that another client has created anew before this handle looks: the handle uses the
 *     new one. belay_bloom_info_t has its generation.
 *   - ROTATING: a filter to which nothing was added for two windows ends by itself. So a handle
 *     that has seen no add within the last two windows, such as a new one, takes a lost
 *     configuration for that end, and creates the filter anew.
 *
 * Cost: a PLAIN filter is read and written bit by bit. A SCALING or ROTATING filter is in one slot
 * of a cluster, and a script handles each item in about 20 us of the server, more with more layers.
 * Tens of thousands of items are split into many calls; choose timeout_ms accordingly. The first
 * operation of a handle opens the filter, with one more round trip; to create the filter takes two,
 * and one per 256 segments of a PLAIN filter. Operations that start meanwhile wait. */
typedef void (*belay_bloom_cb)(belay_request_t *request, int status);

/** Receives the answer for one item; false if status is not 0. The rules of belay_bloom_cb apply.
 *
 *   add     true if the item is new: at least one of its bits was not set. Of two concurrent adds
 *           one is true
 *   exists  true if the item was probably added; false if it was not added. Exceptions: a replica
 *           that lags, a ROTATING item that was forgotten, and the losses that belay_bloom_cb lists
 *           as not noticed */
typedef void (*belay_bloom_answer_cb)(belay_request_t *request, int status, bool answer);

/** Receives the answers for n items, in their order; n is 0 if status is not 0. Of equal items in
 * one add_many exactly one is new: the first one, unless the server temporarily refused a part.
 * answers is valid until it returns. The rules of belay_bloom_cb apply. */
typedef void (*belay_bloom_answers_cb)(belay_request_t *request, int status, const bool *answers,
                                       size_t n);

/** State of a filter. */
typedef struct belay_bloom_info {
  /** Kind of the filter. */
  belay_bloom_kind_t kind;
  /** Random number of this creation of the filter. */
  int64_t generation;
  /** Capacity in items, of all layers; ROTATING: of one layer. 0: the filter was created from
   * bits. */
  int64_t capacity;
  /** Number of bits, of all layers. */
  int64_t bits;
  /** Bits per item; with several layers, of the newest. */
  unsigned hashes;
  /** Number of layers. PLAIN: 1. SCALING: 0 or more. ROTATING: 0 to 2. For both, 0: nothing was
   * added yet. */
  unsigned layers;
  /** Number of keys that hold bits, of all layers. */
  unsigned segments;
  /** Number of bits that are set, of all layers. */
  int64_t bits_set;
  /** Number of different items that were added. SCALING: the adds that reported new. Otherwise an
   * estimate from bits_set: off by a few percent of the capacity, and too small if saturation is
   * near 1. ROTATING: items of two windows; an item of both counts twice. */
  int64_t items;
  /** bits_set / bits, 0 to 1; with several layers, of the newest. It is 0.5 when the capacity is
   * reached. */
  double saturation;
  /** Remaining lifetime in milliseconds. -1: no end. */
  int64_t remaining_ms;
} belay_bloom_info_t;

/** Receives the state of a filter; all fields are 0 if status is not 0. info is valid until it
 * returns. The rules of belay_bloom_cb apply. */
typedef void (*belay_bloom_info_cb)(belay_request_t *request, int status,
                                    const belay_bloom_info_t *info);

/** Receives the options with which a filter was created. With a name, and the key if there is one,
 * belay_bloom_new() makes a handle from them: neither can be read from the server. ttl_ms is 0 or
 * the default, and error_rate is the default if the filter was created from bits. If status is not
 * 0, all options are 0, which belay_bloom_new() refuses. options is valid until it returns. The
 * rules of belay_bloom_cb apply. */
typedef void (*belay_bloom_options_cb)(belay_request_t *request, int status,
                                       const belay_bloom_options_t *options);

/* ---- operations ----
 *
 * Each function returns 0, BELAY_EINVAL, BELAY_ESTATE (the request is pending), BELAY_EBUSY,
 * BELAY_ENOMEM, BELAY_ESYSTEM (no random bytes), BELAY_ECLOSING or BELAY_EFORK. After an error the
 * callback does not run. An item has 0 to BELAY_BLOOM_ITEM_MAX bytes; the empty item is an item
 * too. Items are hashed before the function returns. */

/** Open the filter: read its configuration, or create it. All operations do this when needed; call
 * it to learn early whether the options match. It never changes an existing filter. */
BELAY_API int belay_bloom_open(belay_bloom_t *bloom, belay_request_t *request, belay_bloom_cb cb);

/** Read the options of the existing filter. The options of this handle do not matter, except its
 * name. It creates nothing.
 *
 *   BELAY_EABSENT    there is no filter
 *   BELAY_EMISMATCH  the key does not hold a filter */
BELAY_API int belay_bloom_read_options(belay_bloom_t *bloom, belay_request_t *request,
                                       belay_bloom_options_cb cb);

/** Add an item, and report whether it is new, in one step. Not retried. */
BELAY_API int belay_bloom_add(belay_bloom_t *bloom, belay_request_t *request, belay_bytes_t item,
                              belay_bloom_answer_cb cb);

/** Report whether an item was added. Retried if the reply is lost. Of a PLAIN filter a replica may
 * answer (belay_client_options_t.read_from); it may lack items that were added just before. */
BELAY_API int belay_bloom_exists(belay_bloom_t *bloom, belay_request_t *request, belay_bytes_t item,
                                 belay_bloom_answer_cb cb);

/** Add n items, 1 to BELAY_BLOOM_ITEMS_MAX, in one round trip. Each item is added in one step;
 * together they are not. Not retried.
 *
 * If the items set a large part of a segment's bits, they are sent as a bitmap and the segment is
 * returned. The client's max_reply should then be at least 4 MiB, and its max_bytes at least 64
 * MiB. With a smaller max_reply the items are sent bit by bit. */
BELAY_API int belay_bloom_add_many(belay_bloom_t *bloom, belay_request_t *request,
                                   const belay_bytes_t *items, size_t n, belay_bloom_answers_cb cb);

/** Report which of n items were added, 1 to BELAY_BLOOM_ITEMS_MAX, in one round trip. Retried if
 * the reply is lost. See belay_bloom_add_many() for max_reply and max_bytes. */
BELAY_API int belay_bloom_exists_many(belay_bloom_t *bloom, belay_request_t *request,
                                      const belay_bytes_t *items, size_t n,
                                      belay_bloom_answers_cb cb);

/** Read the state of the filter. The server counts the bits, in about a millisecond per segment.
 * Retried if the reply is lost. */
BELAY_API int belay_bloom_info(belay_bloom_t *bloom, belay_request_t *request,
                               belay_bloom_info_cb cb);

/** Delete the filter, whatever its options were: its configuration and its bits. A string of
 * another program at its key is deleted too. The server frees the memory in the background.
 * Operations under way may end with BELAY_ELOST, and so may the next one of another handle. The
 * next operation of this handle creates the filter anew. */
BELAY_API int belay_bloom_clear(belay_bloom_t *bloom, belay_request_t *request, belay_bloom_cb cb);

/** Return options.data. */
BELAY_API void *belay_bloom_data(const belay_bloom_t *bloom);

/** Runs once, on the loop, when belay_bloom_close() has completed. The handle is freed: do not use
 * it. data is options.data; see CLOSING in belay/loop.h. */
typedef void (*belay_bloom_close_cb)(belay_bloom_t *bloom, void *data);

/** Close the handle. Allowed inside any callback. Pending requests end with BELAY_ECANCELED. The
 * filter stays on the server. cb may be NULL.
 *
 * Returns 0, BELAY_EINVAL, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_bloom_close(belay_bloom_t *bloom, belay_bloom_close_cb cb);

/* ---- filters in memory ---- */

/** A PLAIN Bloom filter in the memory of this process. The same options set the same bits as on the
 * server. It needs neither a server nor a loop. One thread at a time may use it. */
typedef struct belay_bloomset belay_bloomset_t;

/** Make a filter in memory. The options name, ttl_ms and data are ignored; kind must be
 * BELAY_BLOOM_PLAIN. allocator is copied; NULL: malloc and free.
 *
 * Returns 0, BELAY_EINVAL or BELAY_ENOMEM. */
BELAY_API int belay_bloomset_new(const belay_bloom_options_t *options,
                                 const belay_allocator_t *allocator, belay_bloomset_t **out);

/** Free a filter in memory. NULL is ignored. */
BELAY_API void belay_bloomset_free(belay_bloomset_t *set);

/** Add an item. Returns true if it is new. The bytes are not checked: item.data may be NULL only if
 * item.len is 0. */
BELAY_API bool belay_bloomset_add(belay_bloomset_t *set, belay_bytes_t item);

/** Returns true if the item was probably added. The bytes are not checked: item.data may be NULL
 * only if item.len is 0. */
BELAY_API bool belay_bloomset_exists(const belay_bloomset_t *set, belay_bytes_t item);

/** Write the state of the filter to *out. It counts the bits. generation is 0, remaining_ms is
 * -1. */
BELAY_API void belay_bloomset_info(const belay_bloomset_t *set, belay_bloom_info_t *out);

/** Return the bits of a segment, and their number of bytes in *len, as the server keeps them after
 * the 8 bytes of its header. Bit 0 is the highest bit of the first byte. NULL: there is no such
 * segment. Valid until the filter is freed. */
BELAY_API const uint8_t *belay_bloomset_bits(const belay_bloomset_t *set, unsigned segment,
                                             size_t *len);

#ifdef __cplusplus
}
#endif

#endif /* BELAY_BLOOM_H */

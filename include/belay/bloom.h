/* Bloom filters: whether something has been seen, in a few bits for each thing. */
#ifndef BELAY_BLOOM_H
#define BELAY_BLOOM_H

#include <stdbool.h>

#include "belay/request.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A Bloom filter on the server. What was added is found ever after; what was not is found all the same with a
 * probability that its size decides. Nothing can be taken out again. All who use one name must say the same options, as
 * far as they decide where bits are; else their operations end with BELAY_EMISMATCH.
 *
 * @code
 * static void on_added(belay_request_t *request, int status, bool answer) {
 *   if (status == 0)
 *     printf("%s\n", answer ? "never seen before" : "probably seen before");
 *   (void)request;
 * }
 *
 * int first_visit(belay_client_t *client, belay_request_t *request, const char *user, size_t len) {
 *   static belay_bloom_t *visitors;
 *   belay_bloom_options_t options;
 *   belay_bloom_options_init(&options);
 *   options.name = belay_string("visitors");
 *   options.capacity = 1000000;
 *   options.error_rate = 0.001;
 *   int error = visitors != NULL ? 0 : belay_bloom_new(client, &options, &visitors);
 *   return error != 0 ? error
 *                     : belay_bloom_add(visitors, request, belay_bytes(user, len), on_added);
 * }
 * @endcode */
typedef struct belay_bloom belay_bloom_t;

#define BELAY_BLOOM_CAPACITY_MAX                                                                   \
  (INT64_C(1) << 32) /**< items; less if they need more bits than there are */
#define BELAY_BLOOM_BITS_MAX (INT64_C(1) << 37) /**< 16 GiB, in 4,096 segments */
#define BELAY_BLOOM_SEGMENT_BITS                                                                   \
  (INT64_C(1) << 25)              /**< a filter of more is spread over several keys */
#define BELAY_BLOOM_HASHES_MAX 32 /**< bits for each item */
#define BELAY_BLOOM_ERROR_RATE_MIN 1e-9
#define BELAY_BLOOM_ERROR_RATE_MAX 0.5
#define BELAY_BLOOM_ITEM_MAX ((size_t)1 << 30) /**< bytes of an item; none is sent to the server */
#define BELAY_BLOOM_ITEMS_MAX ((size_t)65536)  /**< items in one call */
#define BELAY_BLOOM_KEY_LEN ((size_t)16)

/** What happens when more is added than there is room for. If BELAY_HAS_BLOOM_GROWING (belay/features.h) is 0,
 * belay_bloom_new() takes BELAY_BLOOM_PLAIN only, and ends with BELAY_EINVAL for the others. */
typedef enum belay_bloom_kind {
  BELAY_BLOOM_PLAIN, /**< more and more of what was not added is found */
  /** It grows: when its newest layer has as many items as it was made for, another one is added, of twice the capacity and
   * half the error rate, so that all of them together keep to error_rate. A layer that would take more than
   * BELAY_BLOOM_SEGMENT_BITS is made as large as that; there are at most 32. When the last one is full (at 1 %
   * that is after some 20,000,000 items) whatever is new ends with BELAY_EOVERFLOW. */
  BELAY_BLOOM_SCALING,
  /** Items are forgotten: what was added is found for window_ms after that at least, and for twice that at most; then it is
   * new again. Who adds what is there already makes it last as if it were new. Windows are those of the server's
   * clock, from multiples of window_ms on: nobody else's takes part. A clock that is set back by less than a window
   * makes things last for longer by that; if it is by more, all is forgotten. */
  BELAY_BLOOM_ROTATING
} belay_bloom_kind_t;

/** Options; belay_bloom_options_init() sets the defaults. Either capacity or bits must be given. */
typedef struct belay_bloom_options {
  belay_bytes_t name; /**< part of the keys, NAMESPACE::bloom::{NAME}; 1 to 128 bytes; copied */
  belay_bloom_kind_t kind; /**< default BELAY_BLOOM_PLAIN */

  /** How many items there will be; of a SCALING one in the first layer, of a ROTATING one in a window. 1 to
   * BELAY_BLOOM_CAPACITY_MAX; of these two as many as BELAY_BLOOM_SEGMENT_BITS are enough for: some 3,000,000 at 1 %. */
  int64_t capacity;
  /** With capacity: how much of what was not added is found, when as many have been; of a SCALING one whatever the
   * number. BELAY_BLOOM_ERROR_RATE_MIN to BELAY_BLOOM_ERROR_RATE_MAX; default 0.01. */
  double error_rate;

  int64_t bits; /**< instead of capacity: 1 to BELAY_BLOOM_BITS_MAX; of a ROTATING one, for each
                 * window, to BELAY_BLOOM_SEGMENT_BITS; not of a SCALING one */
  unsigned
      hashes; /**< with bits: how many of them for each item, 1 to BELAY_BLOOM_HASHES_MAX; default 0: 14 */

  /** Another seed sets other bits: the same items do not fail in two filters at once. Default 0. */
  uint64_t seed;
  /** Where items come from somebody who would like to see them fail: NULL (the default), or BELAY_BLOOM_KEY_LEN secret
   * bytes, and a seed of 0. Items are then hashed with SipHash-2-4 under this key instead of XXH3. Without a key,
   * anybody who knows the seed can compute items that set the same bits, and fill the filter or find one that passes
   * for another. With it he cannot compute that; what he can still do is to try, and to remember which of his items
   * were found. It does not protect from those who can read or write the server's keys, beyond that items
   * cannot be guessed from the bits. The server keeps a fingerprint of it, by which a wrong key is noticed. */
  const uint8_t *key;

  /** For how long the filter lives from its creation, whatever happens to it: 1,000 to 315,360,000,000 (ten years), or
   * 0, for ever; default 2,592,000,000, 30 days: no filter is of use when it is full, and what nobody thinks of is gone
   * some day. It is who creates the filter who decides. Of a ROTATING one it has no meaning: it is gone two windows
   * after its last use. */
  int64_t ttl_ms;
  /** Of a ROTATING one: 1,000 to 31,536,000,000; must be given. 0 of the others. */
  int64_t window_ms;
  void *data; /**< belay_bloom_data() */
} belay_bloom_options_t;

BELAY_API void belay_bloom_options_init(belay_bloom_options_t *options);

/** Sends nothing. Returns 0, BELAY_EINVAL, BELAY_ENOMEM, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_bloom_new(belay_client_t *client, const belay_bloom_options_t *options,
                              belay_bloom_t **out);

/* How operations end:
 *
 *   0                   the server answered
 *   BELAY_EUNREACHABLE  nothing was sent (also BELAY_ERESOLVE, BELAY_EBUSY, BELAY_ENOMEM)
 *   BELAY_ETIMEDOUT     nothing was sent: the filter was still being opened
 *   BELAY_EUNKNOWN      sent, and not answered: it may have been executed; or a part of a batch was, and the rest could
 *                       not be. An add is not sent again: whether the item was new cannot be known any more. Look with
 *                       an exists, which, like all else, is sent again
 *   BELAY_EMISMATCH     the server keeps a filter of this name with other options, or what is no filter;
 *                       belay_detail() says what differs. Nothing was done, or, where the filter was
 *                       created anew with other options behind this handle's back, some bits were set
 *   BELAY_ELOST         what was added is gone, at least in part, and no answer can be given. Either the whole filter
 *                       is: it was cleared by somebody, its ttl is over, or the server has lost it: all operations
 *                       under way end so, and the next one creates it anew. Or some of its keys are, by eviction or
 *                       deletion: then every operation that needs one of them ends so, until belay_bloom_clear().
 *                       What an add has left where there was nothing is removed again at once; if this process dies
 *                       before that, or the add is canceled or its answer lost, it stays, a string without a ttl,
 *                       until something is added again, or the filter is created anew or cleared
 *   BELAY_EOVERFLOW     of an add to a SCALING one: there is no room for something new, and never will be. What comes
 *                       before that in a batch may have been added
 *   BELAY_ECANCELED     belay_request_cancel() or a close
 *   another error       the server's refusal, such as BELAY_EWRONGTYPE. Where belay_err_retryable() says that an add_many
 *                       may be tried again, nothing of it was done; else a part of it may have been
 *
 * So no key that was lost is ever taken for an empty one. What cannot be noticed is a server that comes back with
 * older data: items that were added in between are not found. If another user has created the filter anew before
 * this handle looks, it goes on with the new one; belay_bloom_info_t has its generation.
 *
 * A ROTATING one that nobody has added to for two windows is gone by itself, and nothing is lost then. Whether it is that is
 * judged by what this handle has seen of it: if it has not seen that something was added within the last two windows, a
 * filter that is missing is taken for one that has ended, and made anew. So to a handle that is new the loss of the
 * configuration alone, by eviction, looks like an end too: what was added before is new once more.
 *
 * PLAIN ones are read and written bit by bit, and may be spread over a cluster. All keys of a SCALING or a ROTATING one are in
 * one slot, and a script looks after it, which takes some 20 us of the server for an item (more, the more layers there are): a
 * batch of tens of thousands is cut into many calls, and needs a timeout_ms to match.
 *
 * A filter is read, or created, by the first operation of a handle, which takes up to three more round trips, for a new
 * one of many segments many commands; all that is begun meanwhile waits for that. */

/** A callback of the shape of belay/request.h, as those that follow. */
typedef void (*belay_bloom_cb)(belay_request_t *request, int status);

/** answer: of an add: it is new, at least one bit was not set. Of two adds at once one is. Of an exists: it was probably
 * added. false unless status is 0. */
typedef void (*belay_bloom_answer_cb)(belay_request_t *request, int status, bool answer);

/** The same for each item, in their order; n is 0 unless status is 0. Of equal
 * items in one add_many one is new: the first, unless the server refused a part of the batch for a moment. */
typedef void (*belay_bloom_answers_cb)(belay_request_t *request, int status, const bool *answers,
                                       size_t n);

/** How a filter stands. */
typedef struct belay_bloom_info {
  belay_bloom_kind_t kind; /**< as it was made */
  int64_t generation;      /**< a random number, another one after each time it was created */
  int64_t capacity; /**< of all layers; of a ROTATING one of one; 0 if it was created from bits */
  int64_t bits;     /**< of all layers */
  unsigned hashes;  /**< for each item; of several layers, of the newest */
  unsigned
      layers; /**< 1; of a SCALING one any number, of a ROTATING one 0 to 2: none before something was added */
  unsigned segments; /**< keys that hold bits, of all layers */
  int64_t bits_set;  /**< of them */
  /** About how many different items were added, judged by bits_set: right to a few parts in a hundred of what it can
   * hold, too small where saturation is near 1. Of a SCALING one they are counted: those that were new. Of a ROTATING one
   * those of the current window and of the one before; who was added in both counts twice. */
  int64_t items;
  double
      saturation; /**< bits_set / bits; 0.5 where it holds as many as it was made for; of several layers that
                        of the newest */
  int64_t remaining_ms; /**< what is left of it; -1: for ever */
} belay_bloom_info_t;

/** A callback of the shape of belay/request.h: if status is not 0, info is all 0. */
typedef void (*belay_bloom_info_cb)(belay_request_t *request, int status,
                                    const belay_bloom_info_t *info);

/** options: what a filter was made with, so that belay_bloom_new() makes a handle for it, once a name is added, and the
 * key if its items are hashed under one: neither can be read. Its error_rate, if it was made from bits, and ttl_ms, but
 * for 0, are the defaults. If status is not 0, they are all 0, which belay_bloom_new() refuses. */
typedef void (*belay_bloom_made_cb)(belay_request_t *request, int status,
                                    const belay_bloom_options_t *options);

/* All that follow return 0, BELAY_EINVAL, BELAY_ESTATE (the request is pending), BELAY_EBUSY, BELAY_ENOMEM,
 * BELAY_ECLOSING or BELAY_EFORK. Items may be empty, which is an item too. They are hashed before the call returns. */

/** Reads the filter's configuration, or creates it; for who wants to know early whether it is the right one. One that
 * is there is never changed by this. */
BELAY_API int belay_bloom_open(belay_bloom_t *bloom, belay_request_t *request, belay_bloom_cb cb);

/** What the filter that is there was made with, by whomever: this handle's own options but for its name do not matter, and
 * nothing is created. BELAY_EABSENT: there is none. BELAY_EMISMATCH: what is there is no filter. */
BELAY_API int belay_bloom_made(belay_bloom_t *bloom, belay_request_t *request,
                               belay_bloom_made_cb cb);

/** Adds an item, and tells whether it is new, in one step. */
BELAY_API int belay_bloom_add(belay_bloom_t *bloom, belay_request_t *request, belay_bytes_t item,
                              belay_bloom_answer_cb cb);

/** Whether an item was added. Of a PLAIN filter a replica may answer (read_from): what was added a moment ago may not be
 * found there. */
BELAY_API int belay_bloom_exists(belay_bloom_t *bloom, belay_request_t *request, belay_bytes_t item,
                                 belay_bloom_answer_cb cb);

/** 1 to BELAY_BLOOM_ITEMS_MAX items in one round trip. Each is added in one step, all of them are not. Where a batch
 * sets a good part of a segment's bits it travels as a bitmap, and the segment comes back: the client's max_reply should
 * not be less than 4 MiB, nor its max_bytes than 64 MiB. (Where max_reply is less, the batch travels bit by bit.) */
BELAY_API int belay_bloom_add_many(belay_bloom_t *bloom, belay_request_t *request,
                                   const belay_bytes_t *items, size_t n, belay_bloom_answers_cb cb);
BELAY_API int belay_bloom_exists_many(belay_bloom_t *bloom, belay_request_t *request,
                                      const belay_bytes_t *items, size_t n,
                                      belay_bloom_answers_cb cb);

/** How it stands. The server counts bits: about a millisecond for each segment. */
BELAY_API int belay_bloom_info(belay_bloom_t *bloom, belay_request_t *request,
                               belay_bloom_info_cb cb);

/** Removes it, whatever its options were: its configuration and its bits, in the background of the server. Operations
 * that are under way may end with BELAY_ELOST; the next one creates it anew. */
BELAY_API int belay_bloom_clear(belay_bloom_t *bloom, belay_request_t *request, belay_bloom_cb cb);

BELAY_API void *belay_bloom_data(const belay_bloom_t *bloom);

/** Runs once when belay_bloom_close() is through. data: see CLOSING in belay/loop.h. */
typedef void (*belay_bloom_close_cb)(belay_bloom_t *bloom, void *data);

/** Ends it, in any callback: what is pending ends with BELAY_ECANCELED. The filter stays. cb may be NULL.
 *
 * Returns 0, BELAY_EINVAL, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_bloom_close(belay_bloom_t *bloom, belay_bloom_close_cb cb);

/** A plain Bloom filter in the memory of this process: the same options set the same bits. It needs neither a server nor
 * a loop; each may be used by one thread at a time. */
typedef struct belay_bloomset belay_bloomset_t;

/** Of the options name, ttl_ms and data mean nothing here; kind is BELAY_BLOOM_PLAIN. allocator: NULL for malloc and
 * free; copied.
 *
 * Returns 0, BELAY_EINVAL or BELAY_ENOMEM. */
BELAY_API int belay_bloomset_new(const belay_bloom_options_t *options,
                                 const belay_allocator_t *allocator, belay_bloomset_t **out);

/** NULL is ignored. */
BELAY_API void belay_bloomset_free(belay_bloomset_t *set);

/** Adds an item; returns true if it is new. Its bytes are not checked: data may be NULL only if len is 0. */
BELAY_API bool belay_bloomset_add(belay_bloomset_t *set, belay_bytes_t item);

/** Returns true if an item was probably added. Its bytes are not checked either. */
BELAY_API bool belay_bloomset_exists(const belay_bloomset_t *set, belay_bytes_t item);

/** How it stands; generation is 0, remaining_ms is -1. It counts the bits. */
BELAY_API void belay_bloomset_info(const belay_bloomset_t *set, belay_bloom_info_t *out);

/** The bits of a segment, as the server keeps them behind the 8 bytes of its header: bit 0 is the highest of the first
 * byte. NULL if there is no such segment. */
BELAY_API const uint8_t *belay_bloomset_bits(const belay_bloomset_t *set, unsigned segment,
                                             size_t *len);

#ifdef __cplusplus
}
#endif

#endif /* BELAY_BLOOM_H */

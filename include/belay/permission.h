/* Permissions: a level, or a few permission bits, for each of very many users, in one string. */
#ifndef BELAY_PERMISSION_H
#define BELAY_PERMISSION_H

#include <stdbool.h>

#include "belay/request.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Permissions: strings of small numbers of one width, any number of strings, each with its own
 * key. Field i is the w bits from bit i * w on, where w is the width. 16 levels for a million users
 * take 500,000 bytes.
 *
 * Use it if users have numeric ids and few levels or bits each. For sparse ids, use a hash of your
 * own: a string is as long as its highest index requires. For one bit per user that expires, use
 * belay/presence.h.
 *
 * A field that was never set is 0, also if the key does not exist. All programs that share a string
 * must use the same width. The width is part of the key, so that fields of different widths are
 * never confused; belay/config.h turns a difference into an error.
 *
 * @code
 * enum { MAY_READ = 1, MAY_WRITE = 2, MAY_INVITE = 4 };
 *
 * static void on_answer(belay_request_t *request, int status,
 *                       const belay_permission_result_t *results, size_t n) {
 *   if (status == 0 && n == 1 && results[0].answer)
 *     printf("%s may write\n", (const char *)request->data);
 * }
 *
 * int may_write(belay_permission_t *forum, belay_request_t *request, uint64_t user) {
 *   belay_permission_field_t field = {.index = user, .value = MAY_READ | MAY_WRITE};
 *   return belay_permission_has(forum, request, belay_string("forum"), &field, 1, on_answer);
 * }
 * @endcode */
typedef struct belay_permission belay_permission_t;

#define BELAY_PERMISSION_KEY_MAX ((size_t)1024)       /**< bytes of a key */
#define BELAY_PERMISSION_WIDTH_MAX 63                 /**< bits of a field */
#define BELAY_PERMISSION_BITS_MAX (UINT64_C(1) << 32) /**< bits of a string: 512 MiB */
#define BELAY_PERMISSION_FIELDS_MAX ((size_t)16384)   /**< fields in one operation */
#define BELAY_PERMISSION_GRANTS_MAX ((size_t)2048)    /**< fields in one grant or revoke */
#define BELAY_PERMISSION_NAMES_MAX ((size_t)65536)    /**< names of values */

/** Options; belay_permission_options_init() sets the defaults. One of width, levels and names is
 * required. */
typedef struct belay_permission_options {
  /** Name of the strings, 0 to 128 bytes; copied. It is part of the keys:
   * NAMESPACE::permission::NAME::{KEY}, followed by the width, "::u8" for 8 bits. Default: no
   * name. */
  belay_bytes_t name;
  /** Width of a field in bits, 1 to BELAY_PERMISSION_WIDTH_MAX. Default 0: the smallest width for
   * `levels` values. */
  unsigned width;
  /** Number of values of a field, 1 to 2^63, which must fit into width. Default 0: the number of
   * names, or all values of width. belay does not check that a value is below it, only that the
   * value fits into width. */
  uint64_t levels;
  /** Names of the values from 0 on, terminated strings; copied. A NULL entry: that value has no
   * name. Default NULL: no names. */
  const char *const *names;
  /** Number of names: at most BELAY_PERMISSION_NAMES_MAX, and at most the number of values. Default
   * 0. */
  size_t names_len;
  /** Largest index. (max_index + 1) * width is at most BELAY_PERMISSION_BITS_MAX. It bounds the
   * memory that one call can make the server allocate. Default 1,048,575. */
  uint64_t max_index;
  /** Lifetime of a string after its last change, in milliseconds: 1,000 to 31,536,000,000. A set,
   * grant or revoke that changes no value starts it again too; a compare-and-set that does not set
   * the field does not. With a ttl every change is a script. It should be the same in all programs
   * that share a string. Default 0: no end; but a string that has a ttl of another program keeps
   * it. */
  int64_t ttl_ms;
  /** Pointer of the caller, returned by belay_permission_data(). Default NULL. */
  void *data;
} belay_permission_options_t;

/** Set all options to their defaults. */
BELAY_API void belay_permission_options_init(belay_permission_options_t *options);

/** Make a handle, without the server. Returns 0, BELAY_EINVAL (belay_detail() names the option),
 * BELAY_ENOMEM, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_permission_new(belay_client_t *client,
                                   const belay_permission_options_t *options,
                                   belay_permission_t **out);

/** Return the number of bits that `levels` values require: the logarithm to base 2, rounded up, and
 * at least 1. 0: levels is 0, or more than 2^63. */
BELAY_API unsigned belay_permission_width(uint64_t levels);

/** Return the name of a value, or "unknown" if it has none. Never NULL. Valid until the handle is
 * closed. */
BELAY_API const char *belay_permission_name(const belay_permission_t *permission, uint64_t value);

/** A field, and a value or bits for it. */
typedef struct belay_permission_field {
  uint64_t index; /**< index of the field, 0 to max_index */
  uint64_t value; /**< value or bits, below 2^width */
} belay_permission_field_t;

/** Result for one field. */
typedef struct belay_permission_result {
  /** Index of the field, as given. */
  uint64_t index;
  /** Value of the field before the operation. */
  uint64_t before;
  /** Value of the field after the operation. */
  uint64_t value;
  /** Answer of the operation:
   *
   *   belay_permission_get()              true if the value is not 0
   *   belay_permission_has()              true if all bits are set
   *   set, grant, revoke                  true if the value changed
   *   belay_permission_compare_and_set()  true if the field was set */
  bool answer;
} belay_permission_result_t;

/** Receives n results, in the order of the fields; n is 0 if status is not 0. CALLBACKS in
 * belay/request.h has the common rules and errors. Other values of status:
 *
 *   BELAY_EUNKNOWN       sent and not answered; it may have been executed. Reads are retried until
 *                        the deadline. Changes are not, because a retry could not report the values
 *                        before. The caller may repeat the same set, grant or revoke */
typedef void (*belay_permission_cb)(belay_request_t *request, int status,
                                    const belay_permission_result_t *results, size_t n);

/* ---- operations ----
 *
 * Each function returns 0, BELAY_EINVAL (also for an index or value that is too large),
 * BELAY_ESTATE (the request is pending), BELAY_EBUSY, BELAY_ENOMEM, BELAY_ECLOSING or BELAY_EFORK.
 * After an error the callback does not run.
 *
 * A key has 1 to BELAY_PERMISSION_KEY_MAX bytes. Arguments are copied. An operation has 1 to
 * BELAY_PERMISSION_FIELDS_MAX fields, a grant or revoke 1 to BELAY_PERMISSION_GRANTS_MAX. It is one
 * step on the server, which handles the fields in their order. A replica never answers. */

/** Read fields. Retried if the reply is lost. */
BELAY_API int belay_permission_get(belay_permission_t *permission, belay_request_t *request,
                                   belay_bytes_t key, const uint64_t *indices, size_t n,
                                   belay_permission_cb cb);

/** Test whether all bits of value are set in each field. Retried if the reply is lost. */
BELAY_API int belay_permission_has(belay_permission_t *permission, belay_request_t *request,
                                   belay_bytes_t key, const belay_permission_field_t *fields,
                                   size_t n, belay_permission_cb cb);

/** Set fields to values. result.before is the old value, so a field of one bit can answer "is this
 * the first time?". Not retried. */
BELAY_API int belay_permission_set(belay_permission_t *permission, belay_request_t *request,
                                   belay_bytes_t key, const belay_permission_field_t *fields,
                                   size_t n, belay_permission_cb cb);

/** Set the bits of value in each field. The other bits stay, also under concurrent changes. Not
 * retried. */
BELAY_API int belay_permission_grant(belay_permission_t *permission, belay_request_t *request,
                                     belay_bytes_t key, const belay_permission_field_t *fields,
                                     size_t n, belay_permission_cb cb);

/** Clear the bits of value in each field. The other bits stay, also under concurrent changes. Not
 * retried. */
BELAY_API int belay_permission_revoke(belay_permission_t *permission, belay_request_t *request,
                                      belay_bytes_t key, const belay_permission_field_t *fields,
                                      size_t n, belay_permission_cb cb);

/** A change of one field that depends on its value. */
typedef struct belay_permission_swap {
  uint64_t index;    /**< index of the field, 0 to max_index */
  uint64_t expected; /**< value that the field must have, below 2^width */
  uint64_t value;    /**< new value, below 2^width */
} belay_permission_swap_t;

/** Set a field to swap->value if its value is swap->expected. Not retried. */
BELAY_API int belay_permission_compare_and_set(belay_permission_t *permission,
                                               belay_request_t *request, belay_bytes_t key,
                                               const belay_permission_swap_t *swap,
                                               belay_permission_cb cb);

/** Delete the string of a key with the width of this handle, whatever it holds, and the
 * configuration record (belay/config.h). Strings of other widths stay. The server frees the memory
 * in the background. n is 0. Retried if the reply is lost. */
BELAY_API int belay_permission_clear(belay_permission_t *permission, belay_request_t *request,
                                     belay_bytes_t key, belay_permission_cb cb);

/** Return options.data. */
BELAY_API void *belay_permission_data(const belay_permission_t *permission);

/** Runs once, on the loop, after a close. See CLOSING in belay/loop.h. */
typedef void (*belay_permission_close_cb)(belay_permission_t *permission, void *data);

/** Close the handle, as CLOSING in belay/loop.h says. Strings stay on the server. Returns 0,
 * BELAY_EINVAL, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_permission_close(belay_permission_t *permission, belay_permission_close_cb cb);

#ifdef __cplusplus
}
#endif

#endif /* BELAY_PERMISSION_H */

/* Permissions: small numbers, very many of them, in one string: a level for each user, or bits of what he may do. */
#ifndef BELAY_PERMISSION_H
#define BELAY_PERMISSION_H

#include <stdbool.h>

#include "belay/request.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Strings of fields of one width, any number of strings, each with a key of its own. The field of index i is w bits
 * from bit i * w on, so that a million users' 16 levels are half a megabyte; the string is as long as its highest index
 * needs. A field that was never set is 0. All who share a string must say the same width: it is part of the key, so that
 * fields of another width are never taken for these. belay/config.h makes another width an error.
 *
 * @code
 * enum { MAY_READ = 1, MAY_WRITE = 2, MAY_INVITE = 4 };
 *
 * static void on_asked(belay_request_t *request, int status, const belay_permission_result_t *results, size_t n) {
 *   (void)n;
 *   if (status == 0 && results[0].yes)
 *     printf("%s may\n", (const char *)request->data);
 * }
 *
 * int open_forum(belay_client_t *client, belay_permission_t **out) {
 *   belay_permission_options_t options;
 *   belay_permission_options_init(&options);
 *   options.width = 3;
 *   return belay_permission_new(client, &options, out);
 * }
 *
 * int ask(belay_permission_t *forum, belay_request_t *request, uint64_t user) {
 *   belay_permission_field_t field = {.index = user, .value = MAY_READ | MAY_WRITE};
 *   return belay_permission_has(forum, request, belay_string("forum"), &field, 1, on_asked);
 * }
 * @endcode */
typedef struct belay_permission belay_permission_t;

#define BELAY_PERMISSION_KEY_MAX ((size_t)1024)       /**< bytes of a key */
#define BELAY_PERMISSION_WIDTH_MAX 63                 /**< bits of a field */
#define BELAY_PERMISSION_BITS_MAX (UINT64_C(1) << 32) /**< of a string: 512 MiB */
#define BELAY_PERMISSION_FIELDS_MAX ((size_t)16384)   /**< in one operation */
#define BELAY_PERMISSION_GRANTS_MAX ((size_t)2048)    /**< in one grant or revoke */
#define BELAY_PERMISSION_NAMES_MAX ((size_t)65536)    /**< of values */

/** Options; belay_permission_options_init() sets the defaults. */
typedef struct belay_permission_options {
  /** Part of the keys, NAMESPACE::permission::NAME::u8::{KEY} for a width of 8; at most 128 bytes; copied. */
  belay_bytes_t name;
  /** bits of a field, 1 to BELAY_PERMISSION_WIDTH_MAX; default 0: those that so many levels need */
  unsigned width;
  /** how many values there are: 1 to 2^63, and no more than fit into width; default 0: as many as names, or as width
   * has. One of width, levels and names must be given. That a value is below it is not checked, only its width. */
  uint64_t levels;
  /** The name of each value, from 0 on: texts that end with a 0, copied; NULL: that value has none. At most
   * BELAY_PERMISSION_NAMES_MAX of them, and no more than there are values. */
  const char *const *names;
  size_t names_len; /**< how many; default 0 */
  /** the largest index; (max_index + 1) * width is at most BELAY_PERMISSION_BITS_MAX; default 1,048,575. It bounds the
   * memory that one call can make the server take */
  uint64_t max_index;
  /** A string is gone when nothing in it was changed for so long: 1,000 to 31,536,000,000. Default 0: it stays for ever,
   * since what users may do is to be forgotten by nobody but you; but one to which somebody else has given a ttl keeps
   * that, so all who share a string should say the same. With a ttl every change is a script. */
  int64_t ttl_ms;
  void *data; /**< belay_permission_data() */
} belay_permission_options_t;

BELAY_API void belay_permission_options_init(belay_permission_options_t *options);

/** Sends nothing. Returns 0, BELAY_EINVAL, BELAY_ENOMEM, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_permission_new(belay_client_t *client,
                                   const belay_permission_options_t *options,
                                   belay_permission_t **out);

/** The bits that a field needs for so many levels: the logarithm to base 2, rounded up, and at least 1. 0: there are
 * none, or more than 2^63. */
BELAY_API unsigned belay_permission_width(uint64_t levels);

/** The name of a value, or "unknown" if it has none. Never NULL; it lives as long as the handle. */
BELAY_API const char *belay_permission_name(const belay_permission_t *permission, uint64_t value);

/** A field, and a value or bits for it. */
typedef struct belay_permission_field {
  uint64_t index; /**< 0 to max_index */
  uint64_t value; /**< below 2^width */
} belay_permission_field_t;

/** What came of one field. */
typedef struct belay_permission_result {
  uint64_t index;  /**< as it was given */
  uint64_t before; /**< its value before */
  uint64_t value;  /**< and now */
  /** belay_permission_get(): it is not 0; belay_permission_has(): all of the bits are there; set, grant, revoke: it is
   * another value than before; belay_permission_compare_and_set(): it was done */
  bool yes;
} belay_permission_result_t;

/** A callback of the shape of belay/request.h. results: n of them in the order of the fields; n is 0 unless status is 0.
 * status:
 *
 *   0                    the server answered
 *   BELAY_EUNREACHABLE   nothing was sent (also BELAY_ERESOLVE, BELAY_EBUSY, BELAY_ENOMEM)
 *   BELAY_EUNKNOWN       sent, and not answered: it may have been executed. What only asks is sent again until its
 *                        deadline; what changes something is not, since what was before could not be told any more.
 *                        To set, grant or revoke the same once more is safe
 *   BELAY_ECANCELED      belay_request_cancel() or a close
 *   another error        the server's refusal, such as BELAY_EWRONGTYPE */
typedef void (*belay_permission_cb)(belay_request_t *request, int status,
                                    const belay_permission_result_t *results, size_t n);

/* All that follow return 0, BELAY_EINVAL, BELAY_ESTATE (the request is pending), BELAY_EBUSY, BELAY_ENOMEM,
 * BELAY_ECLOSING or BELAY_EFORK. A key has 1 to BELAY_PERMISSION_KEY_MAX bytes; all that is given is copied. An operation
 * has 1 to BELAY_PERMISSION_FIELDS_MAX fields, a grant or a revoke 1 to BELAY_PERMISSION_GRANTS_MAX, and is done at one
 * time, one field after the other. An index or a value that is too large is BELAY_EINVAL, and nothing is sent. */

/** What the fields are. Sent again. */
BELAY_API int belay_permission_get(belay_permission_t *permission, belay_request_t *request,
                                   belay_bytes_t key, const uint64_t *indices, size_t n,
                                   belay_permission_cb cb);

/** Whether all bits of value are in a field. Sent again. */
BELAY_API int belay_permission_has(belay_permission_t *permission, belay_request_t *request,
                                   belay_bytes_t key, const belay_permission_field_t *fields,
                                   size_t n, belay_permission_cb cb);

/** Sets them; before says what they were, so that a field of one bit answers "is this the first time?". Never sent
 * again. */
BELAY_API int belay_permission_set(belay_permission_t *permission, belay_request_t *request,
                                   belay_bytes_t key, const belay_permission_field_t *fields,
                                   size_t n, belay_permission_cb cb);

/** Sets the bits of value in them, and leaves the others as they are, whoever changes them at the same time. Never sent
 * again. */
BELAY_API int belay_permission_grant(belay_permission_t *permission, belay_request_t *request,
                                     belay_bytes_t key, const belay_permission_field_t *fields,
                                     size_t n, belay_permission_cb cb);

/** Clears the bits of value in them, and leaves the others as they are. Never sent again. */
BELAY_API int belay_permission_revoke(belay_permission_t *permission, belay_request_t *request,
                                      belay_bytes_t key, const belay_permission_field_t *fields,
                                      size_t n, belay_permission_cb cb);

/** A change of one field that depends on its value. */
typedef struct belay_permission_swap {
  uint64_t index;    /**< of the field */
  uint64_t expected; /**< the value that it must have */
  uint64_t value;    /**< the value that it gets */
} belay_permission_swap_t;

/** Sets a field to value if it is `expected`. Never sent again. */
BELAY_API int belay_permission_compare_and_set(belay_permission_t *permission,
                                               belay_request_t *request, belay_bytes_t key,
                                               const belay_permission_swap_t *swap,
                                               belay_permission_cb cb);

/** Forgets all fields of a key, whatever it holds, and its configuration record (belay/config.h), in the background of
 * the server; there are no results. Sent again. */
BELAY_API int belay_permission_clear(belay_permission_t *permission, belay_request_t *request,
                                     belay_bytes_t key, belay_permission_cb cb);

BELAY_API void *belay_permission_data(const belay_permission_t *permission);

/** Runs once when belay_permission_close() is through. data: see CLOSING in belay/loop.h. */
typedef void (*belay_permission_close_cb)(belay_permission_t *permission, void *data);

/** Ends it, in any callback: what is pending ends with BELAY_ECANCELED. cb may be NULL.
 *
 * Returns 0, BELAY_EINVAL, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_permission_close(belay_permission_t *permission, belay_permission_close_cb cb);

#ifdef __cplusplus
}
#endif

#endif /* BELAY_PERMISSION_H */

/* Configuration records: what all users of a set must agree on, kept on the server beside the set. */
#ifndef BELAY_CONFIG_H
#define BELAY_CONFIG_H

#include "belay/request.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Records of the configuration of permissions, presences and rankings. The options of these three decide where or how
 * a set is kept: fields of another width have another key, and a board whose ties are broken by time has other keys
 * than one whose ties are not. A program with other options than the rest reads an empty set and gets no error. A record
 * prevents that: each program opens the record once, before it uses the set, and a contradiction is BELAY_EMISMATCH.
 *
 * A record is a hash with up to BELAY_CONFIG_FIELDS_MAX fields. Its key is in the slot of the set's keys:
 *
 *   permission   NAMESPACE::permission::NAME::{KEY}::config
 *   presence     NAMESPACE::presence::{NAME}::config
 *   ranking      NAMESPACE::ranking::NAME::{BOARD}::config
 *
 * belay_permission_clear(), belay_presence_reset() and belay_ranking_clear() remove it with the set. No other operation of
 * a set reads or writes it: it costs one round trip when it is opened, and nothing after that.
 *
 * The command `belay` keeps these fields (values are decimal digits unless the table says otherwise):
 *
 *   permission   width, names (of the bits, from the lowest on, separated by commas), max_id, ttl_ms
 *   presence     members ("ids" or "names"), window_ms, slices, max_id, ttl_ms
 *   ranking      order ("high" or "low"), ties ("member", "earlier" or "later"), max_members, ttl_ms
 *
 * @code
 * static void on_config(belay_request_t *request, int status, const belay_config_field_t *fields, size_t n) {
 *   (void)request, (void)fields, (void)n;
 *   if (status == BELAY_EMISMATCH)
 *     printf("another program uses another width\n");
 * }
 *
 * int agree(belay_config_t *config, belay_request_t *request) {
 *   static const belay_config_field_t width = {.name = "width", .value = "3"};
 *   return belay_config_open(config, request, belay_string("forum"), &width, 1, on_config);
 * }
 * @endcode */
typedef struct belay_config belay_config_t;

#define BELAY_CONFIG_FIELDS_MAX ((size_t)32)  /**< fields of a record */
#define BELAY_CONFIG_NAME_MAX ((size_t)64)    /**< bytes of a field's name */
#define BELAY_CONFIG_VALUE_MAX ((size_t)8192) /**< bytes of a field's value */

/** What the records of a handle belong to. */
typedef enum belay_config_kind {
  BELAY_CONFIG_PERMISSION, /**< one record for each key of a permission handle */
  BELAY_CONFIG_PRESENCE,   /**< one record for a presence handle */
  BELAY_CONFIG_RANKING     /**< one record for each board of a ranking handle */
} belay_config_kind_t;

/** Options; belay_config_options_init() sets the defaults. */
typedef struct belay_config_options {
  belay_config_kind_t kind; /**< default BELAY_CONFIG_PERMISSION */
  /** Name of the permission, presence or ranking handle; at most 128 bytes, of a presence at least 1; copied. */
  belay_bytes_t name;
  /** Lifetime of a record after each belay_config_open(), in milliseconds: 1,000 to 63,072,000,000. Default 0: no end. Use
   * at least the lifetime of the set, so that the record does not end before the set does. */
  int64_t ttl_ms;
  void *data; /**< belay_config_data() */
} belay_config_options_t;

BELAY_API void belay_config_options_init(belay_config_options_t *options);

/** Makes a handle. Sends nothing. Returns 0, BELAY_EINVAL, BELAY_ENOMEM, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_config_new(belay_client_t *client, const belay_config_options_t *options,
                               belay_config_t **out);

/** How belay_config_open() treats a field that the record already has. */
typedef enum belay_config_rule {
  BELAY_CONFIG_SAME,   /**< another value than the recorded one is BELAY_EMISMATCH */
  BELAY_CONFIG_LATEST, /**< the new value replaces the recorded one */
  /** The record keeps the larger number. Both are decimal digits, at most 15; a recorded value that is none is
   * BELAY_EMISMATCH. */
  BELAY_CONFIG_LARGEST
} belay_config_rule_t;

/** A field of a record. */
typedef struct belay_config_field {
  const char *name;         /**< 1 to BELAY_CONFIG_NAME_MAX bytes, terminated */
  const char *value;        /**< 0 to BELAY_CONFIG_VALUE_MAX bytes, terminated */
  belay_config_rule_t rule; /**< for belay_config_open(); default BELAY_CONFIG_SAME */
} belay_config_field_t;

/** A callback of the shape of belay/request.h. fields: all n fields of the record, in no order; n is 0 unless status is
 * 0. Their rule is BELAY_CONFIG_SAME. status:
 *
 *   0                    the server answered
 *   BELAY_EABSENT        of a read: there is no record
 *   BELAY_EMISMATCH      of an open: a field has another value, and belay_detail() names both values; nothing was
 *                        written. Of both: the key holds a hash that is no record
 *   BELAY_EUNREACHABLE   nothing was sent (also BELAY_ERESOLVE, BELAY_EBUSY, BELAY_ENOMEM)
 *   BELAY_EUNKNOWN       sent, and not answered: an open may have been executed. Both are sent again until the deadline
 *   BELAY_ECANCELED      belay_request_cancel() or a close
 *   another error        the server's refusal, such as BELAY_EWRONGTYPE */
typedef void (*belay_config_cb)(belay_request_t *request, int status,
                                const belay_config_field_t *fields, size_t n);

/* Both return 0, BELAY_EINVAL, BELAY_ESTATE (the request is pending), BELAY_EBUSY, BELAY_ENOMEM, BELAY_ECLOSING or
 * BELAY_EFORK. key is the key of the permission or the board, 1 to 1,024 bytes; of a presence it is NULL. All arguments
 * are copied. */

/** Reads the record. Writes nothing. */
BELAY_API int belay_config_read(belay_config_t *config, belay_request_t *request, belay_bytes_t key,
                                belay_config_cb cb);

/** Creates the record, or compares it with n fields (1 to BELAY_CONFIG_FIELDS_MAX) and adds those that it does not have.
 * Its lifetime begins anew. All in one step: two programs that create a record at the same time with different values do
 * not both get 0. */
BELAY_API int belay_config_open(belay_config_t *config, belay_request_t *request, belay_bytes_t key,
                                const belay_config_field_t *fields, size_t n, belay_config_cb cb);

BELAY_API void *belay_config_data(const belay_config_t *config);

/** Runs once when belay_config_close() is through. data: see CLOSING in belay/loop.h. */
typedef void (*belay_config_close_cb)(belay_config_t *config, void *data);

/** Closes the handle; legal in any callback. Pending requests end with BELAY_ECANCELED. cb may be NULL.
 *
 * Returns 0, BELAY_EINVAL, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_config_close(belay_config_t *config, belay_config_close_cb cb);

#ifdef __cplusplus
}
#endif

#endif /* BELAY_CONFIG_H */

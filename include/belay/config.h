/* Configuration records: the options that all users of a set must share, stored with the set. */
#ifndef BELAY_CONFIG_H
#define BELAY_CONFIG_H

#include "belay/request.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Configuration records of permissions, presences and rankings. The options of these three
 * determine the keys of a set, or its meaning. A program with other options reads an empty set and
 * gets no error. For example, fields of another width have another key, and a board with ties by
 * time has other keys than one without. With a record it gets BELAY_EMISMATCH.
 *
 * Use it if several programs, or several versions of a program, share a set. Each program opens the
 * record once, before it uses the set. Other operations on the set neither read nor write the
 * record, so it costs one round trip.
 *
 * A record is a hash with up to BELAY_CONFIG_FIELDS_MAX fields. Its key is in the slot of the set's
 * keys:
 *
 *   permission   NAMESPACE::permission::NAME::{KEY}::config
 *   presence     NAMESPACE::presence::{NAME}::config
 *   ranking      NAMESPACE::ranking::NAME::{BOARD}::config
 *
 * belay_permission_clear(), belay_presence_reset() and belay_ranking_clear() delete the record with
 * the set.
 *
 * The command `belay` stores these fields (values are decimal digits unless noted otherwise):
 *
 *   permission   width, names (of the bits, from the lowest on, separated by commas), max_id,
 *                ttl_ms
 *   presence     members ("ids" or "names"), window_ms, slices, max_id, ttl_ms
 *   ranking      order ("high" or "low"), ties ("member", "earlier" or "later"), max_members,
 *                ttl_ms
 *
 * @code
 * static void on_config(belay_request_t *request, int status, const belay_config_field_t *fields,
 *                       size_t n) {
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

/** Type of the sets to which the records of a handle belong. */
typedef enum belay_config_kind {
  BELAY_CONFIG_PERMISSION, /**< one record per key of a permission handle */
  BELAY_CONFIG_PRESENCE,   /**< one record per presence handle */
  BELAY_CONFIG_RANKING     /**< one record per board of a ranking handle */
} belay_config_kind_t;

/** Options; belay_config_options_init() sets the defaults. */
typedef struct belay_config_options {
  /** Type of the sets. Default BELAY_CONFIG_PERMISSION. */
  belay_config_kind_t kind;
  /** Name of the permission, presence or ranking handle, 0 to 128 bytes, for a presence at least 1;
   * copied. */
  belay_bytes_t name;
  /** Lifetime of a record after each belay_config_open(), in milliseconds: 1,000 to 63,072,000,000.
   * Use at least the lifetime of the set, so that the record does not expire before the set.
   * Default 0: no end. */
  int64_t ttl_ms;
  /** Pointer of the caller, returned by belay_config_data(). Default NULL. */
  void *data;
} belay_config_options_t;

/** Set all options to their defaults. */
BELAY_API void belay_config_options_init(belay_config_options_t *options);

/** Make a handle, without the server. Returns 0, BELAY_EINVAL (belay_detail() names the option),
 * BELAY_ENOMEM, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_config_new(belay_client_t *client, const belay_config_options_t *options,
                               belay_config_t **out);

/** Rule of belay_config_open() for a field that the record already has. */
typedef enum belay_config_rule {
  BELAY_CONFIG_SAME,   /**< a value that differs from the stored one is BELAY_EMISMATCH */
  BELAY_CONFIG_LATEST, /**< the new value replaces the stored one */
  /** The record keeps the larger number. If the stored or the given value is not 1 to 15 decimal
   * digits: BELAY_EMISMATCH. */
  BELAY_CONFIG_LARGEST
} belay_config_rule_t;

/** A field of a record. */
typedef struct belay_config_field {
  const char *name;         /**< name, 1 to BELAY_CONFIG_NAME_MAX bytes, terminated */
  const char *value;        /**< value, 0 to BELAY_CONFIG_VALUE_MAX bytes, terminated */
  belay_config_rule_t rule; /**< rule of belay_config_open(). Default BELAY_CONFIG_SAME */
} belay_config_field_t;

/** Receives all n fields of the record, in no order, with the rule BELAY_CONFIG_SAME; n is 0 if
 * status is not 0. CALLBACKS in belay/request.h has the common rules and errors. Other values of
 * status:
 *
 *   BELAY_EABSENT        of a read: there is no record
 *   BELAY_EMISMATCH      of an open: a field has another value, and belay_detail() names both
 *                        values; or the record would have more than BELAY_CONFIG_FIELDS_MAX fields.
 *                        Nothing was written. Of both: the key holds a hash that is not a record
 *   BELAY_EUNKNOWN       an open may have been executed. A retry that finds one of the errors above
 *                        also ends with BELAY_EUNKNOWN (belay/request.h) */
typedef void (*belay_config_cb)(belay_request_t *request, int status,
                                const belay_config_field_t *fields, size_t n);

/* ---- operations ----
 *
 * Each function returns 0, BELAY_EINVAL, BELAY_ESTATE (the request is pending), BELAY_EBUSY,
 * BELAY_ENOMEM, BELAY_ECLOSING or BELAY_EFORK. After an error the callback does not run. key is the
 * key of the permission or the board, 1 to 1,024 bytes; for a presence it is NULL (others are
 * BELAY_EINVAL). Arguments are copied. */

/** Read the record. It writes nothing. Retried if the reply is lost. */
BELAY_API int belay_config_read(belay_config_t *config, belay_request_t *request, belay_bytes_t key,
                                belay_config_cb cb);

/** Create the record, or compare it with n fields (1 to BELAY_CONFIG_FIELDS_MAX) and add the fields
 * that it does not have, with any value. A second field of the same name is compared with the
 * first. The lifetime starts again. All in one step: if two programs create a record with different
 * values at the same time, only one of them gets 0. Retried if the reply is lost. */
BELAY_API int belay_config_open(belay_config_t *config, belay_request_t *request, belay_bytes_t key,
                                const belay_config_field_t *fields, size_t n, belay_config_cb cb);

/** Return options.data. */
BELAY_API void *belay_config_data(const belay_config_t *config);

/** Runs once, on the loop, after a close. See CLOSING in belay/loop.h. */
typedef void (*belay_config_close_cb)(belay_config_t *config, void *data);

/** Close the handle, as CLOSING in belay/loop.h says. Records stay on the server. Returns 0,
 * BELAY_EINVAL, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_config_close(belay_config_t *config, belay_config_close_cb cb);

#ifdef __cplusplus
}
#endif

#endif /* BELAY_CONFIG_H */

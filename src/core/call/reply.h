/* A reply, and functions that read it strictly: they accept only the expected type and range. */
#ifndef BELAY_CORE_CALL_REPLY_H
#define BELAY_CORE_CALL_REPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum belay__reply_type {
  BELAY__REPLY_NIL,
  BELAY__REPLY_STATUS,
  BELAY__REPLY_STRING,
  BELAY__REPLY_INTEGER,
  BELAY__REPLY_ERROR,
  BELAY__REPLY_ARRAY
} belay__reply_type_t;

/* Valid until the callback that received it returns. */
typedef struct belay__reply belay__reply_t;
struct belay__reply {
  belay__reply_type_t type;
  int64_t integer;        /* Value of an INTEGER */
  const char *str;        /* Bytes of a STATUS, STRING or ERROR, with a terminating 0 */
  size_t len;             /* Number of bytes, without the terminating 0 */
  belay__reply_t **items; /* Elements of an ARRAY, `count` of them; none is NULL */
  size_t count;
};

/* Each of the next three functions returns true and sets *out if the reply has the described form,
 * else returns false.
 *
 * The form: an integer within min..max. */
bool belay__reply_integer(const belay__reply_t *reply, int64_t min, int64_t max, int64_t *out);

/* The form: a string of decimal digits, whose number is within min..max. */
bool belay__reply_number(const belay__reply_t *reply, uint64_t min, uint64_t max, uint64_t *out);

/* The form: a string that is a signed 64-bit number as the server writes it, without leading
 * zeros. */
bool belay__reply_int64(const belay__reply_t *reply, int64_t *out);

/* Return the value of a field of INFO, whose lines are "name:value". The value has *len bytes,
 * without the line end. NULL if the reply is not a string or has no such line. */
const char *belay__info_field(const belay__reply_t *info, const char *name, size_t *len);

/* Read the value of a field of INFO as a number. Returns true and sets *out if the value is decimal
 * digits and within min..max; otherwise returns false. */
bool belay__info_number(const belay__reply_t *info, const char *name, uint64_t min, uint64_t max,
                        uint64_t *out);

/* true if the reply is a string or status with exactly these bytes. */
bool belay__reply_is(const belay__reply_t *reply, const char *str, size_t len);

/* Return the value of a field in an array of name, value, name, value. NULL if there is no such
 * field. */
const belay__reply_t *belay__reply_field(const belay__reply_t *reply, const char *name);

#endif /* BELAY_CORE_CALL_REPLY_H */

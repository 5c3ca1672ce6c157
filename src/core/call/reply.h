/* A reply as the core sees it, and its strict reading: a reply is what was expected or it is wrong. */
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

/* Valid until the callback that it was handed to returns. */
typedef struct belay__reply belay__reply_t;
struct belay__reply {
  belay__reply_type_t type;
  int64_t integer;        /* INTEGER */
  const char *str;        /* STATUS, STRING, ERROR: len bytes and a 0 */
  size_t len;             /* */
  belay__reply_t **items; /* ARRAY: count of them; none is NULL */
  size_t count;
};

/* An integer within min..max: true, and *out is set. */
bool belay__reply_integer(const belay__reply_t *reply, int64_t min, int64_t max, int64_t *out);

/* A string of decimal digits, a number within min..max: true, and *out is set. */
bool belay__reply_number(const belay__reply_t *reply, uint64_t min, uint64_t max, uint64_t *out);

/* A string that is a number of 64 bits as the server writes it, without leading zeros: true, and *out is set. */
bool belay__reply_int64(const belay__reply_t *reply, int64_t *out);

/* The value of a field of INFO, whose lines are "name:value": len bytes, without the end of the line. NULL if the reply is no
 * string or has no such line. */
const char *belay__info_field(const belay__reply_t *info, const char *name, size_t *len);

/* The same for a number: decimal digits, within min..max: true, and *out is set. */
bool belay__info_number(const belay__reply_t *info, const char *name, uint64_t min, uint64_t max,
                        uint64_t *out);

/* Exactly these bytes, as a string or status. */
bool belay__reply_is(const belay__reply_t *reply, const char *str, size_t len);

/* A field of a reply that is an array of name, value, name, value; NULL if it is not there. */
const belay__reply_t *belay__reply_field(const belay__reply_t *reply, const char *name);

#endif /* BELAY_CORE_CALL_REPLY_H */

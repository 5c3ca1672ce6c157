/* The scripts of the cache, and foreign values in their keys. %G is a generation, %R a record or
 * an invalid one, %U eight bytes of an envelope. */
#include "sim/conformance/conformance.h"

#define PAIR "{v} {v}gen"

// clang-format off
const conformance_row_t conformance_cache[] = {
    /* a load, from its beginning to either end */
    ROWS(
      "EVAL @cache_begin 2 " PAIR " %G %G %t|EVAL @cache_begin 2 " PAIR " %G %G %t|"
      "EVALSHA $cache_begin 2 " PAIR " %G %G %t|EVAL @cache_begin 2 " PAIR " %G %G %e|"
      "EVAL @cache_fill 2 " PAIR " %G %R %t %H|EVAL @cache_fill 2 " PAIR " %G %R %t %H|"
      "EVALSHA $cache_fill 2 " PAIR " %G %R %t %H|EVAL @cache_fill 2 " PAIR " %G %R %e %H|"
      "EVAL @cache_fail 2 " PAIR " %G %R %t %U %H|"
      "EVALSHA $cache_fail 2 " PAIR " %G %R %t %U %H|"
      "EVAL @cache_fail 2 " PAIR " %G %R %e %U %H|EVAL @cache_touch 1 {v} %U %t %e|"
      "EVALSHA $cache_touch 1 {v} %U %t %e|EVAL @cache_touch 1 {v} %U %e %e"),
    ROWS_OF(LIKE_BYTES, ROW_PAUSE,
      "EVAL @cache_begin 2 " PAIR " %G %G %x|EVAL @cache_fill 2 " PAIR " %G %R %x PUBLISH"),
    /* tags */
    ROWS(
      "EVAL @cache_tag 1 {v}tag %G %t|EVALSHA $cache_tag 1 {v}tag %G %t|"
      "EVAL @cache_tag 1 {v}tag %G %e"),
    /* commands of a cache without a script */
    ROWS(
      "DEL " PAIR "|DEL {v}tag|DEL {v}gen|GET {v}|GET {v}gen|GETRANGE {v} 48 63|"
      "PUBLISH {v}::filled %v"),
    ROWS_LIKE(LIKE_MS, "PTTL {v}|PTTL {v}gen|PTTL {v}tag"),
    /* invalid records and other types */
    ROWS(
      "SET {v} %R PX %t|SET {v} %v|SET {v}gen %G PX %t|SET {v}tag %G|RPUSH {v} %v|"
      "SADD {v}gen %m|HSET {v}tag a b|DEL " PAIR " {v}tag|DEL " PAIR " {v}tag"),
    END,
};
// clang-format on

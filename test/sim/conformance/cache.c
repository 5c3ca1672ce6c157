/* The scripts of the cache, and foreign values in their keys. %G is a generation, %R a record or
 * an invalid one, %U eight bytes of an envelope. */
#include "sim/conformance/conformance.h"

#define PAIR "{v} {v}gen"

const conformance_row_t conformance_cache[] = {
    /* a load, from its beginning to either end */
    ROW("EVAL @cache_begin 2 " PAIR " %G %G %t"),
    ROW("EVAL @cache_begin 2 " PAIR " %G %G %t"),
    ROW("EVALSHA $cache_begin 2 " PAIR " %G %G %t"),
    ROW("EVAL @cache_begin 2 " PAIR " %G %G %e"),
    {"EVAL @cache_begin 2 " PAIR " %G %G %x", LIKE_BYTES, ROW_PAUSE},
    ROW("EVAL @cache_fill 2 " PAIR " %G %R %t %H"),
    ROW("EVAL @cache_fill 2 " PAIR " %G %R %t %H"),
    ROW("EVALSHA $cache_fill 2 " PAIR " %G %R %t %H"),
    ROW("EVAL @cache_fill 2 " PAIR " %G %R %e %H"),
    {"EVAL @cache_fill 2 " PAIR " %G %R %x PUBLISH", LIKE_BYTES, ROW_PAUSE},
    ROW("EVAL @cache_fail 2 " PAIR " %G %R %t %U %H"),
    ROW("EVALSHA $cache_fail 2 " PAIR " %G %R %t %U %H"),
    ROW("EVAL @cache_fail 2 " PAIR " %G %R %e %U %H"),
    ROW("EVAL @cache_touch 1 {v} %U %t %e"),
    ROW("EVALSHA $cache_touch 1 {v} %U %t %e"),
    ROW("EVAL @cache_touch 1 {v} %U %e %e"),

    /* tags */
    ROW("EVAL @cache_tag 1 {v}tag %G %t"),
    ROW("EVALSHA $cache_tag 1 {v}tag %G %t"),
    ROW("EVAL @cache_tag 1 {v}tag %G %e"),

    /* commands of a cache without a script */
    ROW("DEL " PAIR),
    ROW("DEL {v}tag"),
    ROW("DEL {v}gen"),
    ROW("GET {v}"),
    ROW("GET {v}gen"),
    ROW("GETRANGE {v} 48 63"),
    ROW_LIKE("PTTL {v}", LIKE_MS),
    ROW_LIKE("PTTL {v}gen", LIKE_MS),
    ROW_LIKE("PTTL {v}tag", LIKE_MS),
    ROW("PUBLISH {v}::filled %v"),

    /* invalid records and other types */
    ROW("SET {v} %R PX %t"),
    ROW("SET {v} %v"),
    ROW("SET {v}gen %G PX %t"),
    ROW("SET {v}tag %G"),
    ROW("RPUSH {v} %v"),
    ROW("SADD {v}gen %m"),
    ROW("HSET {v}tag a b"),
    ROW("DEL " PAIR " {v}tag"),
    ROW("DEL " PAIR " {v}tag"),
    END,
};

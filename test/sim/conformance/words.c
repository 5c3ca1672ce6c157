#include <string.h>

#include "sim/conformance/conformance.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define L(words) words, sizeof words - 1, {{0}}, 0

enum { WORDS_MAX = 40 };

typedef struct list {
  char name;
  const char *text; /* words with '|' between them */
  size_t len;
  engine_bytes_t words[WORDS_MAX]; /* the same, once they were asked for */
  size_t count;
} list_t;

#define GENERATION_A "aaaaaaaaaaaaaaaa"
#define GENERATION_B "b\0\r\nbbbbbbbbbb\xff\xff"
#define RECORD(kind, id)                                                                           \
  "\xbely\1" kind "\0\0\0"                                                                         \
  "until_fr\0\0\0\0\0\0\0\0checksumcreated!took\0\0\0\0" id "\5\0\0\0\5\0\0\0value"

static list_t lists[] = {
    /* Keys: few, so that commands meet. */
    {'k', L("k:1|k:2|k:3|k:4||\0\xff\r\n")},
    {'L', L("{l}:1|{l}:2")},
    {'C', L("{l}:1::contended|{l}:2::contended")},
    {'F', L("{f}:1|{f}:2")},
    {'Q', L("{q}:1|{q}:2")},
    /* Strings: plain ones, arbitrary bytes, numbers and near-numbers. */
    {'v',
     L("|a|hello "
       "world|\0\xff\r\n\x01|0|10|-5|3.5|3.0|9007199254740993|9223372036854775807|"
       "9223372036854775808|-9223372036854775808|+1| "
       "1|01|1e3|nan|inf|0123456789012345678901234567890123456789012345678901234567890123456789")},
    {'i', L("0|1|-1|2|7|100|-100|9007199254740992|9007199254740993|9223372036854775806|"
            "9223372036854775807|-9223372036854775807|-9223372036854775808|9223372036854775808|-"
            "9223372036854775809|18446744073709551616|+1| 1|1 |01|-0|-||abc|1.5|1e3|0x10|1\0")},
    {'d', L("0|1|2|3|4|5|6|9|-1|-2|-3|-4|-7")},
    {'f', L("0|0.1|0.2|1.5|-2.25|3|1e3|5.0e3|1e308|1e-5|1e17|123456789012345678|inf|-inf|nan|| 1|1 "
            "|1e400|0x10|abc|-0|1e-400|3.14159265358979323846")},
    {'m', L("a|b|c|d||1|2|10|-3|number|\0x|ab|A|\xff")},
    {'s', L("0|1|2|-1|1.5|3|inf|-inf|1e20|0.1|0.30000000000000004|100|9007199254740993|+inf|1e-7|"
            "nan|x|")},
    {'r', L("-inf|+inf|inf|(1|1|(2|0|5|-1|1.5|(-inf|(0|(inf|100|(|| 1|abc|nan|1x")},
    {'b', L("0|1|2|3|7|8|9|15|16|31|40|63|64|100|257|-1|abc|4294967296|9223372036854775807")},
    {'y',
     L("u1|u2|u4|u8|u16|u31|u32|u63|i1|i2|i5|i8|i16|i32|i63|i64|u64|i65|i0|x8||u|u8x|U8|i-1|u08")},
    {'w', L("0|0|1|5|8|13|64|100|#0|#1|#2|#7|-1|#-1|abc|#|4294967296|#4294967296")},
    {'z', L("0|1|-1|3|-8|127|128|-129|255|256|65535|4294967295|1000000000000|9223372036854775807|-"
            "9223372036854775808|x")},
    /* Ttls longer than the sequence, very short ones, and invalid ones. They differ clearly,
     * because lock_extend compares them. */
    {'t', L("60000|60001|100000|3600000|86400000")},
    {'x', L("1|2|3")},
    /* Sums of one of these and a long one are made too: none is over while a sequence runs. */
    {'e', L("0|-1|-70000||abc|70000.5|+70000|070000| "
            "70000|9223372036854775807|-9223372036854775808|9223372036854775808|"
            "9223372036854770000|9223372036854775")},
    /* Locks and fences. */
    {'o', L("mine|another|mine\0|7|")},
    {'N', L("1|2|5|6|100|9007199254740990|9007199254740991|9007199254740992|9007199254740993|0|-1|"
            "05|5.0|five|| 5|1e3|0x10|inf|99999999999999999999")},
    {'S', L("server-one|server-two")},
    /* Tickets, parties, operations; owners, modes, how to publish; how many. */
    {'P', L("t1|t2|t3|t4|a1|a1+60001|")},
    {'O', L("red|blue")},
    {'M', L("r|w")},
    {'H', L("PUBLISH|PUBLISH||NOSUCH")},
    {'n', L("1|2|3|4")},
    {'c', L("c:1|c:2|d:1||\0\xff")},
    /* Generations and their records: a value, an absence, an error; too short and empty ones;
     * offsets in an envelope. */
    {'G', L(GENERATION_A "|" GENERATION_A "|" GENERATION_B "|whatever is there|short|")},
    {'R', L(RECORD("\1", GENERATION_A) "|" RECORD("\1", GENERATION_B) "|" RECORD(
              "\2", GENERATION_A) "|" RECORD("\3", GENERATION_B) "|\xbely\1\1|")},
    {'U', L("12345678|\0\0\0\0\0\0\0\xff|")},
    /* Words at the wrong places. */
    {'?', L("|0|-1|1.5|abc|\0|\xff\xfe|9223372036854775807|01|(1|-inf")},
};

static void split(list_t *list) {
  const char *at = list->text, *end = list->text + list->len, *next;
  for (; at <= end && list->count < WORDS_MAX; at = next + 1) {
    next = memchr(at, '|', (size_t)(end - at));
    next = next == NULL ? end : next;
    list->words[list->count++] = (engine_bytes_t){at, (size_t)(next - at)};
  }
}

const engine_bytes_t *conformance_words(char name, size_t *count) {
  for (size_t i = 0; i < COUNT(lists); i++)
    if (lists[i].name == name) {
      if (lists[i].count == 0)
        split(&lists[i]);
      *count = lists[i].count;
      return lists[i].words;
    }
  *count = 0;
  return NULL;
}

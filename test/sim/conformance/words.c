#include "sim/conformance/conformance.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

#define W(literal)                                                                                 \
  { literal, sizeof literal - 1 }

/* Keys: few, so that what is asked meets what was done. */
static const engine_word_t keys[] = {W("k:1"), W("k:2"), W("k:3"),
                                     W("k:4"), W(""),    W("\0\xff\r\n")};
static const engine_word_t locks[] = {W("{l}:1"), W("{l}:2")};
static const engine_word_t fences[] = {W("{f}:1"), W("{f}:2")};
static const engine_word_t markers[] = {W("{q}:1"), W("{q}:2")};

/* Strings: plain ones, bytes of any kind, numbers and what is nearly one. */
static const engine_word_t values[] = {
    W(""),
    W("a"),
    W("hello world"),
    W("\0\xff\r\n\x01"),
    W("0"),
    W("10"),
    W("-5"),
    W("3.5"),
    W("3.0"),
    W("9007199254740993"),
    W("9223372036854775807"),
    W("9223372036854775808"),
    W("-9223372036854775808"),
    W("+1"),
    W(" 1"),
    W("01"),
    W("1e3"),
    W("nan"),
    W("inf"),
    W("0123456789012345678901234567890123456789012345678901234567890123456789"),
};

static const engine_word_t integers[] = {
    W("0"),
    W("1"),
    W("-1"),
    W("2"),
    W("7"),
    W("100"),
    W("-100"),
    W("9007199254740992"),
    W("9007199254740993"),
    W("9223372036854775806"),
    W("9223372036854775807"),
    W("-9223372036854775807"),
    W("-9223372036854775808"),
    W("9223372036854775808"),
    W("-9223372036854775809"),
    W("18446744073709551616"),
    W("+1"),
    W(" 1"),
    W("1 "),
    W("01"),
    W("-0"),
    W("-"),
    W(""),
    W("abc"),
    W("1.5"),
    W("1e3"),
    W("0x10"),
    W("1\0"),
};

static const engine_word_t small[] = {W("0"), W("1"),  W("2"),  W("3"),  W("4"),  W("5"), W("6"),
                                      W("9"), W("-1"), W("-2"), W("-3"), W("-4"), W("-7")};

static const engine_word_t floats[] = {
    W("0"),     W("0.1"),   W("0.2"),   W("1.5"),  W("-2.25"),  W("3"),
    W("1e3"),   W("5.0e3"), W("1e308"), W("1e-5"), W("1e17"),   W("123456789012345678"),
    W("inf"),   W("-inf"),  W("nan"),   W(""),     W(" 1"),     W("1 "),
    W("1e400"), W("0x10"),  W("abc"),   W("-0"),   W("1e-400"), W("3.14159265358979323846")};

static const engine_word_t members[] = {W("a"),   W("b"),  W("c"),  W("d"),   W(""),
                                        W("1"),   W("2"),  W("10"), W("-3"),  W("number"),
                                        W("\0x"), W("ab"), W("A"),  W("\xff")};

static const engine_word_t scores[] = {W("0"),
                                       W("1"),
                                       W("2"),
                                       W("-1"),
                                       W("1.5"),
                                       W("3"),
                                       W("inf"),
                                       W("-inf"),
                                       W("1e20"),
                                       W("0.1"),
                                       W("0.30000000000000004"),
                                       W("100"),
                                       W("9007199254740993"),
                                       W("+inf"),
                                       W("1e-7"),
                                       W("nan"),
                                       W("x"),
                                       W("")};

static const engine_word_t bounds[] = {W("-inf"),  W("+inf"), W("inf"),  W("(1"),  W("1"),
                                       W("(2"),    W("0"),    W("5"),    W("-1"),  W("1.5"),
                                       W("(-inf"), W("(0"),   W("(inf"), W("100"), W("("),
                                       W(""),      W(" 1"),   W("abc"),  W("nan"), W("1x")};

static const engine_word_t offsets[] = {W("0"),
                                        W("1"),
                                        W("2"),
                                        W("3"),
                                        W("7"),
                                        W("8"),
                                        W("9"),
                                        W("15"),
                                        W("16"),
                                        W("31"),
                                        W("40"),
                                        W("63"),
                                        W("64"),
                                        W("100"),
                                        W("257"),
                                        W("-1"),
                                        W("abc"),
                                        W("4294967296"),
                                        W("9223372036854775807")};

static const engine_word_t field_types[] = {
    W("u1"), W("u2"), W("u4"), W("u8"),  W("u16"), W("u31"), W("u32"), W("u63"), W("i1"),
    W("i2"), W("i5"), W("i8"), W("i16"), W("i32"), W("i63"), W("i64"), W("u64"), W("i65"),
    W("i0"), W("x8"), W(""),   W("u"),   W("u8x"), W("U8"),  W("i-1"), W("u08")};

static const engine_word_t field_offsets[] = {
    W("0"),  W("0"),   W("1"),   W("5"),  W("8"),          W("13"),
    W("64"), W("100"), W("#0"),  W("#1"), W("#2"),         W("#7"),
    W("-1"), W("#-1"), W("abc"), W("#"),  W("4294967296"), W("#4294967296")};

static const engine_word_t field_values[] = {W("0"),
                                             W("1"),
                                             W("-1"),
                                             W("3"),
                                             W("-8"),
                                             W("127"),
                                             W("128"),
                                             W("-129"),
                                             W("255"),
                                             W("256"),
                                             W("65535"),
                                             W("4294967295"),
                                             W("1000000000000"),
                                             W("9223372036854775807"),
                                             W("-9223372036854775808"),
                                             W("x")};

/* Ttls that have not ended while the sequence runs, those that have soon, and what is none, which is far from all
 * others all the same: lock_extend compares it. */
static const engine_word_t long_ms[] = {W("60000"), W("60001"), W("100000"), W("3600000"),
                                        W("86400000")};
static const engine_word_t short_ms[] = {W("1"), W("2"), W("3")};
/* Sums of one of these and a long one are made too: none is over while a sequence runs. */
static const engine_word_t odd_ttls[] = {W("0"),
                                         W("-1"),
                                         W("-70000"),
                                         W(""),
                                         W("abc"),
                                         W("70000.5"),
                                         W("+70000"),
                                         W("070000"),
                                         W(" 70000"),
                                         W("9223372036854775807"),
                                         W("-9223372036854775808"),
                                         W("9223372036854775808"),
                                         W("9223372036854770000"),
                                         W("9223372036854775")};

/* Locks and fences. */
static const engine_word_t tokens[] = {W("mine"), W("another"), W("mine\0"), W("7"), W("")};
static const engine_word_t numbers[] = {W("1"),
                                        W("2"),
                                        W("5"),
                                        W("6"),
                                        W("100"),
                                        W("9007199254740990"),
                                        W("9007199254740991"),
                                        W("9007199254740992"),
                                        W("9007199254740993"),
                                        W("0"),
                                        W("-1"),
                                        W("05"),
                                        W("5.0"),
                                        W("five"),
                                        W(""),
                                        W(" 5"),
                                        W("1e3"),
                                        W("0x10"),
                                        W("inf"),
                                        W("99999999999999999999")};
static const engine_word_t servers[] = {W("server-one"), W("server-two")};

/* Tickets, parties, operations; owners, modes, how to publish; how many. */
static const engine_word_t tickets[] = {W("t1"), W("t2"),       W("t3"), W("t4"),
                                        W("a1"), W("a1+60001"), W("")};
static const engine_word_t owners[] = {W("red"), W("blue")};
static const engine_word_t modes[] = {W("r"), W("w")};
static const engine_word_t publishers[] = {W("PUBLISH"), W("PUBLISH"), W(""), W("NOSUCH")};
static const engine_word_t counts[] = {W("1"), W("2"), W("3"), W("4")};

static const engine_word_t channels[] = {W("c:1"), W("c:2"), W("d:1"), W(""), W("\0\xff")};

/* Generations, and their records: a value, that something is absent, an error; what is too short, and nothing; places in an
 * envelope. */
#define GENERATION_A "aaaaaaaaaaaaaaaa"
#define GENERATION_B "b\0\r\nbbbbbbbbbb\xff\xff"
#define RECORD(kind, id)                                                                           \
  "\xbely\1" kind "\0\0\0"                                                                         \
  "until_fr\0\0\0\0\0\0\0\0checksumcreated!took\0\0\0\0" id "\5\0\0\0\5\0\0\0value"
static const engine_word_t generations[] = {
    W(GENERATION_A), W(GENERATION_A), W(GENERATION_B), W("whatever is there"), W("short"), W("")};
static const engine_word_t records[] = {W(RECORD("\1", GENERATION_A)),
                                        W(RECORD("\1", GENERATION_B)),
                                        W(RECORD("\2", GENERATION_A)),
                                        W(RECORD("\3", GENERATION_B)),
                                        W("\xbely\1\1"),
                                        W("")};
static const engine_word_t places[] = {W("12345678"), W("\0\0\0\0\0\0\0\xff"), W("")};

/* What has no business where it is put. */
static const engine_word_t odd[] = {W(""),    W("0"),  W("-1"),       W("1.5"),
                                    W("abc"), W("\0"), W("\xff\xfe"), W("9223372036854775807"),
                                    W("01"),  W("(1"), W("-inf")};

const engine_word_t *conformance_words(char name, size_t *count) {
  static const struct {
    char name;
    const engine_word_t *words;
    size_t count;
  } all[] = {
      {'k', keys, COUNT(keys)},
      {'L', locks, COUNT(locks)},
      {'F', fences, COUNT(fences)},
      {'Q', markers, COUNT(markers)},
      {'v', values, COUNT(values)},
      {'i', integers, COUNT(integers)},
      {'d', small, COUNT(small)},
      {'f', floats, COUNT(floats)},
      {'m', members, COUNT(members)},
      {'s', scores, COUNT(scores)},
      {'r', bounds, COUNT(bounds)},
      {'b', offsets, COUNT(offsets)},
      {'y', field_types, COUNT(field_types)},
      {'w', field_offsets, COUNT(field_offsets)},
      {'z', field_values, COUNT(field_values)},
      {'t', long_ms, COUNT(long_ms)},
      {'x', short_ms, COUNT(short_ms)},
      {'e', odd_ttls, COUNT(odd_ttls)},
      {'o', tokens, COUNT(tokens)},
      {'N', numbers, COUNT(numbers)},
      {'S', servers, COUNT(servers)},
      {'P', tickets, COUNT(tickets)},
      {'O', owners, COUNT(owners)},
      {'M', modes, COUNT(modes)},
      {'H', publishers, COUNT(publishers)},
      {'n', counts, COUNT(counts)},
      {'c', channels, COUNT(channels)},
      {'G', generations, COUNT(generations)},
      {'R', records, COUNT(records)},
      {'U', places, COUNT(places)},
      {'?', odd, COUNT(odd)},
  };
  for (size_t i = 0; i < COUNT(all); i++)
    if (all[i].name == name) {
      *count = all[i].count;
      return all[i].words;
    }
  *count = 0;
  return NULL;
}

/* PFADD and PFCOUNT: HyperLogLog with the registers, the hash (MurmurHash64A) and the estimate
 * of Redis (O. Ertl, "New cardinality estimation algorithms for HyperLogLog sketches", 2017),
 * so that all replies are equal. Values are always dense; Redis begins with a sparse one. */
#include "command.h"

#include <math.h>
#include <stdlib.h>

enum { INDEX_BITS = 14, REGISTERS = 1 << INDEX_BITS, REGISTER_BITS = 6, RANKS = 64 };
enum { HEADER = 16, LENGTH = HEADER + REGISTERS * REGISTER_BITS / 8 };

static const char magic[4] = "HYLL";

/* ---- registers ---- */

static uint64_t read_word(const unsigned char *at) {
  uint64_t word = 0;
  for (int i = 7; i >= 0; i--)
    word = word << 8 | at[i];
  return word;
}

static uint64_t hash_of(engine_bytes_t item) {
  const uint64_t m = UINT64_C(0xc6a4a7935bd1e995);
  const unsigned char *at = (const unsigned char *)item.at;
  uint64_t h = UINT64_C(0xadc83b19) ^ (item.len * m);
  size_t left = item.len;
  for (; left >= 8; left -= 8, at += 8) {
    uint64_t k = read_word(at) * m;
    h = (h ^ ((k ^ (k >> 47)) * m)) * m;
  }
  if (left > 0) {
    uint64_t tail = 0;
    for (size_t i = left; i > 0; i--)
      tail = tail << 8 | at[i - 1];
    h = (h ^ tail) * m;
  }
  h = (h ^ (h >> 47)) * m;
  return h ^ (h >> 47);
}

static unsigned get(const char *registers, size_t index) {
  size_t bit = index * REGISTER_BITS;
  unsigned low = (unsigned char)registers[bit / 8];
  unsigned high = bit / 8 + 1 < LENGTH - HEADER ? (unsigned char)registers[bit / 8 + 1] : 0;
  return (high << 8 | low) >> bit % 8 & (RANKS - 1);
}

static void set(char *registers, size_t index, unsigned value) {
  size_t bit = index * REGISTER_BITS;
  unsigned mask = (unsigned)(RANKS - 1) << bit % 8, shifted = value << bit % 8;
  registers[bit / 8] = (char)(((unsigned char)registers[bit / 8] & ~mask) | shifted);
  if (mask >> 8 != 0)
    registers[bit / 8 + 1] =
        (char)(((unsigned char)registers[bit / 8 + 1] & ~(mask >> 8)) | shifted >> 8);
}

static bool raise_to(char *registers, size_t index, unsigned value) {
  if (get(registers, index) >= value)
    return false;
  set(registers, index, value);
  return true;
}

static bool add(char *registers, engine_bytes_t item) {
  uint64_t hash = hash_of(item);
  size_t index = hash & (REGISTERS - 1);
  uint64_t rest = hash >> INDEX_BITS | UINT64_C(1) << (64 - INDEX_BITS);
  return raise_to(registers, index, 1 + (unsigned)__builtin_ctzll(rest));
}

/* ---- the estimate ---- */

static double sigma(double x) {
  double y = 1, z = x, before;
  if (x == 1)
    return INFINITY;
  do {
    x *= x;
    before = z;
    z += x * y;
    y += y;
  } while (before != z);
  return z;
}

static double tau(double x) {
  double y = 1, z = 1 - x, before;
  if (x == 0 || x == 1)
    return 0;
  do {
    x = sqrt(x);
    before = z;
    y *= 0.5;
    z -= pow(1 - x, 2) * y;
  } while (before != z);
  return z / 3;
}

static int64_t estimate(const char *registers) {
  enum { LAST = 64 - INDEX_BITS + 1 };
  const double m = REGISTERS;
  int count[RANKS] = {0};
  for (size_t i = 0; i < REGISTERS; i++)
    count[get(registers, i)]++;
  double z = m * tau((m - count[LAST]) / m);
  for (int i = LAST - 1; i >= 1; i--)
    z = (z + count[i]) * 0.5;
  z += m * sigma(count[0] / m);
  return llroundl(0.721347520444481703680 * m * m / z);
}

/* ---- commands ---- */

/* False: the key is no HyperLogLog, and the error is the reply. */
static bool find(engine_call_t *call, engine_bytes_t key, const engine_object_t **found) {
  engine_object_t *object;
  if (!engine_find(call, key, ENGINE_STRING, &object))
    return false;
  *found = object;
  if (object == NULL ||
      (object->as.string.len == LENGTH && memcmp(object->as.string.at, magic, sizeof magic) == 0))
    return true;
  engine_reply_error(call, "WRONGTYPE Key is not a valid HyperLogLog string value.");
  return false;
}

static char *open_at(engine_call_t *call, engine_bytes_t key, engine_object_t **object) {
  *object = engine_string_open(call, key, LENGTH);
  memcpy((*object)->as.string.at, magic, sizeof magic);
  return (*object)->as.string.at + HEADER;
}

static void pfadd(engine_call_t *call) {
  const engine_object_t *found;
  engine_object_t *object;
  if (!find(call, call->argv[1], &found))
    return;
  bool changed = found == NULL;
  char *registers = open_at(call, call->argv[1], &object);
  for (size_t i = 2; i < call->argc; i++)
    changed |= add(registers, call->argv[i]);
  engine_string_close(call, object);
  engine_reply_integer(call, changed);
}

/* Raises registers to those of all the keys from that word on. */
static bool join(engine_call_t *call, size_t first, char *registers) {
  for (size_t i = first; i < call->argc; i++) {
    const engine_object_t *object;
    if (!find(call, call->argv[i], &object))
      return false;
    for (size_t j = 0; object != NULL && j < REGISTERS; j++)
      raise_to(registers, j, get(object->as.string.at + HEADER, j));
  }
  return true;
}

static void pfcount(engine_call_t *call) {
  char *registers = engine_allocate(LENGTH - HEADER);
  if (join(call, 1, registers))
    engine_reply_integer(call, estimate(registers));
  free(registers);
}

const engine_command_t engine_sketch_commands[] = {
    {"PFADD", pfadd, -2, ENGINE_WRITES, NULL},
    {"PFCOUNT", pfcount, -2, 0, NULL},
    {NULL, NULL, 0, 0, NULL},
};

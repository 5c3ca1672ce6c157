/* Fuzz targets. Each .c file but the shared ones is a target: libFuzzer calls
 * LLVMFuzzerTestOneInput() with inputs of its own, and replay.c calls it with those of
 * corpus/TARGET. `./run fuzz` has the first, the unit tests the second. */
#ifndef TEST_FUZZ_FUZZ_H
#define TEST_FUZZ_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/call/reply.h"
#include "core/loop/loop.h"

/* Runs the target. Returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* Ends the program, and the fuzzer keeps the input, unless the condition is true. */
#define REQUIRE(condition)                                                                         \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);                    \
      abort();                                                                                     \
    }                                                                                              \
  } while (0)

/* Sets up a belay_t without a loop, for functions that only need memory. */
void fuzz_belay_init(belay_t *belay);

/* Copies the input into memory of exactly its size, so that a read beyond its end is noticed. The
 * caller frees it. */
void *fuzz_copy(const uint8_t *data, size_t len);

/* Feeds the input to belay's reader as a server's bytes, in chunks, and calls visit for each reply.
 * The first byte of the input selects RESP3 and the push mode (its two low bits) and the largest
 * chunk (the others). */
void fuzz_replies(const uint8_t *data, size_t len, void (*visit)(const belay__reply_t *reply));

#endif /* TEST_FUZZ_FUZZ_H */

/* Patterns as servers match them (KEYS, SCAN), for models. Range ends are compared as plain
 * `char`, as servers do. */
#ifndef TEST_SUPPORT_MODELS_GLOB_H
#define TEST_SUPPORT_MODELS_GLOB_H

#include <stdbool.h>
#include <stddef.h>

bool glob_match(const char *pattern, size_t pattern_len, const char *text, size_t len);

#endif /* TEST_SUPPORT_MODELS_GLOB_H */

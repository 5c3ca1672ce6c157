/* Words of commands, as the checkers read them. */
#include <stdlib.h>
#include <string.h>

#include "sim/check/check.h"

bool sim_bytes_are(engine_bytes_t word, const char *text) {
  return word.len == strlen(text) && memcmp(word.at, text, word.len) == 0;
}

int64_t sim_bytes_number(engine_bytes_t word) {
  char text[24] = "";
  memcpy(text, word.at, word.len < sizeof text ? word.len : sizeof text - 1);
  return strtoll(text, NULL, 10);
}

bool sim_read_number_key(engine_bytes_t word, unsigned *key, engine_bytes_t *rest) {
  for (size_t i = 0; i + 3 < word.len; i++)
    if (memcmp(word.at + i, "{k", 2) == 0 && word.at[i + 3] == '}') {
      *key = (unsigned)(word.at[i + 2] - '0');
      *rest = (engine_bytes_t){word.at + i + 4, word.len - i - 4};
      return *key < SIM_KEYS;
    }
  return false;
}

bool sim_read_version(const void *data, size_t len, char *kind, uint32_t *version) {
  char text[16] = "";
  if (len < 2 || len >= sizeof text)
    return false;
  memcpy(text, data, len);
  *kind = text[0];
  *version = (uint32_t)strtoul(text + 1, NULL, 10);
  return *kind == 'v' || *kind == 'p';
}

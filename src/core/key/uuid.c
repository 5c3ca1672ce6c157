#include "core/key/uuid.h"

#include <string.h>

#include "belay/uuid.h"
#include "core/key/bytes.h"
#include "core/loop/loop.h"

void belay__uuid_make(uint8_t out[16], uint64_t ms, const uint8_t random[10]) {
  for (int i = 0; i < 6; i++)
    out[i] = (uint8_t)(ms >> (40 - 8 * i));
  memcpy(out + 6, random, 10);
  out[6] = (uint8_t)(0x70 | (out[6] & 0x0f)); /* version 7 */
  out[8] = (uint8_t)(0x80 | (out[8] & 0x3f)); /* the variant of the RFC */
}

void belay__uuid_text(char out[BELAY__UUID_TEXT], const uint8_t uuid[16]) {
  char *p = out;
  for (int i = 0; i < 16; i++) {
    if (i == 4 || i == 6 || i == 8 || i == 10)
      *p++ = '-';
    p = belay__hex(p, &uuid[i], 1);
  }
}

int belay_uuid_v7(belay_t *belay, char out[BELAY_UUID_TEXT]) {
  uint8_t random[10], uuid[16];
  int error = belay__check(belay);
  if (error == 0 && out == NULL)
    return belay__invalid(belay, "out: NULL");
  if (error == 0)
    error = belay->host->random(belay, random, sizeof random);
  if (error != 0)
    return error;
  belay__uuid_make(uuid, (uint64_t)belay->host->wall_us(belay) / 1000, random);
  belay__uuid_text(out, uuid);
  out[BELAY__UUID_TEXT] = '\0';
  return 0;
}

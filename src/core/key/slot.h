/* Slots: the parts into which a cluster divides its keys. */
#ifndef BELAY_CORE_KEY_SLOT_H
#define BELAY_CORE_KEY_SLOT_H

#include <stddef.h>
#include <stdint.h>

#define BELAY__SLOTS 16384

/* Return the slot of a key: CRC-16/XMODEM, modulo BELAY__SLOTS, of the text between the first '{'
 * and the next '}'. If there is no such text, or it is empty: of the whole key ("Redis cluster
 * specification"). */
uint16_t belay__slot(const char *key, size_t len);

#endif /* BELAY_CORE_KEY_SLOT_H */

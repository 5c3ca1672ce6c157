/* Texts of servers and the system, made fit for a log and for belay_detail(): printable, short,
 * and without secrets.
 *
 * A server repeats parts of a command: "unknown command 'SET', with args beginning with: ..."
 * contains a token. So each occurrence of an argument, or of the beginning of one, is hidden. */
#ifndef BELAY_CORE_CALL_ERROR_TEXT_H
#define BELAY_CORE_CALL_ERROR_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* bytes of a server's text that are kept, terminating 0 included */
#define BELAY__WORDS_MAX ((size_t)256)

/* Write the text with a terminating 0. Bytes that are not printable ASCII become \xNN. Text that
 * does not fit into size bytes is cut, never inside a \xNN. Returns the length. */
size_t belay__words(char *out, size_t size, const char *text, size_t len);

#define BELAY__HEAD_MAX 4 /* bytes at the start of an argument that suffice to recognize it */

/* The text of a server, and which of its bytes to hide. The bytes behind BELAY__WORDS_MAX are never
 * written: they only show whether an argument begins right before them. */
typedef struct belay__redacted {
  const char *text;
  size_t len;
  char line[BELAY__WORDS_MAX + BELAY__HEAD_MAX]; /* The text without line ends, for comparisons */
  bool hidden[BELAY__WORDS_MAX + BELAY__HEAD_MAX];
} belay__redacted_t;

/* Initialize with the server's text, which must stay valid until belay__redacted_write(). The part
 * in which the server lists arguments is cut off. */
void belay__redacted_init(belay__redacted_t *redacted, const char *text, size_t len);

/* Hide each occurrence of this argument, also of its beginning alone if at least BELAY__HEAD_MAX
 * bytes match. A shorter argument is hidden only where no letter or digit is next to it. */
void belay__redacted_hide(belay__redacted_t *redacted, const char *data, size_t len);

/* Write the text as belay__words() does, with "..." in place of the hidden parts. */
size_t belay__redacted_write(const belay__redacted_t *redacted, char out[BELAY__WORDS_MAX]);

#endif /* BELAY_CORE_CALL_ERROR_TEXT_H */

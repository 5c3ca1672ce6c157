/* What others say, made fit for a log and for belay_detail(): in print, short, and without what they were told.
 *
 * A server repeats things: "unknown command 'SET', with args beginning with: ..." has a token in it. So the command that
 * it answers goes in with its words: whatever is there of an argument, or of the beginning of one, is hidden. */
#ifndef BELAY_CORE_CALL_ERROR_TEXT_H
#define BELAY_CORE_CALL_ERROR_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BELAY__WORDS_MAX ((size_t)256) /* bytes that are kept of what a server says, a 0 included */

/* Writes the text at out, and a 0: what is not printable ASCII as \xNN. What does not fit into size bytes is left off,
 * never a part of a \xNN. Returns the length. */
size_t belay__words(char *out, size_t size, const char *text, size_t len);

#define BELAY__WORDS_BITS ((size_t)16384)

typedef struct belay__said {
  const char *text;
  size_t len, shown; /* shown: of its bytes, as many as can be */
  bool hidden[BELAY__WORDS_MAX];
  uint64_t there[BELAY__WORDS_BITS / 64]; /* hashes of all that an argument may begin with */
} belay__said_t;

/* What a server said; the text stays the caller's, until it is written. What the server itself takes for arguments is
 * cut off. */
void belay__said_begin(belay__said_t *said, const char *text, size_t len);

/* Hides what it repeats of that; of less than four bytes, where it stands as a word. */
void belay__said_hide(belay__said_t *said, const char *data, size_t len);

/* As belay__words(), with "..." in the place of what is hidden. */
size_t belay__said_write(const belay__said_t *said, char out[BELAY__WORDS_MAX]);

#endif /* BELAY_CORE_CALL_ERROR_TEXT_H */

/* Patterns beside the server's own: a range between any two bytes, and beside it any byte, matches what KEYS matches. */
#include "core/key/glob.h"

#include <stdio.h>
#include <string.h>

#include "support/servers/server.h"
#include "support/base/test.h"

enum { BYTES = 256 };

/* Patterns "[A-x]" and "[^A-x]" for each byte x: for each the bytes that it matches, in order, as a string. */
static const char keys_of[] =
    "local a, out = string.char(ARGV[1]), {}\n"
    "for b = 0, 255 do\n"
    "  local keys = redis.call('KEYS', '[' .. ARGV[2] .. a .. '-' .. string.char(b) .. ']')\n"
    "  table.sort(keys, function(x, y) return x:byte() < y:byte() end)\n"
    "  out[#out + 1] = table.concat(keys)\n"
    "end\n"
    "return out";

/* The same here. */
static size_t match_all(char *out, const char *negation, int a, int b) {
  char pattern[8];
  size_t len = 0, n = 0;
  pattern[len++] = '[';
  if (*negation != '\0')
    pattern[len++] = *negation;
  pattern[len++] = (char)a;
  pattern[len++] = '-';
  pattern[len++] = (char)b;
  pattern[len++] = ']';
  for (int c = 0; c < BYTES; c++) {
    char text = (char)c;
    if (belay__glob_match(pattern, len, &text, 1))
      out[n++] = text;
  }
  return n;
}

static void check_pairs(server_t *server, const char *negation) {
  char first[8], expected[BYTES];
  for (int a = 0; a < BYTES; a++) {
    snprintf(first, sizeof first, "%d", a);
    const resp_t *reply = server_ask(server, "EVAL", keys_of, "0", first, negation, NULL);
    assert_int_equal(reply->type, RESP_ARRAY);
    assert_int_equal(reply->count, BYTES);
    for (int b = 0; b < BYTES; b++) {
      size_t n = match_all(expected, negation, a, b);
      const resp_t *matched = reply->items[b];
      if (matched->len != n || memcmp(matched->str, expected, n) != 0)
        fail_msg("[%s\\x%02x-\\x%02x]: %zu bytes here, %zu at the server", negation, (unsigned)a,
                 (unsigned)b, n, matched->len);
    }
  }
}

TEST_ON(ranges_are_the_servers, server, server_start(NULL)) {
  server_do(server, "EVAL", "for c = 0, 255 do redis.call('SET', string.char(c), '') end", "0",
            NULL);
  check_pairs(server, "");
  check_pairs(server, "^");
}

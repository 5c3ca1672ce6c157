/* Commands by chance, always the same for a seed. */
#include "sim/conformance/conformance.h"
#include "support/base/random.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct generator {
  uint64_t random;
  uint64_t absolute_ms;
  const conformance_family_t *family;
  const engine_bytes_t *key; /* %k is this one; NULL: any */
} generator_t;

static size_t below(generator_t *g, size_t n) {
  return (size_t)(next_random(&g->random) % n);
}

static bool once_in(generator_t *g, size_t n) {
  return below(g, n) == 0;
}

/* ---- words ---- */

static engine_bytes_t copy(const char *at, size_t len) {
  char *bytes = malloc(len + 1);
  if (bytes == NULL)
    abort();
  if (len > 0)
    memcpy(bytes, at, len);
  bytes[len] = '\0';
  return (engine_bytes_t){bytes, len};
}

static void drop_word(conformance_command_t *command, size_t at) {
  free((void *)(uintptr_t)command->argv[at].at);
  command->argc--;
  for (size_t i = at; i < command->argc; i++)
    command->argv[i] = command->argv[i + 1];
}

static void add_word(conformance_command_t *command, const char *at, size_t len) {
  if (command->argc < CONFORMANCE_WORDS)
    command->argv[command->argc++] = copy(at, len);
}

static void add_number(conformance_command_t *command, uint64_t number) {
  char text[24];
  int len = snprintf(text, sizeof text, "%" PRIu64, number);
  add_word(command, text, (size_t)len);
}

/* A bit for each key that there is. */
static uint64_t key_bit(char name, size_t index) {
  const char *at = strchr(CONFORMANCE_KEYS, name);
  return at == NULL ? 0 : UINT64_C(1) << ((size_t)(at - CONFORMANCE_KEYS) * 16 + index);
}

/* Bytes to be taken apart: of any kind, or few kinds. */
static void add_bytes(generator_t *g, conformance_command_t *command) {
  char bytes[40];
  size_t len = below(g, sizeof bytes + 1);
  bool few = once_in(g, 2);
  for (size_t i = 0; i < len; i++)
    bytes[i] = few ? "\0\1\2\xff"[below(g, 4)] : (char)(below(g, 256));
  add_word(command, bytes, len);
}

/* A number of any size, or a text. */
static void add_value(generator_t *g, conformance_command_t *command) {
  char text[40];
  uint64_t random = next_random(&g->random);
  int64_t whole = (int64_t)random >> below(g, 64);
  double fraction;
  memcpy(&fraction, &random, sizeof fraction);
  int len;
  switch (below(g, 6)) {
  case 0:
    len = snprintf(text, sizeof text, "%.17g", fraction);
    break;
  case 1:
    len = snprintf(text, sizeof text, "%.17g", (double)whole / 8);
    break;
  case 2:
    len = snprintf(text, sizeof text, "text-%u", (unsigned)(random % 1000));
    break;
  default:
    len = snprintf(text, sizeof text, "%" PRId64, whole);
  }
  add_word(command, text, (size_t)len);
}

/* %a is a future time in milliseconds, %V and %E are scripts, %q is a number or a text, %u
 * bytes, the others words of that name. */
static void add_drawn(generator_t *g, conformance_command_t *command, char name) {
  enum { VALUES = 33, ERRORS = 40 };
  char text[8];
  if (name == 'a') {
    add_number(command, g->absolute_ms + below(g, 5) * 1234);
  } else if (name == 'V' || name == 'E') {
    snprintf(text, sizeof text, "%c%zu", name == 'V' ? 'v' : 'e',
             1 + below(g, name == 'V' ? VALUES : ERRORS));
    const conformance_script_t *script = conformance_script(text, strlen(text));
    add_word(command, script->text, strlen(script->text));
  } else if (name == 'q') {
    add_value(g, command);
  } else if (name == 'u') {
    add_bytes(g, command);
  } else if (name == 'k' && g->key != NULL) {
    add_word(command, g->key->at, g->key->len);
  } else {
    size_t count, i;
    const engine_bytes_t *words = conformance_words(name, &count);
    if (words == NULL)
      abort();
    i = below(g, count);
    command->keys |= key_bit(name, i);
    add_word(command, words[i].at, words[i].len);
  }
}

static void add_script(conformance_command_t *command, const char *word, size_t len) {
  const conformance_script_t *script = conformance_script(word + 1, len - 1);
  if (script == NULL)
    abort();
  if (word[0] == '@') {
    add_word(command, script->text, strlen(script->text));
    return;
  }
  char sha1[41];
  for (size_t i = 0; i < sizeof sha1; i++)
    sha1[i] = (char)(word[0] == '^' ? toupper((unsigned char)script->sha1[i]) : script->sha1[i]);
  add_word(command, sha1, 40);
}

/* ---- commands ---- */

/* One of the patterns of a row. */
typedef struct pattern {
  const conformance_row_t *row;
  char text[256];
} pattern_t;

static size_t count_patterns(const conformance_row_t *rows) {
  size_t count = 0;
  for (; rows->patterns != NULL; rows++, count++)
    for (const char *at = rows->patterns; (at = strchr(at, '|')) != NULL; at++)
      count++;
  return count;
}

static pattern_t pattern_at(const conformance_row_t *rows, size_t i) {
  pattern_t pattern;
  const char *at = rows->patterns;
  for (; i > 0; i--) {
    at += strcspn(at, "|");
    at = *at == '|' ? at + 1 : (++rows)->patterns;
  }
  pattern.row = rows;
  snprintf(pattern.text, sizeof pattern.text, "%.*s", (int)strcspn(at, "|"), at);
  return pattern;
}

static pattern_t draw_pattern(generator_t *g) {
  size_t tables = 0;
  while (g->family->rows[tables] != NULL)
    tables++;
  const conformance_row_t *rows =
      once_in(g, 6) ? conformance_any : g->family->rows[below(g, tables)];
  return pattern_at(rows, below(g, count_patterns(rows)));
}

/* A command for a script. Not another script, because the form of its reply differs. */
static pattern_t draw_inner_pattern(generator_t *g) {
  for (;;) {
    const conformance_family_t *family =
        &conformance_families[below(g, conformance_families_count)];
    if (family->rows[1] != NULL || family->conns > 1)
      continue;
    pattern_t pattern = pattern_at(family->rows[0], below(g, count_patterns(family->rows[0])));
    if (strstr(pattern.text, "%*") == NULL && strncmp(pattern.text, "EVAL", 4) != 0)
      return pattern;
  }
}

static void add_pattern(generator_t *g, conformance_command_t *command, const pattern_t *pattern) {
  command->pause |= (pattern->row->flags & ROW_PAUSE) != 0;
  for (const char *word = pattern->text; *word != '\0';) {
    size_t len = strcspn(word, " ");
    if (word[0] == '%' && word[1] == '*') {
      pattern_t inner = draw_inner_pattern(g);
      if ((pattern->row->flags & ROW_OWN_LIKE) == 0)
        command->like = inner.row->like;
      add_pattern(g, command, &inner);
    } else if (word[0] == '%') {
      add_drawn(g, command, word[1]);
    } else if (strchr("@$^", word[0]) != NULL) {
      add_script(command, word, len);
    } else {
      add_word(command, word, len);
    }
    word += len + (word[len] == ' ');
  }
}

/* True if a number in some place could become a ttl that ends while the sequence runs. */
static bool is_about_time(const char *pattern) {
  return strpbrk(pattern, "aAtTxe") != NULL && strchr(pattern, '%') != NULL;
}

/* True if no later word can become a ttl in the place of that word, except one that a pause
 * outlasts or that outlasts a sequence. */
static bool may_move_up(const conformance_command_t *command, size_t at) {
  for (size_t i = at + 1; i < command->argc; i++) {
    uint64_t n = strtoull(command->argv[i].at, NULL, 10);
    if (n > 3 && n < 60000)
      return false;
  }
  return true;
}

/* Makes an invalid command: too few words, too many, or misplaced ones. */
static void spoil(generator_t *g, conformance_command_t *command, const char *pattern) {
  size_t count, at = below(g, command->argc);
  bool timed = is_about_time(pattern);
  const engine_bytes_t *odd = conformance_words(timed ? 'e' : '?', &count);
  const engine_bytes_t *with = &odd[below(g, count)];
  switch (below(g, 4)) {
  case 0:
    if (at > 0 && (!timed || may_move_up(command, at))) {
      drop_word(command, at);
      command->pause = timed;
    }
    break;
  case 1:
    drop_word(command, command->argc - 1);
    break;
  case 2:
    add_word(command, with->at, with->len);
    break;
  default:
    if (at > 0) {
      free((void *)(uintptr_t)command->argv[at].at);
      command->argv[at] = copy(with->at, with->len);
    }
  }
  if (command->argc == 0)
    add_word(command, "PING", 4);
}

static void lower(conformance_command_t *command, size_t words) {
  for (size_t i = 0; i < words && i < command->argc; i++)
    for (char *c = (char *)(uintptr_t)command->argv[i].at; *c != '\0'; c++)
      if (*c >= 'A' && *c <= 'Z')
        *c = (char)(*c + ('a' - 'A'));
}

static conformance_command_t draw(generator_t *g) {
  pattern_t pattern = draw_pattern(g);
  const conformance_row_t *row = pattern.row;
  conformance_command_t command = {.like = row->like};
  command.conn = (unsigned)below(g, g->family->conns);
  add_pattern(g, &command, &pattern);
  if (strncmp(pattern.text, "FLUSH", 5) == 0)
    command.keys = UINT64_MAX;
  bool keeps_clock = row->like == LIKE_FENCE || row->like == LIKE_QUARANTINE;
  if ((row->flags & ROW_AS_IT_IS) != 0 || command.pause || keeps_clock) /* not under another key */
    return command;
  if (once_in(g, 12))
    spoil(g, &command, pattern.text);
  if (once_in(g, 12))
    lower(&command, 1);
  return command;
}

static void append(conformance_sequence_t *sequence, conformance_command_t command) {
  if ((sequence->count & (sequence->count - 1)) == 0) {
    size_t cap = sequence->count == 0 ? 1 : sequence->count * 2;
    sequence->command = realloc(sequence->command, cap * sizeof *sequence->command);
    if (sequence->command == NULL)
      abort();
  }
  sequence->command[sequence->count++] = command;
}

/* At the end, commands that read everything of every key. */
static void append_final(generator_t *g, conformance_sequence_t *sequence) {
  size_t count;
  const engine_bytes_t *keys = conformance_words('k', &count);
  for (size_t i = 0; i < count; i++)
    for (size_t j = 0; j < count_patterns(conformance_final); j++) {
      pattern_t pattern = pattern_at(conformance_final, j);
      conformance_command_t command = {.like = pattern.row->like, .keys = key_bit('k', i)};
      command.restart = i == 0 && j == 0;
      g->key = &keys[i];
      add_pattern(g, &command, &pattern);
      append(sequence, command);
    }
}

conformance_sequence_t conformance_generate(const conformance_family_t *family, uint64_t seed,
                                            size_t count, uint64_t absolute_ms) {
  generator_t g = {.random = seed, .absolute_ms = absolute_ms, .family = family};
  for (const char *c = family->name; *c != '\0'; c++) /* families are not alike */
    g.random = next_random(&g.random) + (unsigned char)*c;
  conformance_sequence_t sequence = {0};
  for (size_t i = 0; i < count; i++)
    append(&sequence, draw(&g));
  if (family->conns == 1)
    append_final(&g, &sequence);
  return sequence;
}

void conformance_free(conformance_sequence_t *sequence) {
  for (size_t i = 0; i < sequence->count; i++)
    while (sequence->command[i].argc > 0)
      drop_word(&sequence->command[i], sequence->command[i].argc - 1);
  free(sequence->command);
  *sequence = (conformance_sequence_t){0};
}

void conformance_print_command(FILE *out, const conformance_command_t *command) {
  for (size_t i = 0; i < command->argc; i++) {
    engine_bytes_t word = command->argv[i];
    fputs(i > 0 ? " \"" : "\"", out);
    conformance_print(out, word);
    fputc('"', out);
  }
}

/* Checkers: calls that travelled together, each as if it had come alone. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scripts.gen.h"
#include "sim/check/check.h"

static bool is(engine_bytes_t word, const char *text, size_t len) {
  return word.len == len && memcmp(word.at, text, len) == 0;
}

/* The script that is run for several calls here; NULL: none is. */
static const belay__script_t *joined(const engine_bytes_t *argv, size_t argc) {
  for (size_t i = 0; i < BELAY__SCRIPTS && argc > 3; i++) {
    const belay__script_t *many = belay__scripts[i]->many;
    if (many != NULL && (is(argv[1], many->sha1, 40) || is(argv[1], many->text, many->len)))
      return belay__scripts[i];
  }
  return NULL;
}

static size_t number(engine_bytes_t word) {
  return (size_t)labs(strtol(word.at, NULL, 10)); /* behind which there is a line end */
}

/* Behind the reply that begins there. */
static const char *behind(const char *at, const char *end) {
  const char *next = (const char *)memchr(at, '\n', (size_t)(end - at)) + 1;
  long n = strtol(at + 1, NULL, 10);
  if (*at == '$')
    return n < 0 ? next : next + n + 2;
  for (long i = 0; *at == '*' && i < n; i++)
    next = behind(next, end);
  return next;
}

void sim_check_executed_all(sim_server_t *server, const engine_bytes_t *argv, size_t argc,
                            engine_bytes_t reply) {
  const belay__script_t *script = joined(argv, argc);
  if (script == NULL) {
    sim_check_executed(server, argv, argc, reply);
    return;
  }
  size_t all_keys = number(argv[2]), n = number(argv[3 + all_keys]);
  bool uniform = argv[3 + all_keys].at[0] == '-';
  size_t keys = all_keys / n, args = (argc - 4 - all_keys) / (uniform ? 1 : n);
  const char *at = (const char *)memchr(reply.at, '\n', reply.len) + 1, *end = reply.at + reply.len;
  char count[24];
  engine_bytes_t *one = calloc(3 + keys + args, sizeof *one);
  one[0] = (engine_bytes_t){"EVALSHA", 7};
  one[1] = (engine_bytes_t){script->sha1, 40};
  one[2] = (engine_bytes_t){count, (size_t)snprintf(count, sizeof count, "%zu", keys)};
  for (size_t i = 0; i < n; i++) {
    const char *next = behind(at, end);
    memcpy(one + 3, argv + 3 + i * keys, keys * sizeof *one);
    memcpy(one + 3 + keys, argv + 4 + all_keys + (uniform ? 0 : i * args), args * sizeof *one);
    if (*at != '-')
      sim_check_executed(server, one, 3 + keys + args, (engine_bytes_t){at, (size_t)(next - at)});
    at = next;
  }
  free(one);
}

#include "sim/orders/orders_parts.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define FEW "GEIWN"
#define ALL "GEFITPWRNY"
#define COUNT(array) (sizeof(array) / sizeof *(array))

enum {
  PLAIN,
  TAGGED,
  LOCKED,
  LISTENING,
  SHORT,
  SHORT_LOCKED,
  STALE_LOCKED,
  SHORT_TABLE,
  STALE_TABLE,
  QUIET_TABLE
};

/* Of the first nothing ends by itself; of the others it has, or is stale, after a W. */
static const sim_config_t configs[] = {
    [PLAIN] = {.name = "plain", .ttl_ms = 300000},
    [TAGGED] = {.name = "tagged", .tags = true, .ttl_ms = 300000},
    [LOCKED] = {.name = "locked", .lock = true, .ttl_ms = 300000},
    [LISTENING] = {.name = "table", .tags = true, .ttl_ms = 300000, .local_ttl_ms = 1000},
    [SHORT] = {.name = "short", .tags = true, .ttl_ms = 400},
    [SHORT_LOCKED] = {.name = "short, locked", .lock = true, .tags = true, .ttl_ms = 400},
    [STALE_LOCKED] =
        {.name = "stale, locked", .lock = true, .tags = true, .ttl_ms = 400, .stale_ms = 400},
    [SHORT_TABLE] = {.name = "short, table", .tags = true, .ttl_ms = 700, .local_ttl_ms = 5000},
    [STALE_TABLE] = {.name = "stale, locked, table",
                     .lock = true,
                     .tags = true,
                     .ttl_ms = 400,
                     .stale_ms = 400,
                     .local_ttl_ms = 450},
    [QUIET_TABLE] =
        {.name = "quiet table", .quiet = true, .tags = true, .ttl_ms = 5000, .local_ttl_ms = 450},
};

static const unsigned of_steps[] = {SHORT,       SHORT_LOCKED, STALE_LOCKED,
                                    SHORT_TABLE, STALE_TABLE,  QUIET_TABLE};

/* First those that take a second at most. */
static const struct {
  unsigned config;
  bool lossy;
  const char *steps[2];
} calls[] = {
    {PLAIN, false, {"GE", "IGE"}},    {PLAIN, false, {"GGE", "I"}},
    {PLAIN, false, {"GE", "P"}},      {PLAIN, false, {"P", "P"}},
    {TAGGED, false, {"GGE", "T"}},    {LOCKED, false, {"GGE", "I"}},
    {LISTENING, false, {"GE", "T"}},  {PLAIN, true, {"GE", "I"}},
    {PLAIN, false, {"GEGG", "I"}},    {PLAIN, false, {"GEB", ""}},
#define FIRST_CALLS 10
    {PLAIN, true, {"P", "I"}},        {PLAIN, true, {"GE", "P"}},
    {TAGGED, true, {"GE", "T"}},      {LOCKED, true, {"GE", "I"}},
    {LISTENING, true, {"GEG", "I"}},  {PLAIN, false, {"P", "IG"}},
    {PLAIN, false, {"GE", "PG"}},     {TAGGED, false, {"GE", "TGE"}},
    {LOCKED, false, {"GE", "IGE"}},   {LISTENING, false, {"GEG", "I"}},
    {LISTENING, false, {"GE", "IG"}}, {LISTENING, false, {"GEG", "T"}},
};

/* ---- three letters ---- */

static unsigned scripts(const char *letters) {
  unsigned n = 1;
  for (unsigned i = 0; i < SIM_STEPS; i++)
    n *= (unsigned)strlen(letters);
  return n;
}

/* False: it ends a load that it cannot have begun. */
static bool spell(const char *letters, unsigned number, char *steps) {
  unsigned len = (unsigned)strlen(letters), loads = 0;
  for (unsigned i = 0; i < SIM_STEPS; i++, number /= len) {
    steps[i] = letters[number % len];
    if ((steps[i] == 'E' || steps[i] == 'F') && loads-- == 0)
      return false;
    loads += steps[i] == 'G';
  }
  steps[SIM_STEPS] = '\0';
  return true;
}

/* There is a get and a change. */
static bool is_of_interest(const sim_part_t *part) {
  return (strchr(part->steps[0], 'G') != NULL || strchr(part->steps[1], 'G') != NULL) &&
         (strpbrk(part->steps[0], "ITP") != NULL || strpbrk(part->steps[1], "ITP") != NULL);
}

bool sim_part_next(sim_part_t *part) {
  if (part->calls)
    return false;
  while (++part->number[1] < scripts(part->letters))
    if (spell(part->letters, part->number[1], part->steps[1]) && is_of_interest(part))
      return true;
  return false;
}

/* ---- parts ---- */

/* The first scripts that have a part. */
static unsigned firsts(const char *letters) {
  char steps[SIM_STEPS + 1];
  unsigned n = 0;
  for (unsigned i = 0; i < scripts(letters); i++)
    n += spell(letters, i, steps);
  return n;
}

static void find_steps(uint64_t k, const char *letters, sim_part_t *part) {
  unsigned i = 0;
  part->config = &configs[of_steps[k % COUNT(of_steps)]];
  part->letters = letters;
  for (uint64_t left = k / COUNT(of_steps);; i++)
    if (spell(letters, i, part->steps[0]) && left-- == 0)
      break;
  part->number[0] = i;
  part->number[1] = i - 1;
  if (!sim_part_next(part)) /* none is of interest: one that is cheap */
    memcpy(part->steps[1], part->steps[0], sizeof part->steps[1]);
}

static void find_calls(uint64_t k, sim_part_t *part) {
  part->config = &configs[calls[k].config];
  part->calls = strchr(calls[k].steps[0], 'B') == NULL; /* a B sends too many calls */
  part->lossy = calls[k].lossy;
  part->ghosts =
      /* a subscribed process sends a command that is refused then */
      part->lossy && part->config->local_ttl_ms == 0;
  for (unsigned i = 0; i < 2; i++)
    snprintf(part->steps[i], sizeof part->steps[i], "%s", calls[k].steps[i]);
}

void sim_part_find(uint64_t number, sim_part_t *part) {
  const uint64_t few = COUNT(of_steps) * firsts(FEW), all = COUNT(of_steps) * firsts(ALL);
  uint64_t k = (number - 1) % (COUNT(calls) + few + all);
  *part = (sim_part_t){.letters = ""};
  assert(FIRST_CALLS + few == SIM_PARTS_FIRST);
  if (k < FIRST_CALLS)
    find_calls(k, part);
  else if (k < FIRST_CALLS + few)
    find_steps(k - FIRST_CALLS, FEW, part);
  else if (k < COUNT(calls) + few)
    find_calls(k - few, part);
  else
    find_steps(k - few - COUNT(calls), ALL, part);
}

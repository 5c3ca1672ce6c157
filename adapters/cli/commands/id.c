/* `belay id`: unique ids. */
#include <inttypes.h>
#include <string.h>

#include <unistd.h>

#include "harness.h"

#define EPOCH_MAX_MS (INT64_C(1) << 42)

/* The options; each subcommand has some of them. */
static struct {
  const char *kind;
  int64_t count, start, min_replicas, worker, ttl_ms, ahead_ms, epoch_ms;
} asked = {
    .count = 1,
    .start = 1,
    .worker = -1,
    .ttl_ms = 10000,
    .ahead_ms = 1000,
    .epoch_ms = BELAY_IDGEN_EPOCH_MS,
};

static belay_idgen_t *idgen;

#define COUNT_OPTION                                                                               \
  NUMBER("count", 1, (int64_t)BELAY_IDGEN_MANY_MAX, &asked.count,                                  \
         "number of ids, one per line; default 1", .letter = 'c')
#define START_OPTION NUMBER("start", 0, 0, &asked.start, "first id if NAME is new; default 1")
#define REPLICAS_OPTION                                                                            \
  NUMBER("min-replicas", 0, 255, &asked.min_replicas,                                              \
         "number of replicas that must store an id before it is printed; default 0")
#define EPOCH_OPTION                                                                               \
  NUMBER("epoch", 0, EPOCH_MAX_MS, &asked.epoch_ms,                                                \
         "start of the time, in milliseconds since 1970, the same for all users of NAME; "         \
         "default: the beginning of 2024",                                                         \
         .value = "MS")

/* ---- uuid ---- */

static void begin_uuid(harness_t *h) {
  for (int64_t i = 0; i < asked.count; i++) {
    char uuid[BELAY_UUID_TEXT];
    if (!harness_ok(h, belay_uuid_v7(h->belay, uuid)))
      return;
    out_begin();
    out_string("id", uuid);
    if (!out_end())
      break;
  }
  harness_done(h, STATUS_YES);
}

/* ---- ids from servers ---- */

static void on_ids(belay_request_t *r, int status, const int64_t *ids, size_t n) {
  harness_t *h = r->data;
  if (status == BELAY_EHELD) {
    harness_complain(h, "cannot get a worker", status);
    harness_done(h, STATUS_NOT_ACQUIRED);
  }
  bool written = true;
  if (!harness_ok(h, status))
    return;
  for (size_t i = 0; i < n && written; i++) {
    out_begin();
    out_wide("id", ids[i]);
    written = out_end();
  }
  harness_done(h, STATUS_YES);
}

/* Return the worker that this machine tries first, or -1. It is the same each time, so that its
 * record exists and the first id need not wait. FNV-1a of the host's name. */
static int worker_of_host(void) {
  char host[256] = "";
  uint32_t hash = 2166136261U;
  if (gethostname(host, sizeof host - 1) != 0)
    return -1;
  for (const char *c = host; *c != '\0'; c++)
    hash = (hash ^ (unsigned char)*c) * 16777619U;
  return (int)((hash ^ hash >> 16) % BELAY_IDGEN_WORKERS);
}

static void draw_ids(harness_t *h) {
  belay_idgen_options_t o;
  belay_idgen_options_init(&o);
  o.mode = *(const belay_idgen_mode_t *)h->command->data;
  o.name = belay_string(h->arguments->item[0]);
  if (asked.kind != NULL) {
    o.sequence = belay_string(asked.kind);
  }
  o.start = asked.start;
  o.step = asked.count; /* a larger step would skip ids that are not printed */
  o.min_replicas = (unsigned)asked.min_replicas;
  o.worker = (int)asked.worker;
  o.first_worker = worker_of_host();
  o.ttl_ms = asked.ttl_ms;
  o.ahead_ms = asked.ahead_ms;
  o.epoch_ms = asked.epoch_ms;
  if (harness_ok(h, belay_idgen_new(h->client[0], &o, &idgen)))
    harness_ok(h, belay_idgen_get_many(idgen, &h->request, (size_t)asked.count, on_ids));
}

/* ---- decode ---- */

static int run_decode(const arguments_t *arguments) {
  belay_idgen_parts_t parts;
  int64_t id;
  if (!units_number(arguments->item[0], &id) ||
      belay_idgen_decode(id, asked.epoch_ms, &parts) != 0) {
    complain("ID is not a number of 63 bits");
    return STATUS_USAGE;
  }
  out_begin();
  out_wide("id", id);
  out_number("unix_ms", parts.unix_ms);
  out_number("worker", parts.worker);
  out_number("sequence", parts.sequence);
  out_say("time %" PRId64 ".%03d, worker %u, sequence %u", parts.unix_ms / 1000,
          (int)(parts.unix_ms % 1000), parts.worker, parts.sequence);
  (void)out_end();
  return STATUS_YES;
}

static const command_t subcommands[] = {
    {
        .name = "decode",
        .arguments = "ID",
        .summary = "show the parts of a snowflake: time in seconds since 1970, worker",
        .examples = EXAMPLES(
            {"Which worker made this id", "belay id decode 7305183413149696 --json | jq .worker"}),
        .options = OPTIONS(EPOCH_OPTION),
        .run = run_decode,
    },
    {
        .name = "segment",
        .arguments = "NAME",
        .summary = "a unique number that roughly grows, even if a server loses data",
        .text = "A server that may have lost data jumps ahead, so that numbers are skipped. "
                "The ids are those of belay_idgen_new() with the same name.",
        .examples = EXAMPLES(
            {"A number for an order, even after a server was restored from yesterday's copy",
             "belay id segment orders"}),
        .options = OPTIONS(COUNT_OPTION, START_OPTION, REPLICAS_OPTION),
        .what = "cannot get an id",
        .begin = draw_ids,
        .data = &(const belay_idgen_mode_t){BELAY_IDGEN_SEGMENT},
    },
    {
        .name = "sequence",
        .arguments = "NAME",
        .summary = "the next number: one more than the last one of all machines",
        .text = "Few numbers are skipped: those whose replies were lost. A server that loses "
                "writes may give numbers twice; --min-replicas prevents that.",
        .examples = EXAMPLES({"The next invoice", "belay id sequence invoices"}),
        .options = OPTIONS(COUNT_OPTION, START_OPTION,
                           TEXT("kind", "KIND", &asked.kind,
                                "select one of several sequences of NAME; "
                                "default id"),
                           REPLICAS_OPTION),
        .what = "cannot get an id",
        .begin = draw_ids,
        .data = &(const belay_idgen_mode_t){BELAY_IDGEN_SEQUENCE},
    },
    {
        .name = "snowflake",
        .arguments = "NAME",
        .summary = "a number made of the time, a worker and a sequence: 41, 10 and 12 bits",
        .text = "belay locks a worker of NAME for as long as it runs. A machine tries the same "
                "worker each time; its first use of NAME takes --ahead longer. The status is "
                "121 if all 1,024 workers, or the selected one, are in use. See belay id "
                "decode.",
        .examples = EXAMPLES({"Ids of a machine that always uses the same worker",
                              "belay id snowflake events --worker 7 --count 100"}),
        .options = OPTIONS(
            COUNT_OPTION,
            NUMBER("worker", 0, BELAY_IDGEN_WORKERS - 1, &asked.worker,
                   "number of the worker, 0 to 1023; default: any free worker"),
            DURATION("ttl", 100, DAY_MS, &asked.ttl_ms,
                     "duration of the lease on the worker; default 10s"),
            DURATION("ahead", 100, 60000, &asked.ahead_ms,
                     "time for which a worker may issue ids without a query, the same for all "
                     "users of NAME; default 1s"),
            EPOCH_OPTION),
        .what = "cannot get an id",
        .begin = draw_ids,
        .data = &(const belay_idgen_mode_t){BELAY_IDGEN_SNOWFLAKE},
    },
    {
        .name = "uuid",
        .summary = "a UUID of version 7, made without a server",
        .examples = EXAMPLES({"Make ten UUIDs", "belay id uuid --count 10"}),
        .options = OPTIONS(COUNT_OPTION),
        .what = "cannot make a UUID",
        .begin = begin_uuid,
        .offline = true,
    },
    {0},
};

const command_t id_command = {
    .name = "id",
    .summary = "unique ids: numbers and UUIDs",
    .examples = EXAMPLES(
        {"When an id was made", "date -d @$(belay id decode $ID --json | jq .unix_ms/1000)"}),
    .subcommands = subcommands,
};

#include "sim/world/server.h"

#include <stdlib.h>
#include <string.h>

#include "sim/check/check.h"
#include "sim/world/process.h"
#include "sim/scenarios/scenario.h"

#define EPOCH (UINT64_C(1800000000) * SIM_S) /* when the world begins, on an exact wall clock */
#define OLD_MS 3600000 /* at first servers have been up for at least so long */
#define BATCH 16       /* commands of one connection at one instant */
#define SAVE_MS 400    /* between two images, about */
#define SLOW_MS 8      /* longest command on a slow server */

static void on_work(sim_event_t *event);

/* ---- time ---- */

uint64_t sim_server_clock(const sim_server_t *server) {
  return (sim_clock_at(&server->clock, server->world->now) + (uint64_t)server->step) / 1000;
}

void sim_server_step_clock(sim_server_t *server, int64_t ns) {
  sim_note(server->world, server->name, "clock set by %.3f ms", (double)ns / 1e6);
  server->step += ns;
}

/* ---- the engine and its life ---- */

static void on_changed(void *ctx, engine_bytes_t key, engine_bytes_t was, engine_bytes_t is,
                       engine_cause_t cause) {
  sim_check_changed(ctx, key, was, is, cause);
}

static sim_conn_t *find_conn(sim_server_t *server, int64_t id) {
  sim_net_t *net = server->world->net;
  if (id < 1 || id > (int64_t)net->numbers)
    return NULL;
  sim_conn_t *conn = net->by_fd[id];
  return conn->server == server && conn->accepted ? conn : NULL;
}

static bool on_kill(void *ctx, int64_t id) {
  sim_conn_t *conn = find_conn(ctx, id);
  if (conn == NULL)
    return false;
  engine_disconnect(conn->server->engine, &conn->engine);
  sim_conn_close_server(conn);
  return true;
}

static void on_push(void *ctx, engine_conn_t *to, const char *at, size_t len) {
  (void)ctx;
  sim_conn_send(to->owner, SIM_TO_PROCESS, at, len);
}

static engine_t *new_engine(sim_server_t *server, uint64_t started_us) {
  char run_id[41];
  snprintf(run_id, sizeof run_id, "%020u%020u", server->index + 1, server->lives);
  engine_options_t options = {
      .hooks = {.ctx = server, .changed = on_changed, .kill = on_kill, .push = on_push},
      .run_id = run_id,
      .started_us = started_us,
      .replicas = server->world->scenario->min_replicas,
  };
  return engine_new(&options);
}

static void save(const sim_server_t *server, engine_image_t **image) {
  engine_image_free(*image);
  *image = engine_save(server->engine);
}

static void on_save(sim_event_t *event) {
  sim_server_t *server = SIM_CONTAINER(event, sim_server_t, save);
  if (!server->down)
    save(server, &server->image);
  if (!server->down && server->behind_until <= server->world->now)
    save(server, &server->replica);
  sim_event_set(server->world, event,
                server->world->now + sim_around(&server->world->random, SAVE_MS * SIM_MS) + SIM_MS);
}

static void on_up(sim_event_t *event) {
  sim_server_t *server = SIM_CONTAINER(event, sim_server_t, up);
  sim_world_t *world = server->world;
  server->down = false;
  server->engine = new_engine(server, sim_server_clock(server));
  if (server->image != NULL)
    engine_load(server->engine, server->image);
  save(server, &server->replica);
  sim_note(world, server->name, "is up again");
  sim_check_restarted(server);
  if (sim_chance(&world->random, 300))
    sim_server_refuse(server, "-LOADING Redis is loading the dataset in memory\r\n",
                      sim_below(&world->random, 20) * SIM_MS);
}

void sim_server_init(sim_server_t *server, sim_world_t *world, unsigned index) {
  const sim_scenario_t *scenario = world->scenario;
  uint64_t drift = (uint64_t)scenario->drift;
  *server = (sim_server_t){.world = world,
                           .index = index,
                           .secretive = scenario->secretive,
                           .up = {.run = on_up},
                           .work = {.run = on_work},
                           .save = {.run = on_save}};
  snprintf(server->name, sizeof server->name, "s%u", index);
  belay__list_init(&server->waiting);
  server->clock.base = EPOCH + sim_below(&world->random, scenario->skew_ms * SIM_MS + 1);
  server->clock.rate = (int64_t)sim_between(&world->random, 0, 2 * drift) - (int64_t)drift;
  if (server->clock.rate != 0)
    sim_count(world, SIM_DRIFT);
  server->engine = new_engine(server, sim_server_clock(server) - OLD_MS * UINT64_C(1000));
  if (scenario->mean_ms[SIM_RESTART_OLDER] > 0 || scenario->mean_ms[SIM_RESTART_UNSEEN] > 0 ||
      scenario->mean_ms[SIM_FAILOVER] > 0)
    sim_event_set(world, &server->save, SIM_MS);
}

void sim_server_fini(sim_server_t *server) {
  if (!server->down)
    engine_free(server->engine);
  engine_image_free(server->image);
  engine_image_free(server->replica);
}

/* ---- commands ---- */

/* Commands about the server itself: it executes them although it is out of memory, loading, or
 * a replica. */
static bool is_of_server(engine_bytes_t command) {
  return sim_bytes_are(command, "INFO") || sim_bytes_are(command, "COMMAND");
}

static bool spares_questions(const char *refusal) {
  return strncmp(refusal, "-BUSY", 5) != 0 && strncmp(refusal, "-NOAUTH", 7) != 0;
}

/* Whether the server answers without executing. */
static bool refuses(sim_server_t *server, const engine_bytes_t *argv, size_t argc,
                    engine_buffer_t *out) {
  static const char secret[] = "-NOPERM this user has no permissions to run this command\r\n";
  sim_world_t *world = server->world;
  if (server->secretive && (sim_bytes_are(argv[0], "HELLO") || is_of_server(argv[0]) ||
                            (argc > 1 && sim_bytes_are(argv[1], "KILL")))) {
    engine_buffer_add(out, secret, sizeof secret - 1);
    return true;
  }
  if (server->refusing_until <= world->now || sim_bytes_are(argv[0], "CLIENT") ||
      sim_bytes_are(argv[0], "HELLO") ||
      (is_of_server(argv[0]) && spares_questions(server->refusal)))
    return false;
  sim_count(world, SIM_REFUSED);
  engine_buffer_add(out, server->refusal, strlen(server->refusal));
  return true;
}

static void note_command(const sim_conn_t *conn, const engine_bytes_t *argv, size_t argc,
                         const engine_buffer_t *out, size_t at) {
  char text[480];
  size_t n = 0;
  for (size_t i = 0; i < argc && n < sizeof text; i++) {
    bool script = argv[i].len > 60 || memchr(argv[i].at, '\0', argv[i].len) != NULL;
    const char *from = script ? "..." : argv[i].at;
    int len = script ? 3 : (int)argv[i].len;
    n += (size_t)snprintf(text + n, sizeof text - n, "%s%.*s", i > 0 ? " " : "", len, from);
  }
  int reply = (int)(out->len - at < 70 ? out->len - at : 70);
  char said[71];
  for (int i = 0; i < reply; i++)
    said[i] = out->at[at + (size_t)i] < ' ' || out->at[at + (size_t)i] > '~'
                  ? ' '
                  : out->at[at + (size_t)i];
  sim_write(conn->world, conn->server->name, "%s: %s -> %.*s", conn->name, text, reply, said);
}

/* Notes the order of commands of all connections. */
static void note_order(sim_conn_t *conn) {
  sim_net_t *net = conn->world->net;
  uint64_t *youngest = &net->executed[conn->process_index][conn->server->index];
  uint64_t *latest = &net->executed_sent[conn->process_index][conn->server->index];
  conn->server->ghost = conn->number < *youngest && conn->process == NULL;
  if (conn->server->ghost)
    sim_count(conn->world, SIM_GHOST);
  if (conn->input_sent < *latest)
    sim_count(conn->world, SIM_REORDER);
  if (conn->number > *youngest)
    *youngest = conn->number;
  if (conn->input_sent > *latest)
    *latest = conn->input_sent;
}

static void wait_for_work(sim_server_t *server, uint64_t when) {
  if (when < server->busy_until)
    when = server->busy_until;
  if (when < server->paused_until)
    when = server->paused_until;
  if (!sim_event_is_set(&server->work) || server->work.at > when)
    sim_event_set(server->world, &server->work, when);
}

/* It stands in line. */
static void queue(sim_server_t *server, sim_conn_t *conn) {
  if (belay__list_empty(&conn->waiting) && !conn->blocked)
    belay__list_push(&server->waiting, &conn->waiting);
  wait_for_work(server, server->world->now);
}

static void on_unblocked(sim_event_t *event) {
  sim_conn_t *conn = SIM_CONTAINER(event, sim_conn_t, unblocked);
  char reply[16];
  int len = snprintf(reply, sizeof reply, ":%u\r\n", conn->copies);
  conn->blocked = false;
  if (conn->copies > 0 && conn->server->behind_until <= conn->world->now)
    save(conn->server, &conn->server->replica);
  sim_note(conn->world, conn->server->name, "%s: WAIT -> :%u", conn->name, conn->copies);
  sim_conn_send(conn, SIM_TO_PROCESS, reply, (size_t)len);
  queue(conn->server, conn);
}

/* WAIT, as in Redis 7.2: later commands of its connection wait until the replicas have the
 * connection's writes or the timeout ends. */
static bool blocks(sim_server_t *server, sim_conn_t *conn, const engine_bytes_t *argv,
                   size_t argc) {
  sim_world_t *world = server->world;
  if (argc != 3 || !sim_bytes_are(argv[0], "WAIT"))
    return false;
  uint64_t limit = strtoull(argv[2].at, NULL, 10) * SIM_MS, lag = 0;
  bool copied = conn->wrote <= server->behind_since;
  if (!copied || server->behind_until <= world->now)
    lag = server->behind_until > world->now ? server->behind_until - world->now
                                            : sim_between(&world->random, 50, 400) * SIM_US;
  conn->copies = lag <= limit ? world->scenario->min_replicas : 0;
  conn->blocked = true;
  conn->unblocked.run = on_unblocked;
  sim_event_set(world, &conn->unblocked, world->now + (lag <= limit ? lag : limit));
  if (lag > limit)
    sim_count(world, SIM_REPLICA_LATE);
  return true;
}

static void execute(sim_server_t *server, sim_conn_t *conn, const engine_bytes_t *argv, size_t argc,
                    engine_buffer_t *out) {
  sim_world_t *world = server->world;
  size_t at = out->len;
  world->figures.commands++;
  server->from = conn->process_index;
  note_order(conn);
  uint64_t writes = engine_writes(server->engine);
  if (!refuses(server, argv, argc, out) && !blocks(server, conn, argv, argc))
    engine_execute(server->engine, &conn->engine, sim_server_clock(server), argv, argc, out);
  if (engine_writes(server->engine) != writes)
    conn->wrote = world->now + 1;
  if (out->len > at && out->at[at] != '-')
    sim_check_executed_all(server, argv, argc,
                           (engine_bytes_t){.at = out->at + at, .len = out->len - at});
  if (world->timeline != NULL)
    note_command(conn, argv, argc, out, at);
}

/* ---- a world that is held ---- */

/* True for commands that wait for replicas; commands about the connection or the server do not. */
static bool waits(const engine_bytes_t *argv) {
  static const char *const free[] = {"HELLO", "AUTH", "CLIENT",    "COMMAND",    "INFO",  "PING",
                                     "TIME",  "WAIT", "SUBSCRIBE", "SSUBSCRIBE", "SCRIPT"};
  for (size_t i = 0; i < sizeof free / sizeof *free; i++)
    if (sim_bytes_are(argv[0], free[i]))
      return false;
  return true;
}

size_t sim_server_next(const sim_conn_t *conn, engine_bytes_t argv[ENGINE_ARGS_MAX]) {
  size_t argc;
  if (!conn->accepted || conn->blocked)
    return 0;
  long used = engine_parse(conn->input.at + conn->input_done, conn->input.len - conn->input_done,
                           argv, &argc);
  return used > 0 && waits(argv) ? argc : 0;
}

void sim_server_let_command(sim_conn_t *conn) {
  conn->let++;
  queue(conn->server, conn);
}

void sim_server_let_all(sim_server_t *server) {
  sim_net_t *net = server->world->net;
  for (belay__list_t *i = net->conns.next; i != &net->conns; i = i->next) {
    sim_conn_t *conn = BELAY__CONTAINER(i, sim_conn_t, node);
    if (conn->server == server && conn->accepted)
      queue(server, conn);
  }
}

/* Executes what is complete of a connection's input, at most a batch of it. Returns how much it
 * did; a connection that breaks the protocol is closed. */
static unsigned execute_input(sim_server_t *server, sim_conn_t *conn, engine_buffer_t *out) {
  static engine_bytes_t argv[ENGINE_ARGS_MAX];
  unsigned n = 0;
  size_t argc;
  while (n < BATCH && conn->accepted && !conn->blocked) {
    long used = engine_parse(conn->input.at + conn->input_done, conn->input.len - conn->input_done,
                             argv, &argc);
    if (used <= 0) {
      if (used < 0)
        sim_violation(server->world, "%s: the input is no RESP", conn->name);
      break;
    }
    if (server->world->held && waits(argv)) {
      if (conn->let == 0)
        break;
      conn->let--;
      server->world->answering = true;
    }
    execute(server, conn, argv, argc, out);
    conn->input_done += (size_t)used;
    n++;
    if (server->world->answering)
      break;
  }
  if (conn->input_done == conn->input.len)
    conn->input_done = conn->input.len = 0;
  return n;
}

static uint64_t cost_of(sim_server_t *server, unsigned commands) {
  sim_world_t *world = server->world;
  if (server->slow_until > world->now)
    return commands * sim_below(&world->random, SLOW_MS * SIM_MS);
  return commands * sim_between(&world->random, 1000, 4000);
}

static void serve(sim_server_t *server, sim_conn_t *conn) {
  engine_buffer_t out = {0};
  if (conn->doom == SIM_CUT_FIRST) {
    sim_conn_cut(conn);
    return;
  }
  unsigned n = execute_input(server, conn, &out);
  server->busy_until = server->world->now + cost_of(server, n);
  if (n == BATCH && conn->accepted)
    queue(server, conn);
  if (n > 0 && conn->doom == SIM_CUT_THEN)
    sim_conn_cut(conn);
  else if (out.len > 0 && conn->accepted)
    sim_conn_send(conn, SIM_TO_PROCESS, out.at, out.len);
  engine_buffer_free(&out);
  if (server->world->answering && conn->accepted)
    queue(server, conn); /* later commands may be ready */
  server->world->answering = false;
  if (conn->ended && !conn->blocked)
    sim_server_hang_up(server, conn);
}

/* Which of several connections is first is chance. */
static void on_work(sim_event_t *event) {
  sim_server_t *server = SIM_CONTAINER(event, sim_server_t, work);
  if (server->down || belay__list_empty(&server->waiting))
    return;
  if (server->paused_until > server->world->now) {
    wait_for_work(server, server->paused_until);
    return;
  }
  bool last = sim_chance(&server->world->random, 300);
  belay__list_t *node = last ? server->waiting.prev : server->waiting.next;
  belay__list_remove(node);
  serve(server, BELAY__CONTAINER(node, sim_conn_t, waiting));
  if (!belay__list_empty(&server->waiting))
    wait_for_work(server, server->busy_until);
}

void sim_server_receive(sim_server_t *server, sim_conn_t *conn, const char *at, size_t len) {
  if (server->down || !conn->accepted)
    return;
  engine_buffer_add(&conn->input, at, len);
  queue(server, conn);
}

void sim_server_drop(sim_server_t *server, sim_conn_t *conn) {
  if (server->down || !conn->accepted)
    return;
  engine_disconnect(server->engine, &conn->engine);
  sim_conn_close_server(conn);
}

/* Closes a connection: the server reads the earlier bytes and sends no replies. */
void sim_server_hang_up(sim_server_t *server, sim_conn_t *conn) {
  conn->ended = true;
  if (conn->input.len == conn->input_done && !conn->blocked)
    sim_server_drop(server, conn);
}

void sim_server_command(sim_server_t *server, const char *const *words, size_t n) {
  engine_bytes_t argv[16];
  engine_conn_t foreign = {.id = INT64_MAX};
  engine_buffer_t out = {0};
  if (server->down)
    return;
  server->ghost = false;
  for (size_t i = 0; i < n; i++)
    argv[i] = (engine_bytes_t){words[i], strlen(words[i])};
  engine_execute(server->engine, &foreign, sim_server_clock(server), argv, n, &out);
  sim_note(server->world, server->name, "another program: %s %s -> %.*s", words[0],
           n > 1 ? words[1] : "", out.len > 2 ? (int)out.len - 2 : 0, out.at);
  engine_buffer_free(&out);
}

/* ---- faults ---- */

void sim_server_pause(sim_server_t *server, uint64_t ns) {
  sim_note(server->world, server->name, "stands still for %.3f ms", (double)ns / 1e6);
  if (server->world->now + ns > server->paused_until)
    server->paused_until = server->world->now + ns;
}

void sim_server_slow(sim_server_t *server, uint64_t ns) {
  sim_note(server->world, server->name, "is slow for %.3f ms", (double)ns / 1e6);
  server->slow_until = server->world->now + ns;
}

bool sim_server_leave_behind(sim_server_t *server, uint64_t ns) {
  uint64_t now = server->world->now;
  if (server->behind_until > now)
    return false;
  sim_note(server->world, server->name, "its replicas are behind for %.3f ms", (double)ns / 1e6);
  save(server, &server->replica);
  server->behind_since = now;
  server->behind_until = now + ns;
  return true;
}

void sim_server_refuse(sim_server_t *server, const char *error, uint64_t ns) {
  sim_note(server->world, server->name, "refuses for %.3f ms: %.*s", (double)ns / 1e6,
           (int)strlen(error) - 2, error);
  server->refusal = error;
  server->refusing_until = server->world->now + ns;
}

/* Ends all connections. A pending WAIT ends with an error if the server is demoted. */
static void hang_up_on_all(sim_server_t *server, bool demoted) {
  static const char unblocked[] = "-UNBLOCKED force unblock from blocking operation, "
                                  "instance state changed (master -> replica?)\r\n";
  sim_net_t *net = server->world->net;
  for (belay__list_t *i = net->conns.next; i != &net->conns; i = i->next) {
    sim_conn_t *conn = BELAY__CONTAINER(i, sim_conn_t, node);
    if (conn->server != server || !conn->accepted)
      continue;
    if (demoted && conn->blocked)
      sim_conn_send(conn, SIM_TO_PROCESS, unblocked, sizeof unblocked - 1);
    engine_disconnect(server->engine, &conn->engine);
    sim_conn_close_server(conn);
  }
}

/* Replaces the data; present clients do not notice. */
static void replace_data(sim_server_t *server) {
  static const char *const flush[] = {"FLUSHALL"};
  sim_server_command(server, flush, 1);
  if (server->image != NULL)
    engine_load(server->engine, server->image);
  sim_check_restarted(server);
}

void sim_server_restart(sim_server_t *server, sim_restart_t how, uint64_t down_for) {
  static const char *const hows[] = {"with its data", "with older data", "without data",
                                     "as its replica", "with older data, unseen"};
  sim_world_t *world = server->world;
  if (server->down)
    return;
  sim_note(world, server->name, "restarts %s, away for %.3f ms", hows[how], (double)down_for / 1e6);
  if (how == SIM_UNSEEN) {
    replace_data(server);
    return;
  }
  if (how == SIM_WITH_DATA)
    save(server, &server->image);
  if (how == SIM_WITHOUT_DATA || how == SIM_FROM_REPLICA) {
    engine_image_free(server->image);
    server->image = NULL;
  }
  if (how == SIM_FROM_REPLICA) {
    server->image = server->replica;
    server->replica = NULL;
  }
  hang_up_on_all(server, how == SIM_FROM_REPLICA);
  engine_free(server->engine);
  server->engine = NULL;
  server->lives++;
  server->down = true;
  server->busy_until = server->paused_until = server->slow_until = server->refusing_until = 0;
  server->behind_until = 0;
  sim_event_set(world, &server->up, world->now + down_for);
}

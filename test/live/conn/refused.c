/* Temporary refusals of a server: each row of the table in src/core/call/refusal.c on a server
 * in that state, with the results of a lock, a limiter and a counter. After the state ends all
 * of them work again. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "support/servers/acl.h"
#include "support/load/op_set.h"

#define DROP "CLIENT", "KILL", "TYPE", "normal", NULL

static char folder[64];    /* of MISCONF */
static resp_client_t busy; /* the client that keeps the server busy */

/* ---- how to make a server say so ---- */

static void fill_memory(server_t *server) {
  server_do(server, "CONFIG", "SET", "maxmemory-policy", "noeviction", NULL);
  server_do(server, "CONFIG", "SET", "maxmemory", "1", NULL);
}

static void empty_memory(server_t *server) {
  server_do(server, "CONFIG", "SET", "maxmemory", "0", NULL);
}

static void until_info(server_t *server, const char *field, const char *value) {
  char line[80];
  int64_t began = clock_now();
  snprintf(line, sizeof line, "%s:%s\r", field, value);
  while (strstr(server_string(server, "INFO", "everything", NULL), line) == NULL) {
    if (clock_since_ms(began) > 20000 * slow())
      fail_msg("there is no %s:%s", field, value);
    stall_ms(2);
  }
}

/* Where it is to save there is nothing any more. */
static void lose_folder(server_t *server) {
  snprintf(folder, sizeof folder, "/tmp/belay-test-lost-XXXXXX");
  assert_non_null(mkdtemp(folder));
  server_do(server, "CONFIG", "SET", "save", "3600 1000000", NULL);
  server_do(server, "CONFIG", "SET", "dir", folder, NULL);
  assert_int_equal(rmdir(folder), 0);
  server_do(server, "BGSAVE", NULL);
  until_info(server, "rdb_last_bgsave_status", "err");
}

static void find_folder(server_t *server) {
  server_do(server, "CONFIG", "SET", "dir", server_folder(server), NULL);
  server_do(server, "BGSAVE", NULL);
  until_info(server, "rdb_last_bgsave_status", "ok");
}

static void ask_for_replicas(server_t *server) {
  server_do(server, "CONFIG", "SET", "min-replicas-to-write", "1", NULL);
}

static void need_no_replicas(server_t *server) {
  server_do(server, "CONFIG", "SET", "min-replicas-to-write", "0", NULL);
}

static void follow_nobody(server_t *server) {
  server_do(server, "REPLICAOF", "127.0.0.1", "1", NULL);
}

static void follow_and_say_nothing_old(server_t *server) {
  server_do(server, "CONFIG", "SET", "replica-serve-stale-data", "no", NULL);
  follow_nobody(server);
}

static void lead(server_t *server) {
  server_do(server, "REPLICAOF", "NO", "ONE", NULL);
  server_do(server, "CONFIG", "SET", "replica-serve-stale-data", "yes", NULL);
}

static void say_without_waiting(server_t *server, const char *command) {
  assert_int_equal(acl_dial(NULL, &busy, server_path(server)), 0);
  assert_int_equal(resp_send(busy.fd, command, strlen(command)), 0);
}

static void until_it_says(server_t *server, const char *code) {
  int64_t began = clock_now();
  for (;;) {
    const resp_t *reply = server_ask(server, "GET", "x", NULL);
    if (reply->type == RESP_ERROR && strncmp(reply->str, code, strlen(code)) == 0)
      return;
    if (clock_since_ms(began) > 20000 * slow())
      fail_msg("the server does not say %s", code);
    stall_ms(2);
  }
}

/* So many slow and large keys that loading never ends without an order to hurry, and the server
 * listens after each key. */
static void load_slowly(server_t *server) {
  server_do(server, "DEBUG", "POPULATE", "20000", "big", "2000", NULL);
  server_do(server, "CONFIG", "SET", "rdbcompression", "no", "key-load-delay", "5000", NULL);
  say_without_waiting(server, "DEBUG RELOAD\r\n");
  until_it_says(server, "LOADING");
}

static void load_quickly(server_t *server) {
  server_do(server, "CONFIG", "SET", "key-load-delay", "0", NULL);
  until_info(server, "loading", "0");
  resp_hang_up(&busy);
}

static void run_for_ever(server_t *server) {
  say_without_waiting(server, "EVAL \"while true do end\" 0\r\n");
  until_it_says(server, "BUSY");
}

static void stop_script(server_t *server) {
  server_do(server, "SCRIPT", "KILL", NULL);
  resp_hang_up(&busy);
}

static void lose_slots(server_t *server) {
  server_do(server, "CLUSTER", "DELSLOTSRANGE", "0", "16383", NULL);
}

static void serve_slots(server_t *server) {
  server_do(server, "CLUSTER", "ADDSLOTSRANGE", "0", "16383", NULL);
  int64_t began = clock_now();
  while (strstr(server_string(server, "CLUSTER", "INFO", NULL), "cluster_state:ok") == NULL) {
    assert_true(clock_since_ms(began) < 20000 * slow());
    stall_ms(2);
  }
}

/* The limit of clients is reached: new clients are refused, and present ones are disconnected. */
static void fill_up(server_t *server) {
  server_do(server, "CONFIG", "SET", "maxclients", "1", NULL);
  server_do(server, DROP);
}

static void make_room(server_t *server) {
  server_do(server, "CONFIG", "SET", "maxclients", "1000", NULL);
}

static void forget_scripts(server_t *server) {
  server_do(server, "SCRIPT", "FLUSH", NULL);
}

static void forbid_writing(server_t *server) {
  server_do(server, "ACL", "SETUSER", "default", "-@write", "-@scripting", NULL);
}

static void allow_all(server_t *server) {
  server_do(server, "ACL", "SETUSER", "default", "+@all", NULL);
}

static void ask_for_a_password(server_t *server) {
  server_do(server, "CONFIG", "SET", "requirepass", "sesame", NULL);
  server_do(server, DROP);
}

static void ask_for_none(server_t *server) {
  server_do(server, "CONFIG", "SET", "requirepass", "", NULL);
}

static void do_nothing(server_t *server) {
  (void)server;
}

/* ---- the status of each operation ---- */

#define ALL(error)                                                                                 \
  { error, error, error, error, error, false, 0 }
#define ALL_IN_TIME(error)                                                                         \
  { error, error, error, error, error, true, 0 }

typedef struct row {
  const char *name;
  void (*begin)(server_t *server), (*end)(server_t *server);
  const char *says;
  op_statuses_t expected;
  bool cluster;
} row_t;

static const row_t rows[] = {
    /* a lease can be renewed and released without free memory */
    {"is out of memory",
     fill_memory,
     empty_memory,
     "OOM ",
     {BELAY_EOOM, 0, 0, BELAY_EOOM, BELAY_EOOM, false, 0},
     false},
    {"cannot save", lose_folder, find_folder, "MISCONF ", ALL(BELAY_EMISCONF), false},
    {"has too few replicas", ask_for_replicas, need_no_replicas, "NOREPLICAS ",
     ALL(BELAY_ENOREPLICAS), false},
    {"loads", load_slowly, load_quickly, "LOADING ", ALL_IN_TIME(BELAY_ELOADING), false},
    {"is busy", run_for_ever, stop_script, "BUSY ", ALL_IN_TIME(BELAY_ESCRIPTBUSY), false},
    {"is a replica", follow_nobody, lead, "READONLY ", ALL_IN_TIME(BELAY_EREADONLY), false},
    /* write commands get the other error; which of both an acquire gets depends on the known
     * abilities */
    {"has lost its primary",
     follow_and_say_nothing_old,
     lead,
     NULL,
     {BELAY_EREADONLY, BELAY_ECLUSTERDOWN, BELAY_ECLUSTERDOWN, BELAY_ECLUSTERDOWN, BELAY_EREADONLY,
      true, BELAY_ECLUSTERDOWN},
     false},
    {"serves no slot", lose_slots, serve_slots, "CLUSTERDOWN ", ALL_IN_TIME(BELAY_ECLUSTERDOWN),
     true},
    {"is full", fill_up, make_room, "ERR max number of clients", ALL(BELAY_EMAXCLIENTS), false},
    {"wants a password", ask_for_a_password, ask_for_none, "NOAUTH ", ALL(BELAY_EAUTH), false},
    {"does not allow it", forbid_writing, allow_all, "NOPERM ", ALL(BELAY_EPERM), false},
    {"has forgotten the scripts", forget_scripts, do_nothing, NULL, ALL(0), false},
};

static server_t *start_server(bool cluster) {
  static const server_options_t options = {
      .arguments = {"--enable-debug-command", "yes", "--enable-protected-configs", "yes",
                    "--busy-reply-threshold", "20", "--loading-process-events-interval-bytes",
                    "1024", NULL}};
  static const server_options_t of_cluster = {.cluster = true};
  server_t *server = server_start(cluster ? &of_cluster : &options);
  if (cluster)
    serve_slots(server);
  return server;
}

/* A replica is no primary for a client that asked a Sentinel for one. */
static const op_statuses_t *expected(const row_t *row) {
  static const op_statuses_t by_role = {BELAY_EREADONLY,   BELAY_EREADONLY, BELAY_EREADONLY,
                                        BELAY_EREADONLY,   BELAY_EREADONLY, true,
                                        BELAY_ECLUSTERDOWN};
  bool lost = row->begin == follow_and_say_nothing_old;
  return lost && deployment() == DEPLOYMENT_SENTINEL ? &by_role : &row->expected;
}

/* A client with a password does not get the message that one is needed. */
static const char *says(const row_t *row) {
  bool has_one = acl_applies(&(server_options_t){.password = NULL});
  return has_one && row->begin == ask_for_a_password ? "WRONGPASS " : row->says;
}

TEST(refusals) {
  if (deployment_is_cluster())
    skip(); /* nodes of a cluster cannot be made replicas by hand; they have another row */
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const row_t *row = &rows[i];
    print_message("a server that %s\n", row->name);
    op_set_t *op_set = op_set_open(start_server(row->cluster), NULL, NULL);
    op_set_use_all(op_set);
    row->begin(op_set->server);
    op_set_expect(op_set, row->name, expected(row), says(row));
    row->end(op_set->server);
    op_set_expect_recovered(op_set);
    op_set_close(op_set);
  }
}

/* A survey of the servers of a deployment: a temporary client probes each of them, all at the
 * same time.
 *
 *    address --> IDENTIFYING --HELLO ... answered---> SAMPLING --TIME, `samples` times--> CLOSING
 *                   |  new addresses are probed too     ^   |                          |  |
 *                   |                                   +---+                          |  |
 *                   +--no reply; known by its run id; or the request has ended---------+  |
 *                                                                                         v
 *                                                               its client is closed: CLOSED
 *
 * The result is reported when no probe is IDENTIFYING or SAMPLING any more. The survey is freed
 * when the request has ended and all probes are CLOSED. A client that looks up a name closes only
 * after the lookup, which may be much later. A cancel closes the probes. All calls have one
 * deadline, so the survey needs no timer.
 *
 * If no address is known, the deployment's own client first sends a PING, which makes it find a
 * server. That server may be dead. So after a third of the time the servers known by then are
 * probed; if there are none, the PING gets the rest of the time. */
#include "admin/topology.h"

#include <string.h>

#include "core/client/request.h"
#include "core/client/lifecycle.h"

enum {
  IDENTIFYING, /* HELLO, ROLE and INFO are sent */
  SAMPLING,    /* TIME is sent, again and again */
  CLOSING,     /* The client closes */
  CLOSED       /* The client is closed, or none could be made */
};

#define COMMANDS_MAX 3 /* Maximum of commands that are sent together to one server */

typedef struct probe probe_t;
typedef struct survey survey_t;

struct probe {
  belay__list_t node; /* link in survey->probes */
  survey_t *survey;
  belay_client_t *client; /* NULL: CLOSED */
  belay__task_t task;     /* runs when all pending calls have ended */
  size_t pending;         /* Number of pending calls */
  belay__call_t *calls[COMMANDS_MAX];
  uint8_t state;
  /* true if a probe that was identified earlier has the same run id: the same server at another
   * address */
  bool duplicate;
  bool no_time; /* true if the user may not read the time */
  belay__topology_entry_t info;
};

struct survey {
  belay_t *belay;
  belay__operation_t *operation; /* NULL: the request has ended */
  /* client of the deployment; used only until the request has ended */
  belay_client_t *client;
  belay__task_t task; /* Begins or ends the survey */
  belay__list_t probes;
  size_t n, open; /* number of all probes; of those that are IDENTIFYING or SAMPLING */
  size_t refs;    /* references: probes that are not CLOSED, and the request */
  unsigned samples;
  uint64_t deadline;
  /* status of the request: error of the PING if no server is known; BELAY_ENOMEM if an entry is
   * missing */
  int status;
  bool begun;
};

/* ---- the survey ---- */

static probe_t *probe_of(belay__list_t *node) {
  return BELAY__CONTAINER(node, probe_t, node);
}

static void free_survey(survey_t *survey) {
  for (belay__list_t *node; (node = belay__list_pop(&survey->probes)) != NULL;)
    belay__free(survey->belay, probe_of(node), sizeof(probe_t));
  belay__task_stop(survey->belay, &survey->task);
  belay__free(survey->belay, survey, sizeof *survey);
}

static void release_survey(survey_t *survey) {
  if (--survey->refs == 0)
    free_survey(survey);
}

static void end_if_complete(survey_t *survey) {
  if (survey->open == 0 && survey->begun && survey->operation != NULL)
    belay__defer(survey->belay, &survey->task);
}

static bool is_known(const survey_t *survey, const char *place) {
  for (belay__list_t *node = survey->probes.next; node != &survey->probes; node = node->next)
    if (strcmp(probe_of(node)->info.address, place) == 0)
      return true;
  return false;
}

static void on_closed(belay_client_t *client, void *data);
static void on_probe(belay__task_t *task);

/* A command of the survey, with its argument or NULL. */
typedef struct command {
  const char *command, *argument;
} command_t;

static const command_t identify_commands[COMMANDS_MAX] = {
    {"HELLO", NULL}, {"ROLE", NULL}, {"INFO", "stats"}};
static const command_t time_commands[1] = {{"TIME", NULL}};

static bool send_commands(probe_t *probe, const command_t *commands, size_t n);

/* Probes the server at that address, unless a probe of the address exists or there are too many
 * probes. */
static void add_server(survey_t *survey, const char *place) {
  if (place[0] == '\0' || survey->n == BELAY_TOPOLOGY_SERVERS_MAX || is_known(survey, place))
    return;
  probe_t *probe = belay__alloc(survey->belay, sizeof *probe);
  if (probe == NULL) { /* no memory for the entry of the result */
    survey->status = BELAY_ENOMEM;
    return;
  }
  *probe = (probe_t){.survey = survey, .state = CLOSED};
  belay__task_init(&probe->task, on_probe);
  belay__topology_entry_init(&probe->info, place);
  int error = survey->client->node_ops->visit(survey->client, place, &probe->client);
  if (error == BELAY_ESINGLE) { /* the deployment is one server, at another address */
    belay__free(survey->belay, probe, sizeof *probe);
    return;
  }
  belay__list_push(&survey->probes, &probe->node);
  survey->n++;
  probe->info.result.status = error;
  if (error != 0)
    return;
  probe->client->data = probe;
  probe->client->close_cb = on_closed;
  probe->state = IDENTIFYING;
  survey->open++;
  survey->refs++;
  if (!send_commands(probe, identify_commands, COMMANDS_MAX))
    belay__defer(survey->belay, &probe->task);
}

static void begin_survey(survey_t *survey) {
  char place[BELAY__PLACE_MAX];
  survey->begun = true;
  for (size_t i = 0; survey->client->node_ops->place(survey->client, i, place); i++) {
    if (i == 0)
      survey->status = 0; /* servers are known, so the failed PING does not matter */
    add_server(survey, place);
  }
  end_if_complete(survey);
}

enum { SURVEY, SERVERS }; /* values of a request: the survey, and the number of servers */

static void end_survey(survey_t *survey) {
  belay__operation_t *operation = survey->operation;
  belay_topology_server_t *result = NULL;
  size_t n = 0;
  if (survey->status == 0)
    result = belay__request_room(operation, survey->n * sizeof *result);
  for (belay__list_t *node = survey->probes.next; result != NULL && node != &survey->probes;
       node = node->next) {
    probe_t *probe = probe_of(node);
    belay__topology_entry_sum_up(&probe->info);
    if (!probe->duplicate)
      result[n++] = probe->info.result;
  }
  survey->operation = NULL;
  operation->values[SURVEY] = (int64_t)(intptr_t)survey;
  operation->values[SERVERS] = (int64_t)n;
  belay__request_end(operation,
                     survey->status == 0 && result == NULL ? BELAY_ENOMEM : survey->status);
}

static void on_survey(belay__task_t *task) {
  survey_t *survey = BELAY__CONTAINER(task, survey_t, task);
  if (survey->begun)
    end_survey(survey);
  else
    begin_survey(survey);
}

/* ---- a probe ---- */

static void close_probe(probe_t *probe) {
  if (probe->state == CLOSING)
    return;
  probe->state = CLOSING;
  probe->survey->open--;
  if (!probe->client->closing)
    belay__client_start_close(probe->client, false);
  end_if_complete(probe->survey);
}

/* Makes the probe CLOSED at the end of its client. Also runs if another part closes the client:
 * belay_close() closes all clients. */
static void on_closed(belay_client_t *client, void *data) {
  probe_t *probe = data;
  (void)client;
  close_probe(probe);
  probe->state = CLOSED;
  probe->client = NULL;
  belay__task_stop(probe->survey->belay, &probe->task);
  release_survey(probe->survey);
}

static void on_answer(belay__call_t *call, const belay__result_t *result);

/* Stores the error in the result, and the client's detail if it is about this error. */
static void keep_error(probe_t *probe, int error) {
  const belay__refused_t *refused = &probe->client->refused;
  probe->info.result.status = error;
  if (refused->error == error)
    memcpy(probe->info.detail, refused->text, sizeof probe->info.detail);
}

static belay__call_t *new_call(probe_t *probe, const command_t *command) {
  belay__call_t *call = belay__call_new(probe->client, BELAY__CLASS_LEASE);
  if (call == NULL)
    return NULL;
  belay__call_command(call, command->command, command->argument == NULL ? 1 : 2);
  if (command->argument != NULL)
    belay__call_arg_text(call, command->argument);
  call->deadline = probe->survey->deadline;
  call->done = on_answer;
  call->owner = probe;
  return call;
}

/* Send the commands together. Returns false after an error. */
static bool send_commands(probe_t *probe, const command_t *commands, size_t n) {
  belay__call_t *calls[COMMANDS_MAX];
  size_t made = 0;
  for (; made < n && (calls[made] = new_call(probe, &commands[made])) != NULL; made++)
    calls[made]->place = &probe->calls[made];
  int error = made == n ? belay__call_send(calls, n, true) : BELAY_ENOMEM;
  if (made < n)
    belay__calls_discard(calls, made);
  probe->pending = error == 0 ? n : 0;
  if (error != 0)
    keep_error(probe, error);
  return error == 0;
}

static void keep_run_id(probe_t *probe) {
  const belay__server_info_t *server =
      probe->client->node_ops->server(probe->client, BELAY__CLASS_LEASE, 0);
  if (server != NULL)
    memcpy(probe->info.run_id, server->run_id, server->run_id_len);
}

static void add_related_servers(probe_t *probe, const belay__reply_t *role) {
  char place[BELAY__PLACE_MAX];
  add_server(probe->survey, probe->info.primary);
  for (size_t i = 0; belay__topology_entry_replica(role, i, place); i++)
    add_server(probe->survey, place);
}

static void read_reply(probe_t *probe, const belay__call_t *call, const belay__reply_t *reply) {
  belay_t *belay = probe->survey->belay;
  size_t which = (size_t)(call->place - probe->calls);
  if (probe->state == SAMPLING) {
    /* wall_us is read first, so that `took` includes the time until wall_us was read */
    int64_t wall_us = belay->host->wall_us(belay);
    uint64_t took = belay__now(belay) - call->first_sent;
    if (!belay__topology_entry_read_time(&probe->info, reply, took, wall_us))
      probe->info.result.status = BELAY_EPROTO;
  } else if (which == 0) {
    belay__topology_entry_read_hello(&probe->info, reply);
  } else if (which == 2) {
    belay__topology_entry_read_stats(&probe->info, reply);
  } else {
    belay__topology_entry_read_role(&probe->info, reply);
    if (probe->survey->operation != NULL)
      add_related_servers(probe, reply);
  }
}

/* Reads the result of one call. If the server refuses a command, the fields that the command would
 * fill stay empty, and the probe continues. */
static void on_answer(belay__call_t *call, const belay__result_t *result) {
  probe_t *probe = call->owner;
  bool refused = result->outcome == BELAY_OUTCOME_REFUSED && call->epoch != 0;
  if (result->outcome == BELAY_OUTCOME_REPLY)
    read_reply(probe, call, result->reply);
  else if (refused && probe->state == SAMPLING)
    probe->no_time = true;
  else if (!refused)
    keep_error(probe, result->error);
  if (--probe->pending == 0)
    belay__defer(probe->survey->belay, &probe->task);
}

static bool is_duplicate(const probe_t *probe) {
  const belay__list_t *all = &probe->survey->probes;
  for (const belay__list_t *node = all->next; node != all; node = node->next) {
    const probe_t *other = BELAY__CONTAINER(node, probe_t, node);
    if (other != probe && !other->duplicate && other->info.run_id[0] != '\0' &&
        strcmp(other->info.run_id, probe->info.run_id) == 0)
      return true;
  }
  return false;
}

static bool needs_more_samples(const probe_t *probe) {
  const survey_t *survey = probe->survey;
  return survey->operation != NULL && probe->info.result.status == 0 && !probe->duplicate &&
         !probe->no_time && probe->info.result.samples < survey->samples;
}

/* Advances a probe after the end of all of its pending calls: sends a TIME, or closes the probe.
 * on_closed() makes the transition to CLOSED. */
static void step_probe(probe_t *probe) {
  switch (probe->state) {
  case IDENTIFYING:
    keep_run_id(probe);
    probe->duplicate = is_duplicate(probe);
    probe->state = SAMPLING;
    break;
  case SAMPLING:
    break;
  default: /* CLOSING, CLOSED */
    return;
  }
  if (!needs_more_samples(probe) || !send_commands(probe, time_commands, 1))
    close_probe(probe);
}

static void on_probe(belay__task_t *task) {
  step_probe(BELAY__CONTAINER(task, probe_t, task));
}

/* ---- the request ---- */

static bool has_known_server(const survey_t *survey) {
  char place[BELAY__PLACE_MAX];
  return survey->client->node_ops->place(survey->client, 0, place);
}

static int send_ping(survey_t *survey, uint64_t deadline) {
  belay__call_t *call = belay__call_new(survey->client, BELAY__CLASS_LEASE);
  belay__call_command(call, "PING", 1);
  survey->operation->deadline = deadline;
  return belay__request_send(survey->operation, call);
}

/* After the reply to the PING of the deployment, starts the survey of the known servers. */
static int on_ping(belay__operation_t *operation, const belay__call_t *call,
                   const belay__reply_t *reply) {
  survey_t *survey = operation->context;
  (void)call;
  (void)reply;
  belay__defer(survey->belay, &survey->task);
  return BELAY__REQUEST_PARK;
}

static int recover(belay__operation_t *operation, int status) {
  survey_t *survey = operation->context;
  bool early =
      operation->deadline < survey->deadline && belay__now(survey->belay) >= operation->deadline;
  survey->status = status;
  if (early && !has_known_server(survey)) {
    int error = send_ping(survey, survey->deadline);
    if (error == 0)
      return BELAY__REQUEST_PARK;
    survey->status = error;
  }
  belay__defer(survey->belay, &survey->task);
  return BELAY__REQUEST_PARK;
}

static void on_canceled(belay__operation_t *operation, bool sent) {
  survey_t *survey = operation->context;
  (void)sent;
  survey->operation = NULL;
  belay__task_stop(survey->belay, &survey->task);
  for (belay__list_t *node = survey->probes.next; node != &survey->probes; node = node->next)
    if (probe_of(node)->state != CLOSED)
      close_probe(probe_of(node));
  release_survey(survey);
}

static void notify(belay_request_t *request, void (*cb)(void), const belay__answer_t *answer) {
  survey_t *survey = (void *)(intptr_t)answer->values[SURVEY];
  bool well = answer->status == 0;
  ((belay_topology_cb)cb)(request, answer->status, well ? answer->room : NULL,
                          well ? (size_t)answer->values[SERVERS] : 0);
  if (survey != NULL)
    release_survey(survey);
}

static const belay__request_ops_t ops = {
    .read = on_ping, .recover = recover, .left = on_canceled, .notify = notify, .idempotent = true};

static int check(belay_client_t *client, const belay_request_t *request, unsigned samples,
                 bool has_cb) {
  int error = belay__client_check(client);
  if (error == 0)
    error = belay__request_check(client, request, has_cb);
  return error != 0
             ? error
             : belay__check_range(client->belay, "samples", samples, 1, BELAY_TOPOLOGY_SAMPLES_MAX);
}

/* Begins with the known servers, or sends a PING to find one. */
static int start(survey_t *survey) {
  uint64_t now = belay__now(survey->belay);
  if (!has_known_server(survey))
    return send_ping(survey, now + (survey->deadline - now) / 3);
  belay__defer(survey->belay, &survey->task);
  return 0;
}

int belay_topology_read(belay_client_t *client, belay_request_t *request, unsigned samples,
                        belay_topology_cb cb) {
  int error = check(client, request, samples, cb != NULL);
  if (error != 0)
    return error;
  belay_t *belay = client->belay;
  survey_t *survey = belay__alloc(belay, sizeof *survey);
  if (survey == NULL)
    return BELAY_ENOMEM;
  *survey = (survey_t){.belay = belay, .client = client, .samples = samples, .refs = 1};
  belay__list_init(&survey->probes);
  belay__task_init(&survey->task, on_survey);
  survey->deadline = belay__after_ms(belay, belay__request_timeout_ms(client, request));
  error =
      belay__request_begin(client, request, &ops, survey, NULL, BELAY__CB(cb), &survey->operation);
  if (error == 0)
    error = belay__request_begun(survey->operation, start(survey));
  if (error != 0)
    free_survey(survey);
  return error;
}

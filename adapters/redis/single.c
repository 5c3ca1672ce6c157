/* A node that is one server: lanes of links, and belay_connect(). */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "redis/listener.h"
#include "redis/url.h"

typedef struct single {
  belay_client_t base; /* first */
  belay__line_t line;
  belay__url_t url; /* what the line's strings point into */
  char client_name[65];
  size_t lane_links; /* of LEASE and DATA each; the others have one */
  size_t count;      /* of all links that carry calls */
  belay__listener_t listener;
  bool gone;
  belay__link_t links[];
} single_t;

static size_t size_of(size_t count) {
  return sizeof(single_t) + count * sizeof(belay__link_t);
}

/* The links stand in the order of the lanes. */
static belay__link_t *link_of(const single_t *single, belay__lane_t lane, uint32_t affinity) {
  size_t n = single->lane_links, i = 0;
  switch (lane) {
  case BELAY__LANE_LEASE:
    i = affinity % n;
    break;
  case BELAY__LANE_DATA:
    i = n + affinity % n;
    break;
  case BELAY__LANE_BULK:
    i = 2 * n;
    break;
  case BELAY__LANE_DURABLE:
  case BELAY__LANES:
    i = 2 * n + 1;
    break;
  }
  return (belay__link_t *)&single->links[i];
}

/* ---- the port ------------------------------------------------------------------------------------------ */

static int submit(belay_client_t *client, belay__call_t *const *calls, size_t n) {
  const single_t *single = (const single_t *)client;
  return belay__link_submit(link_of(single, calls[0]->lane, calls[0]->affinity), calls, n);
}

static int withdraw(belay_client_t *client, belay__call_t *call) {
  return belay__link_withdraw(link_of((single_t *)client, call->lane, call->affinity), call);
}

static void distrust(belay_client_t *client, const belay__call_t *call) {
  belay__link_distrust(link_of((single_t *)client, call->lane, call->affinity), call->epoch);
}

static uint32_t dead_epoch(const belay_client_t *client, belay__lane_t lane, uint32_t affinity) {
  return link_of((const single_t *)client, lane, affinity)->dead_epoch;
}

static const belay__server_t *server(const belay_client_t *client, belay__lane_t lane,
                                     uint32_t affinity) {
  const belay__link_t *link = link_of((const single_t *)client, lane, affinity);
  return belay__link_is_up(link) ? &link->peer.server : NULL;
}

static bool silent(belay_client_t *client, belay__lane_t lane, uint32_t affinity, uint64_t limit) {
  return belay__link_is_silent(link_of((single_t *)client, lane, affinity), limit);
}

static size_t links_up(const belay_client_t *client) {
  const single_t *single = (const single_t *)client;
  size_t n = belay__link_is_up(&single->listener.link);
  for (size_t i = 0; i < single->count; i++)
    n += belay__link_is_up(&single->links[i]);
  return n;
}

static unsigned version(const belay_client_t *client) {
  return ((const single_t *)client)->line.version;
}

static void listen_to(belay_client_t *client, belay__channel_t *channel) {
  belay__listener_listen(&((single_t *)client)->listener, channel);
}

static void unlisten(belay_client_t *client, belay__channel_t *channel) {
  belay__listener_unlisten(&((single_t *)client)->listener, channel);
}

/* Something has ended; perhaps it was the last thing that the client waits for. */
static void on_quiet(belay__line_t *line) {
  single_t *single = BELAY__CONTAINER(line, single_t, line);
  if (!single->base.node_closing || single->gone || line->handles > 0 ||
      !belay__link_is_over(&single->listener.link))
    return;
  for (size_t i = 0; i < single->count; i++)
    if (!belay__link_is_over(&single->links[i]))
      return;
  single->gone = true;
  belay__client_gone(&single->base);
}

static void close_all(belay_client_t *client) {
  single_t *single = (single_t *)client;
  for (size_t i = 0; i < single->count; i++)
    belay__link_close(&single->links[i]);
  belay__listener_close(&single->listener);
  on_quiet(&single->line);
}

static void free_single(belay_client_t *client) {
  single_t *single = (single_t *)client;
  for (size_t i = 0; i < single->count; i++)
    belay__link_fini(&single->links[i]);
  belay__link_fini(&single->listener.link);
  memset(&single->url, 0, sizeof single->url); /* the password */
  belay__free(client->belay, single, size_of(single->count));
}

static const belay__node_ops_t node_ops = {
    .submit = submit,
    .withdraw = withdraw,
    .distrust = distrust,
    .dead_epoch = dead_epoch,
    .server = server,
    .silent = silent,
    .links_up = links_up,
    .version = version,
    .listen = listen_to,
    .unlisten = unlisten,
    .close = close_all,
    .free = free_single,
};

/* ---- making -------------------------------------------------------------------------------------------- */

/* What the options say overrides the URL; false if it does not fit. */
static bool override(belay_t *belay, belay__url_t *url, const belay_client_options_t *o) {
  const struct {
    const char *name, *from;
    char *to;
    size_t size;
    bool *has;
  } texts[] = {
      {"username", o->username, url->username, sizeof url->username, &url->has_username},
      {"password", o->password, url->password, sizeof url->password, &url->has_password},
  };
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    if (texts[i].from == NULL)
      continue;
    if (strlen(texts[i].from) >= texts[i].size) {
      belay__detail(belay, "%s: too long", texts[i].name);
      return false;
    }
    snprintf(texts[i].to, texts[i].size, "%s", texts[i].from);
    *texts[i].has = texts[i].from[0] != '\0';
  }
  if (o->db >= 0)
    url->db = o->db;
  return true;
}

/* "host:pid", so that a person who looks at a token sees where its holder runs. */
static void default_owner(char *out, size_t size) {
  char host[UV_MAXHOSTNAMESIZE];
  size_t len = sizeof host;
  if (uv_os_gethostname(host, &len) != 0)
    snprintf(host, sizeof host, "localhost");
  for (char *p = host; *p != '\0'; p++)
    if (*p <= ' ' || *p > '~')
      *p = '?';
  snprintf(out, size, "%.48s:%ld", host, (long)uv_os_getpid());
}

static void fill_line(single_t *single, const belay_client_options_t *o) {
  const belay__url_t *url = &single->url;
  single->line = (belay__line_t){
      .client = &single->base,
      .host = (belay__host_t *)single->base.belay,
      .target = {.path = url->is_unix ? url->path : NULL,
                 .host = url->host,
                 .port = url->port,
                 .keepalive_ms = o->keepalive_ms,
                 .tcp_user_timeout_ms = o->tcp_user_timeout_ms},
      .username = url->has_username ? url->username : NULL,
      /* a user may do without a password, and no password is not an empty one */
      .password = url->has_username || url->password[0] != '\0' ? url->password : NULL,
      .client_name = single->client_name,
      .db = url->db,
      .connect_timeout_ms = o->connect_timeout_ms,
      .stall_timeout_ms = o->stall_timeout_ms,
      .idle_timeout_ms = o->idle_timeout_ms,
      .reconnect_min_ms = o->reconnect_min_ms,
      .reconnect_max_ms = o->reconnect_max_ms,
      .max_pending = o->max_pending,
      .max_reply = o->max_reply,
      .on_full = o->on_full,
      .quiet = on_quiet,
  };
}

static int read_url(belay_t *belay, const char *text, belay__url_t *url) {
  const char *part = "url", *why = "NULL";
  int error = text == NULL ? BELAY_EURL : belay__url_parse(text, url, &part, &why);
  if (error != 0)
    belay__detail(belay, "%s: %s", part, why);
  return error;
}

static uint64_t mix(uint64_t hash, const char *text) {
  for (; *text != '\0'; text++) /* FNV-1a */
    hash = (hash ^ (unsigned char)*text) * UINT64_C(1099511628211);
  return hash;
}

static uint64_t place_of(const belay__url_t *url) {
  char rest[24];
  snprintf(rest, sizeof rest, ":%u/%d", url->is_unix ? 0 : url->port, url->db);
  return mix(mix(UINT64_C(14695981039346656037), url->is_unix ? url->path : url->host), rest);
}

int belay_connect(belay_t *belay, const char *url, const belay_client_options_t *options,
                  belay_client_t **out) {
  if (out == NULL)
    return BELAY_EINVAL;
  *out = NULL;
  belay_client_options_t defaults;
  belay_client_options_init(&defaults);
  const belay_client_options_t *o = options == NULL ? &defaults : options;
  belay__url_t parsed;
  int error = belay__check(belay);
  if (error == 0)
    error = read_url(belay, url, &parsed);
  if (error == 0)
    error = belay__client_options_check(belay, o);
  if (error == 0 && !override(belay, &parsed, o))
    error = BELAY_EINVAL;
  if (error != 0)
    return error;

  size_t count = 2 * (size_t)o->links + 2;
  single_t *single = belay__alloc(belay, size_of(count));
  if (single == NULL)
    return BELAY_ENOMEM;
  char owner[BELAY__OWNER_MAX + 1];
  default_owner(owner, sizeof owner);
  memset(single, 0, size_of(count));
  error = belay__client_init(&single->base, belay, &node_ops, o, owner);
  if (error != 0) {
    belay__free(belay, single, size_of(count));
    return error;
  }
  single->url = parsed;
  single->base.place = place_of(&parsed);
  single->base.db = parsed.db;
  snprintf(single->client_name, sizeof single->client_name, "%s", o->client_name);
  single->lane_links = o->links;
  single->count = count;
  fill_line(single, o);
  for (size_t i = 0; i < count; i++)
    belay__link_init(&single->links[i], &single->line,
                     i < 2 * single->lane_links && i % single->lane_links != 0);
  belay__listener_init(&single->listener, &single->line);
  single->line.listener = &single->listener;
  *out = &single->base;
  return 0;
}

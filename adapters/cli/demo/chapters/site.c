/* Chapter: three visitors of a site, and all that is known of them. */
#include <stdio.h>
#include <string.h>

#include "demo/demo.h"

enum { VISITORS = 3, PAGES = 2 };
enum { MAY_READ = 1, MAY_WRITE = 2 };
static const char name[] = "site", forum[] = "forum", week[] = "week";
static const int64_t points[VISITORS] = {40, 90, 70};

typedef struct visitor {
  int64_t id;
  char session[40];
  bool began, went_on; /* its session */
  bool first;          /* it was never here before */
  bool writes;
  int64_t rank;
} visitor_t;

typedef struct site {
  demo_t *demo;
  belay_idgen_t *ids;
  belay_presence_t *presence;
  belay_active_t *active;
  belay_session_t *sessions;
  belay_permission_t *permissions;
  belay_ranking_t *ranking;
  belay_sweep_t *sweep;
  visitor_t visitor[VISITORS];
  int64_t online, left; /* how many are, at first and in the end */
  int64_t today;
  unsigned answers;
} site_t;

static site_t site;

/* Waits for what was begun. */
static void step(const char *what, int error) {
  if (error == 0)
    (void)uv_run(&site.demo->loop, UV_RUN_DEFAULT);
  else
    demo_trouble(site.demo, what, error);
}

static bool is_well(const char *what, int status) {
  site.answers += status == 0;
  if (status != 0)
    demo_trouble(site.demo, what, status);
  return status == 0;
}

/* ---- a visit ------------------------------------------------------------------------------------------- */

static void on_id(belay_request_t *request, int status, int64_t id) {
  visitor_t *visitor = request->data;
  if (is_well("an id", status))
    visitor->id = id;
}

static void on_done(belay_request_t *request, int status) {
  is_well(request->data, status);
}

static void on_touched(belay_request_t *request, int status, const belay_session_state_t *state) {
  visitor_t *visitor = request->data;
  if (!is_well("a session", status))
    return;
  if (state->is_new && state->id_len < sizeof visitor->session)
    memcpy(visitor->session, state->id, state->id_len);
  visitor->began |= state->is_new && state->count == 1;
  visitor->went_on |= !state->is_new && state->count == PAGES &&
                      memcmp(visitor->session, state->id, state->id_len) == 0;
}

static void on_granted(belay_request_t *request, int status,
                       const belay_permission_result_t *results, size_t n) {
  visitor_t *visitor = request->data;
  (void)n;
  if (!is_well("a permission", status))
    return;
  visitor->first = results->before == 0;
  visitor->writes = (results->value & MAY_WRITE) != 0;
}

static void on_submitted(belay_request_t *request, int status, const belay_ranking_entry_t *entries,
                         size_t n) {
  (void)request, (void)entries, (void)n;
  is_well("a score", status);
}

static void view(visitor_t *visitor, const char *user, const char *page) {
  belay_request_t request = {.data = visitor};
  belay_session_touch_t touch = {.event = page, .event_len = strlen(page)};
  step("a page",
       belay_session_touch(site.sessions, &request, user, strlen(user), &touch, on_touched));
}

/* An id; online; active today; a session of two pages; what it may do; its points. */
static void visit(unsigned i) {
  visitor_t *visitor = &site.visitor[i];
  belay_request_t request = {.data = visitor};
  char user[24];
  step("an id", belay_idgen_get(site.ids, &request, on_id));
  int len = snprintf(user, sizeof user, "%lld", (long long)visitor->id);
  request.data = "presence";
  step("presence", belay_presence_set(site.presence, &request, (uint32_t)visitor->id, on_done));
  request.data = "an active user";
  step("an active user",
       belay_active_mark(site.active, &request, user, (size_t)len, BELAY_ACTIVE_NOW, on_done));
  view(visitor, user, "/");
  view(visitor, user, "/prices");
  belay_permission_field_t field = {.index = (uint64_t)visitor->id,
                                    .value = i == 0 ? MAY_READ | MAY_WRITE : MAY_READ};
  request.data = visitor;
  step("a permission", belay_permission_grant(site.permissions, &request, forum, strlen(forum),
                                              &field, 1, on_granted));
  belay_ranking_score_t score = {.member = {user, (size_t)len}, .score = points[i]};
  step("a score", belay_ranking_submit(site.ranking, &request, week, strlen(week),
                                       BELAY_RANKING_ADD, &score, 1, on_submitted));
  demo_event(site.demo, 0, "visitor %s is online, in session %.13s..., and may %s", user,
             visitor->session, visitor->writes ? "write" : "read");
}

/* ---- what is known ------------------------------------------------------------------------------------- */

static void on_online(belay_request_t *request, int status, int64_t count) {
  if (is_well("who is online", status))
    *(int64_t *)request->data = count;
}

static void on_today(belay_request_t *request, int status, const int64_t *counts, size_t n) {
  (void)request;
  if (is_well("who was active", status) && n > 0)
    site.today = counts[0];
}

static void on_top(belay_request_t *request, int status, const belay_ranking_entry_t *entries,
                   size_t n) {
  (void)request;
  for (size_t i = 0; is_well("the ranking", status) && i < n; i++) {
    char user[24] = "";
    memcpy(user, entries[i].member.data, entries[i].member.len % sizeof user);
    for (unsigned j = 0; j < VISITORS; j++) {
      char own[24];
      (void)snprintf(own, sizeof own, "%lld", (long long)site.visitor[j].id);
      if (strcmp(user, own) == 0)
        site.visitor[j].rank = entries[i].rank;
    }
  }
}

static void look(void) {
  belay_request_t request = {.data = &site.online};
  step("who is online", belay_presence_count(site.presence, &request, on_online));
  step("who was active",
       belay_active_count_last(site.active, &request, BELAY_ACTIVE_NOW, NULL, 0, on_today));
  step("the ranking",
       belay_ranking_top(site.ranking, &request, week, strlen(week), VISITORS, on_top));
  request.data = "a logout";
  step("a logout",
       belay_presence_clear(site.presence, &request, (uint32_t)site.visitor[0].id, on_done));
  request.data = &site.left;
  step("who is online", belay_presence_count(site.presence, &request, on_online));
  demo_event(site.demo, 0, "%lld are online, %lld were active today; one logs out: %lld",
             (long long)site.online, (long long)site.today, (long long)site.left);
}

static void conclude(void) {
  demo_t *demo = site.demo;
  const visitor_t *v = site.visitor;
  bool sessions = true, first = true;
  for (unsigned i = 0; i < VISITORS; i++) {
    sessions = sessions && v[i].began && v[i].went_on;
    first = first && v[i].first;
  }
  term_print(&demo->term, "\n");
  demo_fact(demo, v[0].id > 0 && v[0].id < v[1].id && v[1].id < v[2].id,
            "their ids are %lld, %lld and %lld", (long long)v[0].id, (long long)v[1].id,
            (long long)v[2].id);
  demo_fact(demo, site.online == VISITORS && site.left == VISITORS - 1 && site.today == VISITORS,
            "who is online and who was active today is counted, each once");
  demo_fact(demo, sessions, "both pages of each are in one session");
  demo_fact(demo, first && v[0].writes && !v[1].writes && !v[2].writes,
            "each was here for the first time; one of them may write");
  demo_fact(demo, v[1].rank == 0 && v[2].rank == 1 && v[0].rank == 2,
            "the second leads the ranking, the first is last");
}

/* ---- opening and closing ------------------------------------------------------------------------------- */

static int open_ids_and_days(belay_client_t *client) {
  belay_idgen_options_t ids;
  belay_idgen_options_init(&ids);
  ids.name = name;
  ids.name_len = strlen(name);
  belay_presence_options_t presence;
  belay_presence_options_init(&presence);
  presence.name = name;
  presence.name_len = strlen(name);
  belay_active_options_t active;
  belay_active_options_init(&active);
  active.name = name;
  active.name_len = strlen(name);
  int error = belay_idgen_new(client, &ids, &site.ids);
  if (error == 0)
    error = belay_presence_new(client, &presence, &site.presence);
  return error != 0 ? error : belay_active_new(client, &active, &site.active);
}

static int open_the_rest(belay_client_t *client) {
  belay_session_options_t sessions;
  belay_session_options_init(&sessions);
  sessions.name = name;
  sessions.name_len = strlen(name);
  belay_permission_options_t permissions;
  belay_permission_options_init(&permissions);
  permissions.name = name;
  permissions.name_len = strlen(name);
  permissions.width = 2;
  belay_ranking_options_t ranking;
  belay_ranking_options_init(&ranking);
  ranking.name = name;
  ranking.name_len = strlen(name);
  belay_sweep_options_t sweep;
  belay_sweep_options_init(&sweep);
  sweep.pattern = "*site*"; /* of this demo's namespace */
  sweep.pattern_len = strlen(sweep.pattern);
  sweep.remove = true;
  int error = belay_session_new(client, &sessions, &site.sessions);
  if (error == 0)
    error = belay_permission_new(client, &permissions, &site.permissions);
  if (error == 0)
    error = belay_ranking_new(client, &ranking, &site.ranking);
  return error != 0 ? error : belay_sweep_new(client, &sweep, &site.sweep);
}

static void on_swept(belay_sweep_t *sweep, int status, const belay_sweep_totals_t *totals) {
  (void)sweep, (void)totals;
  is_well("sweeping", status);
}

static void close_all(void) {
  (void)belay_idgen_close(site.ids, NULL);
  (void)belay_presence_close(site.presence, NULL);
  (void)belay_active_close(site.active, NULL);
  (void)belay_session_close(site.sessions, NULL);
  (void)belay_permission_close(site.permissions, NULL);
  (void)belay_ranking_close(site.ranking, NULL);
  (void)belay_sweep_close(site.sweep, NULL);
  (void)uv_run(&site.demo->loop, UV_RUN_DEFAULT);
}

void play_site(demo_t *demo) {
  site = (site_t){.demo = demo};
  demo_text(demo,
            "  Three visitors come to a site. Each is given an id, is online, and was active\n"
            "  today; has a session, permissions, and a place in the ranking.");
  int error = open_ids_and_days(demo->client[DEMO_A]);
  if (error == 0)
    error = open_the_rest(demo->client[DEMO_A]);
  if (error == 0) {
    for (unsigned i = 0; i < VISITORS; i++)
      visit(i);
    look();
    conclude();
    step("sweeping", belay_sweep_start(site.sweep, on_swept));
    demo_used(demo, WORKER_NAMESPACE "::%s::ranking::site::{week}", demo->run);
    demo_used(demo, WORKER_NAMESPACE "::%s::idgen::{site}", demo->run);
  } else {
    demo_trouble(demo, "opening a site", error);
  }
  close_all();
}

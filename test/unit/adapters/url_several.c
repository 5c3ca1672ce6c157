/* URLs of several servers: lists of hosts, Sentinels with a master name, TLS; and the named part of
 * invalid URLs. */
#include "unit/adapters/urls.h"

/* ---- good ones ---- */

typedef struct several {
  const char *text;
  belay__url_kind_t kind;
  bool tls;
  const char *hosts; /* "host:port,...", without brackets */
  const char *master;
  int db;
  const char *password; /* of the user "u"; NULL: there is neither */
} several_t;

static void list_hosts(const belay__url_t *url, char *out, size_t size) {
  size_t n = 0;
  out[0] = '\0';
  for (size_t i = 0; i < url->place_count; i++)
    n += (size_t)snprintf(out + n, size - n, "%s%s:%u", i > 0 ? "," : "", url->places[i].host,
                          url->places[i].port);
}

static void check_several(const several_t *row) {
  belay__url_t url;
  const char *part, *why;
  char hosts[512];
  if (parse(row->text, &url, &part, &why) != 0)
    fail_msg("%s: %s: %s", row->text, part, why);
  list_hosts(&url, hosts, sizeof hosts);
  if (url.kind != row->kind || url.tls != row->tls || url.is_unix || !same(hosts, row->hosts))
    fail_msg("%s: kind %d, tls %d, hosts \"%s\"", row->text, (int)url.kind, url.tls, hosts);
  if (!same(url.master, row->master) || url.db != row->db)
    fail_msg("%s: master \"%s\", db %d", row->text, url.master, url.db);
  bool user = row->password != NULL;
  if (!same(url.username, user ? "u" : NULL) || !same(url.password, row->password) ||
      url.has_username != user || url.has_password != user)
    fail_msg("%s: user \"%s\", password \"%s\"", row->text, url.username, url.password);
}

#define CHECK_SEVERAL(rows)                                                                        \
  for (size_t i = 0; i < sizeof(rows) / sizeof *(rows); i++)                                       \
  check_several(&(rows)[i])

TEST(kinds_and_their_hosts_are_read) {
  static const several_t rows[] = {
      {"rediss://h", BELAY__URL_SINGLE, true, "h:6379", NULL, 0, NULL},
      {"rediss://u:p@h:1/2", BELAY__URL_SINGLE, true, "h:1", NULL, 2, "p"},
      {"redis+replicas://a", BELAY__URL_REPLICAS, false, "a:6379", NULL, 0, NULL},
      {"redis+replicas://a,b:1,c", BELAY__URL_REPLICAS, false, "a:6379,b:1,c:6379", NULL, 0, NULL},
      {"redis+replicas://a,b/", BELAY__URL_REPLICAS, false, "a:6379,b:6379", NULL, 0, NULL},
      {"redis+replicas://a,b/3", BELAY__URL_REPLICAS, false, "a:6379,b:6379", NULL, 3, NULL},
      {"redis+replicas://u:p,q@a,b", BELAY__URL_REPLICAS, false, "a:6379,b:6379", NULL, 0, "p,q"},
      {"rediss+replicas://a,b", BELAY__URL_REPLICAS, true, "a:6379,b:6379", NULL, 0, NULL},
      {"redis+cluster://a", BELAY__URL_CLUSTER, false, "a:6379", NULL, 0, NULL},
      {"redis+cluster://u:p@a:7000,b:7001/1", BELAY__URL_CLUSTER, false, "a:7000,b:7001", NULL, 1,
       "p"},
      {"rediss+cluster://a,b", BELAY__URL_CLUSTER, true, "a:6379,b:6379", NULL, 0, NULL},
      {"redis+cluster://[::1]:7000,[fe80::1],10.0.0.1", BELAY__URL_CLUSTER, false,
       "::1:7000,fe80::1:6379,10.0.0.1:6379", NULL, 0, NULL},
      {"redis+cluster://a,a", BELAY__URL_CLUSTER, false, "a:6379,a:6379", NULL, 0, NULL},
  };
  CHECK_SEVERAL(rows);
}

TEST(sentinels_and_the_name_of_their_master_are_read) {
  static const several_t rows[] = {
      {"redis+sentinel://a/m", BELAY__URL_SENTINEL, false, "a:26379", "m", 0, NULL},
      {"redis+sentinel://a/m/", BELAY__URL_SENTINEL, false, "a:26379", "m", 0, NULL},
      {"redis+sentinel://a/m/7", BELAY__URL_SENTINEL, false, "a:26379", "m", 7, NULL},
      {"redis+sentinel://a/7", BELAY__URL_SENTINEL, false, "a:26379", "7", 0, NULL},
      {"redis+sentinel://a,b:1/my-master_1.x", BELAY__URL_SENTINEL, false, "a:26379,b:1",
       "my-master_1.x", 0, NULL},
      {"redis+sentinel://u:p%2F@a,[::1]/m/1", BELAY__URL_SENTINEL, false, "a:26379,::1:26379", "m",
       1, "p/"},
      {"rediss+sentinel://a,b,c/m", BELAY__URL_SENTINEL, true, "a:26379,b:26379,c:26379", "m", 0,
       NULL},
  };
  CHECK_SEVERAL(rows);
}

TEST(hosts_are_at_most_sixteen) {
  belay__url_t url;
  const char *part, *why;
  char *text = build("redis+cluster://a", ",h", BELAY__URL_HOSTS - 1, "");
  assert_int_equal(parse(text, &url, &part, &why), 0);
  assert_int_equal(url.place_count, BELAY__URL_HOSTS);
  free(text);
}

/* ---- bad ones ---- */

TEST(no_host_of_a_list_is_empty_or_malformed) {
  CHECK_BAD("host", "redis+cluster://", "redis+cluster:///", "redis+cluster://,",
            "redis+cluster://a,", "redis+cluster://,a", "redis+cluster://a,,b",
            "redis+cluster://a,:6379", "redis+cluster://u:p@", "redis+cluster://u:p@,a",
            "redis+cluster://a, b", "redis+cluster://a;b", "redis+cluster://a,::1",
            "redis+cluster://a,[::1", "redis+cluster://[::1]a,b", "redis+sentinel://",
            "redis+sentinel:///m", "redis+sentinel://,/m", "redis+sentinel://a,/m",
            "redis+replicas://a,b@c,d,h\xc3\xb6st", "redis://a,b", "rediss://a,b");
  CHECK_BAD("host", "redis+cluster://1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17",
            "redis+sentinel://1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17/m");
  CHECK_BAD("port", "redis+cluster://a:,b", "redis+cluster://a:0,b", "redis+cluster://a:1,b:65536",
            "redis+cluster://a,b:1x", "redis+sentinel://a:1,b:/m");
}

TEST(master_is_a_name) {
  CHECK_BAD("master", "redis+sentinel://a", "redis+sentinel://a/", "redis+sentinel://a,b",
            "redis+sentinel://a//", "redis+sentinel://a//1", "redis+sentinel://a/m x",
            "redis+sentinel://a/m\n", "redis+sentinel://a/m%20x", "redis+sentinel://a/m:1",
            "redis+sentinel://a/m,n", "redis+sentinel://a/\xc3\xb6", "redis+sentinel://u:p@a");
  CHECK_BAD("db", "redis+sentinel://a/m/x", "redis+sentinel://a/m/-1", "redis+sentinel://a/m/1/",
            "redis+sentinel://a/m//", "redis+sentinel://a/m/65536", "redis+cluster://a/x",
            "redis+replicas://a,b/m", "redis+replicas://a,b/1/2");
  CHECK_BAD("query", "redis+sentinel://a/m?db=1", "redis+sentinel://a?master=m",
            "redis+cluster://a?db=1", "redis+replicas://a,b/1?x");
}

TEST(lists_have_the_limits_of_one) {
  const size_t host = offsetof(belay__url_t, places);
  const size_t master = offsetof(belay__url_t, master);
  check_limit("redis+sentinel://a/", "m", BELAY__MASTER_MAX, "", "master", master);
  check_limit("rediss+sentinel://a,b/", "m", BELAY__MASTER_MAX, "/1", "master", master);
  check_limit("redis+cluster://", "h", BELAY__HOST_MAX, ",b:1", "host", host);
  check_limit("redis+replicas://", "h", BELAY__HOST_MAX, ":1,b", "host", host);
}

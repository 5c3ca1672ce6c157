/* URLs: the parts of valid ones, and the named part of invalid ones. */
#include "support/base/random.h"
#include "unit/adapters/urls.h"

#define HOST_MAX BELAY__HOST_MAX
#define PATH_MAX_LEN (sizeof((belay__url_t *)0)->path - 1)
#define USER_MAX (sizeof((belay__url_t *)0)->username - 1)
#define PASSWORD_MAX (sizeof((belay__url_t *)0)->password - 1)

/* ---- good ones ---- */

typedef struct good {
  const char *text;
  const char *host, *path; /* one of them; the other one is NULL and must be "" */
  int port, db;
  const char *username, *password; /* NULL: there must be none */
} good_t;

static void check_good(const good_t *row) {
  belay__url_t url;
  const char *part, *why;
  if (parse(row->text, &url, &part, &why) != 0)
    fail_msg("%s: %s: %s", row->text, part, why);
  assert_string_equal(part, "");
  assert_string_equal(why, "");
  if (url.is_unix != (row->path != NULL) || url.place_count != (row->host != NULL) ||
      !same(url.places[0].host, row->host) || !same(url.path, row->path))
    fail_msg("%s: unix %d, host \"%s\", path \"%s\"", row->text, url.is_unix, url.places[0].host,
             url.path);
  if (url.kind != BELAY__URL_SINGLE || url.tls || url.master[0] != '\0')
    fail_msg("%s: kind %d, tls %d, master \"%s\"", row->text, (int)url.kind, url.tls, url.master);
  if (url.places[0].port != row->port || url.db != row->db)
    fail_msg("%s: port %d, db %d", row->text, url.places[0].port, url.db);
  if (url.has_username != (row->username != NULL) || !same(url.username, row->username))
    fail_msg("%s: has_username %d, \"%s\"", row->text, url.has_username, url.username);
  if (url.has_password != (row->password != NULL) || !same(url.password, row->password))
    fail_msg("%s: has_password %d, \"%s\"", row->text, url.has_password, url.password);
}

#define CHECK_GOOD(rows)                                                                           \
  for (size_t i = 0; i < sizeof(rows) / sizeof *(rows); i++)                                       \
  check_good(&(rows)[i])

TEST(host_port_and_db_are_read) {
  static const good_t rows[] = {
      {"redis://localhost", "localhost", NULL, 6379, 0, NULL, NULL},
      {"redis://localhost/", "localhost", NULL, 6379, 0, NULL, NULL},
      {"redis://localhost/0", "localhost", NULL, 6379, 0, NULL, NULL},
      {"redis://localhost/15", "localhost", NULL, 6379, 15, NULL, NULL},
      {"redis://localhost/65535", "localhost", NULL, 6379, 65535, NULL, NULL},
      {"redis://localhost:6380", "localhost", NULL, 6380, 0, NULL, NULL},
      {"redis://localhost:6380/", "localhost", NULL, 6380, 0, NULL, NULL},
      {"redis://localhost:1/2", "localhost", NULL, 1, 2, NULL, NULL},
      {"redis://localhost:65535", "localhost", NULL, 65535, 0, NULL, NULL},
      {"redis://127.0.0.1:6379/3", "127.0.0.1", NULL, 6379, 3, NULL, NULL},
      {"redis://cache-1.eu.example.com", "cache-1.eu.example.com", NULL, 6379, 0, NULL, NULL},
      {"redis://redis_main", "redis_main", NULL, 6379, 0, NULL, NULL},
      {"redis://Example.COM.", "Example.COM.", NULL, 6379, 0, NULL, NULL},
      {"redis://09AZaz", "09AZaz", NULL, 6379, 0, NULL, NULL},
      {"redis://7", "7", NULL, 6379, 0, NULL, NULL},
  };
  CHECK_GOOD(rows);
}

TEST(ipv6_addresses_are_read_without_brackets) {
  static const good_t rows[] = {
      {"redis://[::1]", "::1", NULL, 6379, 0, NULL, NULL},
      {"redis://[::]:6380/1", "::", NULL, 6380, 1, NULL, NULL},
      {"redis://[2001:db8::7]/4", "2001:db8::7", NULL, 6379, 4, NULL, NULL},
      {"redis://[2001:DB8:1:2:3:4:5:6]:1", "2001:DB8:1:2:3:4:5:6", NULL, 1, 0, NULL, NULL},
      {"redis://[::ffff:10.0.0.1]", "::ffff:10.0.0.1", NULL, 6379, 0, NULL, NULL},
      {"redis://[0000:0000:0000:0000:0000:ffff:255.255.255.255]",
       "0000:0000:0000:0000:0000:ffff:255.255.255.255", NULL, 6379, 0, NULL, NULL},
      {"redis://u:p@[::1]:6380", "::1", NULL, 6380, 0, "u", "p"},
  };
  CHECK_GOOD(rows);
}

TEST(user_and_password_are_read) {
  static const good_t rows[] = {
      {"redis://alice:secret@host", "host", NULL, 6379, 0, "alice", "secret"},
      {"redis://alice:secret@host:1234/5", "host", NULL, 1234, 5, "alice", "secret"},
      {"redis://alice@host", "host", NULL, 6379, 0, "alice", NULL},
      {"redis://alice:a:b:c@host", "host", NULL, 6379, 0, "alice", "a:b:c"},
      {"redis://alice:@host", "host", NULL, 6379, 0, "alice", ""},
      {"redis://a-b_c.d~e!f$g&h'i(j)k*l+m,n;o=p:[q]r@host", "host", NULL, 6379, 0,
       "a-b_c.d~e!f$g&h'i(j)k*l+m,n;o=p", "[q]r"},
      {"redis://J\xc3\xbcrgen:stra\xc3\x9f"
       "e@host",
       "host", NULL, 6379, 0, "J\xc3\xbcrgen",
       "stra\xc3\x9f"
       "e"},
  };
  CHECK_GOOD(rows);
}

TEST(empty_user_is_the_default_user) {
  static const good_t rows[] = {
      {"redis://:secret@host", "host", NULL, 6379, 0, NULL, "secret"},
      {"redis://::@host", "host", NULL, 6379, 0, NULL, ":"},
      {"redis://:@host", "host", NULL, 6379, 0, NULL, ""},
      {"redis://@host", "host", NULL, 6379, 0, NULL, NULL},
      {"unix://:secret@/run/redis.sock", NULL, "/run/redis.sock", 0, 0, NULL, "secret"},
      {"unix://@/run/redis.sock", NULL, "/run/redis.sock", 0, 0, NULL, NULL},
  };
  CHECK_GOOD(rows);
}

TEST(user_and_password_are_percent_decoded) {
  static const good_t rows[] = {
      {"redis://a%40b:c%3Ad%2Fe@host", "host", NULL, 6379, 0, "a@b", "c:d/e"},
      {"redis://a%3ab:%23%3F%25@host", "host", NULL, 6379, 0, "a:b", "#?%"},
      {"redis://%61%6C:%20%0a%7F%01@host", "host", NULL, 6379, 0, "al", " \n\x7f\x01"},
      {"redis://%C3%BC:%ff@host", "host", NULL, 6379, 0, "\xc3\xbc", "\xff"},
      {"redis://%2540:%252525@host", "host", NULL, 6379, 0, "%40", "%2525"},
      {"redis://+:+%2B@host", "host", NULL, 6379, 0, "+", "++"},
  };
  CHECK_GOOD(rows);
}

TEST(unix_path_and_db_are_read) {
  static const good_t rows[] = {
      {"unix:///run/redis.sock", NULL, "/run/redis.sock", 0, 0, NULL, NULL},
      {"unix:///r?db=0", NULL, "/r", 0, 0, NULL, NULL},
      {"unix:///run/redis.sock?db=7", NULL, "/run/redis.sock", 0, 7, NULL, NULL},
      {"unix:///r?db=65535", NULL, "/r", 0, 65535, NULL, NULL},
      {"unix:////run//redis.sock", NULL, "//run//redis.sock", 0, 0, NULL, NULL},
      {"unix://alice:secret@/run/redis.sock?db=1", NULL, "/run/redis.sock", 0, 1, "alice",
       "secret"},
      {"unix://alice@/r", NULL, "/r", 0, 0, "alice", NULL},
      {"unix://alice:p%2Fw%40@/r@s", NULL, "/r@s", 0, 0, "alice", "p/w@"},
  };
  CHECK_GOOD(rows);
}

TEST(unix_path_is_percent_decoded) {
  static const good_t rows[] = {
      {"unix:///run/my%20redis.sock", NULL, "/run/my redis.sock", 0, 0, NULL, NULL},
      {"unix:///run/a%3Fb%23c%25d?db=2", NULL, "/run/a?b#c%d", 0, 2, NULL, NULL},
      {"unix:///run%2fredis", NULL, "/run/redis", 0, 0, NULL, NULL},
      {"unix:///run/a@b:c&d=e", NULL, "/run/a@b:c&d=e", 0, 0, NULL, NULL},
      {"unix:///run/%C3%BC\xc3\xbc", NULL, "/run/\xc3\xbc\xc3\xbc", 0, 0, NULL, NULL},
  };
  CHECK_GOOD(rows);
}

/* ---- bad ones ---- */

TEST(scheme_is_one_of_the_list_in_lower_case) {
  CHECK_BAD("scheme", "", "redis", "redis:", "redis:/", "redis:localhost", "redis:/localhost",
            "redisss://localhost", "rediss+unix:///r", "unix+sentinel:///r",
            "redis+tls://localhost", "redis+ssl://localhost", "redis+://localhost",
            "redis+Sentinel://h/m", "sentinel://h/m", "rediss+replica://h", "redis+clusters://h",
            "redis+cluster:/h", "valkey://localhost", "http://localhost", "REDIS://localhost",
            "Unix:///run/redis.sock", "unix:/run/redis.sock", "redis+socket:///run/redis.sock",
            " redis://localhost", "\nredis://localhost", "://localhost", "//localhost", "localhost",
            "localhost:6379", "/run/redis.sock", "redi", "redis;//localhost", "xredis://localhost");
}

TEST(host_is_not_empty) {
  CHECK_BAD("host", "redis://", "redis:///", "redis:///0", "redis://:6379", "redis://:6379/0",
            "redis://user@", "redis://user:password@", "redis://user:password@:6379",
            "redis://:password@/0", "redis://[]", "redis://[]:6379", "redis://[%eth0]");
}

TEST(host_has_the_characters_of_a_name_only) {
  CHECK_BAD("host", "redis://local host", "redis:// localhost", "redis://localhost ",
            "redis://local\thost", "redis://localhost\n", "redis://localhost\r\n", "redis://\x01",
            "redis://local\x7fhost", "redis://h\xc3\xb6st", "redis://local%68ost", "redis://%6c",
            "redis://host%", "redis://a,b:6379", "redis://host#f", "redis://ho*st",
            "redis://host\\db", "redis://a=b", "redis://a]", "redis://a[b]", "redis://<host>",
            "redis://\"host\"", "redis://host;x", "redis://127.0.0.1%lo");
}

TEST(ipv6_address_stands_in_brackets) {
  CHECK_BAD("host", "redis://::1", "redis://::1:6379", "redis://fe80::1", "redis://host:1:2",
            "redis://2001:db8::7/0", "redis://host::6379");
}

TEST(brackets_contain_an_ipv6_address) {
  CHECK_BAD("host", "redis://[::1", "redis://[::1:6379", "redis://[", "redis://[::1/0]",
            "redis://[localhost]", "redis://[127.0.0.1]", "redis://[::1::2]", "redis://[:::]",
            "redis://[::12345]", "redis://[1:2:3:4:5:6:7:8:9]", "redis://[1:2:3]", "redis://[::g]",
            "redis://[ ::1]", "redis://[::1 ]", "redis://[[::1]]", "redis://[::1]x",
            "redis://[::1]6379", "redis://[::1] ", "redis://[::1][::1]",
            "redis://[0000:0000:0000:0000:0000:ffff:255.255.255.2550]",
            "redis://[0000:0000:0000:0000:0000:ffff:255.255.255.25500]",
            "redis://[0000:0000:0000:0000:0000:ffff:255.255.255.255000000000000000]",
            "redis://x[::1]", "redis://u@[::1", "redis://[fe80::1%eth0]",
            "redis://[fe80::1%25eth0]");
}

TEST(port_is_a_number_from_1_to_65535) {
  CHECK_BAD("port", "redis://host:", "redis://host:/0", "redis://host:0", "redis://host:65536",
            "redis://host:99999", "redis://host:100000", "redis://host:4294973675",
            "redis://host:18446744073709557995", "redis://host:-1", "redis://host:+1",
            "redis://host:06379", "redis://host:00", "redis://host:0x10", "redis://host:6379x",
            "redis://host:x", "redis://host: 1", "redis://host:1 ", "redis://host:6379\n",
            "redis://host:1e3", "redis://host:6379#f", "redis://host:%36",
            "redis://[::1]:", "redis://[::1]:0", "redis://[::1]:x", "redis://[::1]::1",
            "redis://user:word", "redis://host:6379&db=1");
}

TEST(db_is_a_number_from_0_to_65535) {
  CHECK_BAD("db", "redis://host/x", "redis://host/-1", "redis://host/+1", "redis://host/65536",
            "redis://host/100000", "redis://host/4294967296", "redis://host/1x", "redis://host/1/",
            "redis://host//", "redis://host//1", "redis://host/1/2", "redis://host/ ",
            "redis://host/1 ", "redis://host/1\n", "redis://host/00", "redis://host/01",
            "redis://host/%31", "redis://host/0#f", "redis://host/#", "redis://host/db0",
            "unix:///r?db=", "unix:///r?db=x", "unix:///r?db=-1", "unix:///r?db=65536",
            "unix:///r?db=1 ", "unix:///r?db=01", "unix:///r?db=1#f", "unix:///r?db=1?",
            "unix:///r?db=1/", "unix:///r?db==1", "unix:///r?db=%31", "unix:///r?db=1;x",
            "redis://user:password@host/1@");
}

TEST(query_is_db_of_a_unix_url_only) {
  CHECK_BAD("query", "redis://host?", "redis://host?db=1", "redis://host/?db=1", "redis://host/0?",
            "redis://host/0?timeout=1", "redis://host:1?db=1", "unix:///r?", "unix:///r?db",
            "unix:///r?DB=1", "unix:///r?database=1", "unix:///r?timeout=5", "unix:///r?db=1&db=2",
            "unix:///r?db=1&timeout=5", "unix:///r?timeout=5&db=1", "unix:///r?db=1&",
            "unix:///r?&db=1", "unix:///r? db=1", "unix:///r??db=1", "unix:///r?%64b=1",
            "unix:///r?dbx=1");
}

TEST(path_is_absolute_and_names_a_file) {
  CHECK_BAD("path", "unix://", "unix://run/redis.sock", "unix://redis.sock", "unix://?db=1",
            "unix://user@", "unix://user:password@", "unix://user:password@run/redis.sock",
            "unix://user:password@host/run/redis.sock", "unix://./redis.sock", "unix:///",
            "unix:///run/", "unix:///run/?db=1", "unix:///run%2F", "unix://%2Frun/redis.sock");
}

TEST(path_encodes_special_characters) {
  CHECK_BAD("path", "unix:///run/my redis", "unix:///run/redis\n", "unix:///run/\x01",
            "unix:///run/\x7f", "unix:///run/redis#1", "unix:///run/redis#", "unix:///r ?db=1");
}

TEST(percent_escapes_are_complete) {
  CHECK_BAD("user", "redis://%@host", "redis://%4@host", "redis://a%4g@host", "redis://a%g4@host",
            "redis://%%41@host", "redis://%:password@host", "redis://%4:1@host", "redis://% 1@host",
            "redis://%+1@host", "unix://%4@/r");
  CHECK_BAD("password", "redis://u:%@host", "redis://u:%4@host", "redis://u:a%4g@host",
            "redis://:100%@host", "redis://:%0x@host", "redis://:%-1@host", "unix://:%@/r");
  CHECK_BAD("path", "unix:///%", "unix:///%4", "unix:///r%4g", "unix:///r%", "unix:///r%?db=1",
            "unix:///r%2?db=1");
}

TEST(zero_bytes_are_refused) {
  CHECK_BAD("user", "redis://a%00b@host", "redis://%00@host", "redis://%00:p@host");
  CHECK_BAD("password", "redis://u:a%00@host", "redis://:%00b@host");
  CHECK_BAD("path", "unix:///r%00", "unix:///%00/r");
}

TEST(user_and_password_encode_special_characters) {
  CHECK_BAD("user", "redis://a@b@host", "redis://a@b:c@host", "redis://a#b@host",
            "redis://a b@host", "redis://a\nb@host", "redis://a/b@host", "redis://a?b@host",
            "redis://\x7f@host", "redis://@@host", "unix://a@b@/r");
  CHECK_BAD("password", "redis://u:a@b@host", "redis://:@@host", "redis://u:a#b@host",
            "redis://u:a b@host", "redis://u:a\tb@host", "redis://u:a/b@host", "redis://:a?b@host",
            "redis://:/@host", "redis://u:1/2@host:6379/0", "unix://:a@b@/r");
}

/* ---- lengths ---- */

TEST(parts_are_as_long_as_they_may_be_and_no_longer) {
  const size_t host = offsetof(belay__url_t, places), path = offsetof(belay__url_t, path);
  const size_t user = offsetof(belay__url_t, username);
  const size_t password = offsetof(belay__url_t, password);
  check_limit("redis://", "h", HOST_MAX, "", "host", host);
  check_limit("redis://u:p@", "h", HOST_MAX, ":6379/1", "host", host);
  check_limit("redis://", "u", USER_MAX, "@host", "user", user);
  check_limit("redis://", "%40", USER_MAX, ":p@host", "user", user);
  check_limit("redis://:", "p", PASSWORD_MAX, "@host", "password", password);
  check_limit("redis://u:", "%40", PASSWORD_MAX, "@host", "password", password);
  check_limit("unix:///", "p", PATH_MAX_LEN - 1, "", "path", path);
  check_limit("unix://u:p@/", "%20", PATH_MAX_LEN - 1, "?db=1", "path", path);
}

TEST(whole_is_at_most_2048_bytes) {
  /* At 2048 bytes it is still some part that is found too long. */
  char *text = build("redis://", "h", BELAY__URL_MAX - strlen("redis://"), "");
  assert_int_equal(strlen(text), 2048);
  check_bad(text, "host");
  free(text);
  text = build("redis://", "h", BELAY__URL_MAX + 1 - strlen("redis://"), "");
  check_bad(text, "url");
  free(text);
  text = build("redis://host/", "0", 1000000, "");
  check_bad(text, "url");
  free(text);
}

TEST(longest_user_and_password_fit_together) {
  belay__url_t url;
  const char *part, *why;
  char *user = build("redis://", "%41", USER_MAX, ":"),
       *text = build(user, "p", PASSWORD_MAX, "@h");
  assert_int_equal(parse(text, &url, &part, &why), 0);
  assert_int_equal(strlen(url.username), USER_MAX);
  assert_int_equal(strlen(url.password), PASSWORD_MAX);
  free(user);
  free(text);
}

/* ---- secrets and noise ---- */

/* For every fault of a URL, the explanation contains nothing of its password. */
TEST(explanation_never_quotes_the_password) {
  static const char *const formats[] = {
      "redis://u:%s",
      "redis://u:%s@",
      "redis://u:%s@host:0",
      "redis://u:%s@host/x",
      "redis://u:%s/@host",
      "redis://u:%s?@host",
      "redis://:%s#@host",
      "redis://:%s%%@host",
      "redis://:%s%%00@host",
      "redis://u:a@%s@host",
      "redis://:%s@[::1",
      "rediss://:%s@host:",
      "redis://:%s@ho st",
      "redis+cluster://:%s@a,,b",
      "redis+sentinel://:%s@a",
      "redis+sentinel://u:%s@a/m/x",
      "redis+sentinel://u:%s/@a/m",
      "redis+nothing://u:%s@a",
      "redis://h?%s",
      "unix://:%s@",
      "unix://:%s@r",
      "unix://:%s@/r?x=1",
      "unix://:%s",
      "redis:%s",
      "%s",
  };
  static const char secret[] = "Zq7Xw9Kv";
  char text[100];
  for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
    belay__url_t url;
    const char *part, *why;
    snprintf(text, sizeof text, formats[i], secret);
    if (parse(text, &url, &part, &why) != BELAY_EURL)
      fail_msg("%s", text);
    for (size_t j = 0; j + 2 < sizeof secret; j++) {
      const char piece[] = {secret[j], secret[j + 1], '\0'};
      assert_null(strstr(why, piece));
      assert_null(strstr(part, piece));
    }
    assert_null(memmem(&url, sizeof url, secret, 3));
  }
}

static int is_part(const char *part) {
  static const char *const parts[] = {"scheme", "user", "password", "host",  "port",
                                      "master", "db",   "path",     "query", "url"};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
    if (strcmp(part, parts[i]) == 0)
      return 1;
  return 0;
}

/* An accepted URL is complete and in range; for a refused one a part is named. */
static void check_sane(const char *text) {
  belay__url_t url;
  const char *part, *why;
  int error = parse(text, &url, &part, &why);
  if (error == BELAY_EURL && is_part(part))
    return;
  if (error != 0)
    fail_msg("\"%s\": %d, part \"%s\"", text, error, part);
  assert_int_equal(url.is_unix, strncmp(text, "unix://", 7) == 0);
  assert_int_equal(url.tls, strncmp(text, "rediss", 6) == 0);
  assert_int_equal(url.path[0], url.is_unix ? '/' : '\0');
  assert_int_equal(url.master[0] != '\0', url.kind == BELAY__URL_SENTINEL);
  if (url.kind == BELAY__URL_SINGLE)
    assert_int_equal(url.place_count, !url.is_unix);
  else
    assert_in_range(url.place_count, 1, BELAY__URL_HOSTS);
  for (size_t i = 0; i < url.place_count; i++) {
    assert_string_not_equal(url.places[i].host, "");
    assert_null(strpbrk(url.places[i].host, " \t\r\n/?#@[],"));
    assert_in_range(url.places[i].port, 1, 65535);
  }
  assert_in_range(url.db, 0, 65535);
  assert_int_equal(url.has_username, url.username[0] != '\0');
  assert_true(url.has_password || url.password[0] == '\0');
}

TEST(random_changes_of_good_urls_are_read_or_named) {
  static const char *const seeds[] = {
      "redis://alice:s%40cret@host.example:6380/3",
      "redis://:secret@[fe80::1]:6380/3",
      "unix://alice:secret@/run/my%20redis.sock?db=3",
      "redis://localhost",
      "rediss+sentinel://u:p@a:1,[::1]:2,b/main/4",
      "redis+cluster://a,b:7000,c",
      "redis+replicas://:s@a,b/1",
  };
  static const char special[] = "/:@?#%[]=&0159aF.-, \n\x7f\xc3";
  uint64_t seed = 1;
  for (int i = 0; i < 200000; i++) {
    char text[80];
    strcpy(text, seeds[next_random(&seed) % (sizeof seeds / sizeof *seeds)]);
    for (uint64_t changes = 1 + next_random(&seed) % 3; changes > 0; changes--) {
      size_t len = strlen(text), at = next_random(&seed) % (len + 1);
      char c = special[next_random(&seed) % (sizeof special - 1)];
      switch (next_random(&seed) % 3) {
      case 0: /* insert */
        memmove(text + at + 1, text + at, len - at + 1);
        text[at] = c;
        break;
      case 1: /* remove */
        if (at < len)
          memmove(text + at, text + at + 1, len - at);
        break;
      default: /* replace */
        if (at < len)
          text[at] = c;
      }
    }
    check_sane(text);
  }
}

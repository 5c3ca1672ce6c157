/* URLs of deployments: a URL is parsed completely or refused with a reason. */
#include <string.h>

#include "fuzz/fuzz.h"
#include "redis/net/url.h"

static void check_place(const belay__place_t *place) {
  char text[BELAY__HOST_MAX + 16];
  belay__place_t again;
  REQUIRE(place->host[0] != 0 && place->port != 0);
  REQUIRE(memchr(place->host, 0, sizeof place->host) != NULL);
  belay__place_write(place, text, sizeof text);
  REQUIRE(belay__place_read(text, &again));
  REQUIRE(belay__place_is(place, &again));
}

static void check_url(const belay__url_t *url) {
  REQUIRE(url->place_count <= BELAY__URL_HOSTS);
  REQUIRE(url->is_unix ? url->place_count == 0 && url->path[0] == '/' : url->place_count > 0);
  REQUIRE(url->kind != BELAY__URL_SINGLE || url->is_unix || url->place_count == 1);
  REQUIRE((url->master[0] != 0) == (url->kind == BELAY__URL_SENTINEL));
  REQUIRE(url->db >= 0 && url->db <= 65535);
  REQUIRE(url->has_username || url->username[0] == 0);
  REQUIRE(url->has_password || url->password[0] == 0);
  for (size_t i = 0; i < url->place_count; i++)
    check_place(&url->places[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {
  static const belay__url_t zeros;
  belay__url_t url;
  const char *part, *why;
  char *text = malloc(len + 1);
  REQUIRE(text != NULL);
  memcpy(text, data, len);
  text[len] = 0;
  if (belay__url_parse(text, &url, &part, &why) == 0) {
    REQUIRE(part[0] == 0 && why[0] == 0);
    check_url(&url);
  } else {
    REQUIRE(part[0] != 0 && why[0] != 0);
    REQUIRE(memcmp(&url, &zeros, sizeof url) == 0);
  }
  free(text);
  return 0;
}

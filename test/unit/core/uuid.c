/* UUIDs of version 7. */
#include "core/key/uuid.h"

#include <belay.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <uv.h>

#include "support/base/test.h"

/* RFC 9562, A.6. */
TEST(example_of_the_rfc) {
  static const uint8_t random[10] = {0x0c, 0xc3, 0x18, 0xc4, 0xdc, 0x0c, 0x0c, 0x07, 0x39, 0x8f};
  uint8_t uuid[16];
  char text[BELAY__UUID_TEXT + 1] = "";
  belay__uuid_make(uuid, UINT64_C(0x017F22E279B0), random);
  belay__uuid_text(text, uuid);
  assert_string_equal(text, "017f22e2-79b0-7cc3-98c4-dc0c0c07398f");
}

TEST(version_and_variant) {
  uint8_t random[10], uuid[16];
  for (int fill = 0; fill <= 255; fill += 255) {
    memset(random, fill, sizeof random);
    belay__uuid_make(uuid, fill == 0 ? 0 : UINT64_MAX, random);
    assert_int_equal(uuid[0], fill);
    assert_int_equal(uuid[5], fill);
    assert_int_equal(uuid[6], 0x70 | (fill & 0x0f));
    assert_int_equal(uuid[8], 0x80 | (fill & 0x3f));
    assert_int_equal(uuid[15], fill);
  }
}

TEST(uuids_are_unique) {
  enum { MANY = 1000 };
  static char text[MANY][BELAY_UUID_TEXT];
  uv_loop_t loop;
  belay_t *belay;
  assert_int_equal(uv_loop_init(&loop), 0);
  assert_int_equal(belay_open(&loop, NULL, &belay), 0);
  int64_t before = time(NULL);
  for (int i = 0; i < MANY; i++) {
    unsigned long long ms, low;
    assert_int_equal(belay_uuid_v7(belay, text[i]), 0);
    assert_int_equal(strlen(text[i]), BELAY_UUID_TEXT - 1);
    assert_int_equal(sscanf(text[i], "%8llx-%4llx-7", &ms, &low), 2);
    assert_between((int64_t)(ms << 16 | low) / 1000, before - 1, time(NULL) + 1);
    for (int j = 0; j < i; j++)
      assert_string_not_equal(text[i], text[j]);
  }
  assert_int_equal(belay_uuid_v7(NULL, text[0]), BELAY_EINVAL);
  assert_int_equal(belay_uuid_v7(belay, NULL), BELAY_EINVAL);
  assert_int_equal(belay_close(belay, NULL), 0);
  assert_int_equal(uv_run(&loop, UV_RUN_DEFAULT), 0);
  assert_int_equal(uv_loop_close(&loop), 0);
}

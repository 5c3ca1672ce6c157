/* Early writes: they pay if the server is idle and enough of the turn is left. */
#include "redis/net/early_write.h"
#include "support/base/test.h"

/* The server has nothing to do. A third of a write takes as long as eight tasks. */
static const belay__early_write_t half_done = {
    .unwritten = 32, .at_server = 0, .tasks = 32, .task_ns = 1000, .write_ns = 24000};

TEST(both_parts_of_the_turn_are_long) {
  belay__early_write_t now = half_done;
  assert_true(belay__early_write_pays(&now, 1));
  now.unwritten = 8;
  assert_true(belay__early_write_pays(&now, 1));
  now.unwritten = 7;
  assert_false(belay__early_write_pays(&now, 1));
  now.unwritten = 32;
  now.tasks = 7;
  assert_false(belay__early_write_pays(&now, 1));
}

TEST(server_has_enough) {
  belay__early_write_t now = half_done;
  now.at_server = 32;
  assert_true(belay__early_write_pays(&now, 1));
  now.at_server = 33;
  assert_false(belay__early_write_pays(&now, 1));
}

TEST(slow_tasks_do_not_delay_the_first_call) {
  belay__early_write_t now = half_done;
  now.unwritten = 1;
  assert_false(belay__early_write_pays(&now, 1));
  now.task_ns = 1000000;
  assert_true(belay__early_write_pays(&now, 1));
}

TEST(each_writer_costs) {
  belay__early_write_t now = half_done;
  assert_false(belay__early_write_pays(&now, 2));
  now.task_ns *= 2;
  assert_true(belay__early_write_pays(&now, 2));
  assert_false(belay__early_write_pays(&now, 3));
}

TEST(one_task_starts_many_calls) {
  belay__early_write_t now = half_done;
  now.tasks = 0;
  now.unwritten = 63;
  assert_false(belay__early_write_pays(&now, 1));
  now.unwritten = 64;
  assert_true(belay__early_write_pays(&now, 1));
}

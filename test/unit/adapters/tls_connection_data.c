/* A connection: reading and writing, however little the socket takes and gives. */
#include "unit/adapters/tls_ends.h"

/* ---- reading ---- */

TEST(small_records_in_one_read) {
  char buffer[RECORD];
  size_t total = 0;
  ends_t *ends = handshake_done(NULL);
  read_tickets(ends);
  for (int i = 0; i < 100; i++)
    say(ends, "0123456789", 10);
  net.reads = 0;
  belay__tls_connection_allow_read(ends->connection);
  do {
    ssize_t n = belay__tls_connection_read(ends->connection, buffer, sizeof buffer);
    total += n > 0 ? (size_t)n : 0;
  } while (belay__tls_connection_has_more(ends->connection));
  assert_int_equal(total, 1000);
  assert_int_equal(net.reads, 1);
  hang_up(ends);
}

TEST(one_socket_read_at_a_time) {
  enum { LEN = 300000 };
  static char buffer[RECORD], got[LEN];
  char *data = noise(LEN);
  size_t total = 0;
  ends_t *ends = handshake_done(NULL);
  read_tickets(ends);
  say(ends, data, LEN);
  for (int i = 0; i < 1000 && total < LEN; i++) {
    net.gives = 1 + (size_t)rand() % 20000;
    net.reads = 0;
    belay__tls_connection_allow_read(ends->connection);
    do {
      ssize_t n = belay__tls_connection_read(ends->connection, buffer, sizeof buffer);
      assert_true(n > 0 || (n < 0 && errno == EAGAIN));
      if (n > 0)
        memcpy(got + total, buffer, (size_t)n);
      total += n > 0 ? (size_t)n : 0;
    } while (belay__tls_connection_has_more(ends->connection));
    assert_true(net.reads <= 1);
  }
  assert_int_equal(total, LEN);
  assert_memory_equal(got, data, LEN);
  free(data);
  hang_up(ends);
}

TEST(end_and_error_differ) {
  char buffer[16];
  ends_t *ends = handshake_done(NULL);
  read_tickets(ends);
  say(ends, "bye", 3);
  SSL_shutdown(ends->server);
  drain(ends);
  assert_int_equal(read_once(ends, buffer, sizeof buffer), 3);
  assert_int_equal(read_once(ends, buffer, sizeof buffer), 0);
  hang_up(ends);

  ends = handshake_done(NULL); /* cut: the connection ends anyway */
  read_tickets(ends);
  net.ended = true;
  assert_int_equal(read_once(ends, buffer, sizeof buffer), 0);
  assert_null(why(ends, BELAY_EUNREACHABLE));
  hang_up(ends);

  ends = handshake_done(NULL);
  read_tickets(ends);
  net.read_error = ECONNRESET;
  assert_int_equal(read_once(ends, buffer, sizeof buffer), -1);
  assert_int_equal(errno, ECONNRESET);
  hang_up(ends);

  ends = handshake_done(NULL); /* a changed byte: nothing of that record is delivered */
  read_tickets(ends);
  say(ends, "hello", 5);
  net.to_client.data[net.to_client.end - 1] ^= 1;
  assert_int_equal(read_once(ends, buffer, sizeof buffer), -1);
  assert_int_equal(errno, EPROTO);
  assert_null(why(ends, BELAY_EUNREACHABLE)); /* it may work the next time */
  hang_up(ends);
}

/* New keys are answered with new keys, which leave before the next data does. */
TEST(key_update_with_a_full_socket) {
  char buffer[16];
  ends_t *ends = handshake_done(NULL);
  read_tickets(ends);
  net.takes = 0;
  for (size_t i = 0; i < 3; i++) {
    assert_int_equal(SSL_key_update(ends->server, SSL_KEY_UPDATE_REQUESTED), 1);
    say(ends, "hello", 5);
    assert_int_equal(read_once(ends, buffer, sizeof buffer), 5);
    ssize_t n = -1;
    for (unsigned tries = 0; n < 0; tries++) {
      n = belay__tls_connection_write(ends->connection, "and you", 7);
      assert_true(n == 7 || (n < 0 && errno == EAGAIN));
      assert_int_equal(belay__tls_connection_partial_bytes(ends->connection),
                       n < 0 && tries > 0 ? 7 : 0);
      net.takes = 5;
      serve(ends);
    }
    assert_int_equal(ends->received_len, 7 * (i + 1));
    net.takes = 0;
  }
  hang_up(ends);
}

/* ---- writing ---- */

TEST(partial_writes) {
  static const size_t LEN = 600000;
  char *data = noise(LEN);
  size_t total = 0, given = 0; /* bytes that were not taken are passed again */
  ends_t *ends = handshake_done(NULL);
  for (int i = 0; i < 10000 && total < LEN; i++) {
    given += (size_t)rand() % (LEN - given + 1);
    net.takes = (size_t)rand() % 40000;
    if (given == total)
      continue;
    ssize_t n = belay__tls_connection_write(ends->connection, data + total, given - total);
    assert_true(n > 0 || errno == EAGAIN);
    total += n > 0 ? (size_t)n : 0;
    serve(ends);
    assert_int_equal(ends->received_len, total); /* no byte of an incomplete record */
    assert_true(belay__tls_connection_partial_bytes(ends->connection) <= given - total);
  }
  assert_int_equal(total, LEN);
  assert_int_equal(ends->received_len, LEN);
  assert_memory_equal(ends->received, data, LEN);
  free(data);
  hang_up(ends);
}

/* The server cannot read an incomplete record, but it counts as sent. */
TEST(partly_sent_record) {
  char *data = noise(3 * RECORD);
  ends_t *ends = handshake_done(NULL);
  net.takes = 0;
  assert_int_equal(belay__tls_connection_write(ends->connection, data, 100), -1);
  assert_int_equal(errno, EAGAIN);
  assert_int_equal(belay__tls_connection_partial_bytes(ends->connection), 0); /* not a byte left */
  net.takes = 1;
  assert_int_equal(belay__tls_connection_write(ends->connection, data, 100), -1);
  assert_int_equal(belay__tls_connection_partial_bytes(ends->connection), 100);
  net.takes = 100; /* all but the end of it */
  assert_int_equal(belay__tls_connection_write(ends->connection, data, 200), -1);
  assert_int_equal(belay__tls_connection_partial_bytes(ends->connection),
                   100); /* without later bytes */
  serve(ends);
  assert_int_equal(ends->received_len, 0);
  net.takes = PLENTY;
  assert_int_equal(belay__tls_connection_write(ends->connection, data, 200), 200);
  assert_int_equal(belay__tls_connection_partial_bytes(ends->connection), 0);
  serve(ends);
  assert_int_equal(ends->received_len, 200);

  net.takes = RECORD + 1000; /* one record, and some of the next */
  assert_int_equal(belay__tls_connection_write(ends->connection, data, 3 * RECORD), RECORD);
  assert_int_equal(belay__tls_connection_partial_bytes(ends->connection), RECORD);
  serve(ends);
  assert_int_equal(ends->received_len, 200 + RECORD);
  free(data);
  hang_up(ends);
}

TEST(data_before_close) {
  char buffer[16];
  ends_t *ends = handshake_done(NULL);
  read_tickets(ends);
  say(ends, "last words", 10);
  net.ended = true;
  net.write_error = EPIPE;
  assert_int_equal(belay__tls_connection_write(ends->connection, "hello", 5), -1);
  assert_int_equal(errno, EPIPE);
  assert_int_equal(belay__tls_connection_partial_bytes(ends->connection), 0);
  assert_int_equal(read_once(ends, buffer, sizeof buffer), 10);
  assert_int_equal(read_once(ends, buffer, sizeof buffer), 0);
  hang_up(ends);
}

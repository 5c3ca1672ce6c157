/* RESP output: version 2, or 3 for a connection that chose it. Scripts always get version 2. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "command.h"

enum { NUMBER_MAX = 24 };

/* Writes the digits, and returns where they end. */
static char *write_number(char *at, int64_t value) {
  char digits[NUMBER_MAX];
  size_t n = sizeof digits;
  uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
  do {
    digits[--n] = (char)('0' + rest % 10);
    rest /= 10;
  } while (rest != 0);
  if (value < 0)
    digits[--n] = '-';
  memcpy(at, digits + n, sizeof digits - n);
  return at + (sizeof digits - n);
}

/* Writes a line with a number: an integer or a length. Makes room for `more` bytes, too. */
static void add_line(engine_buffer_t *out, char kind, int64_t value, size_t more) {
  char *start = engine_buffer_room(out, NUMBER_MAX + 3 + more), *at = start;
  *at++ = kind;
  at = write_number(at, value);
  *at++ = '\r';
  *at++ = '\n';
  out->len += (size_t)(at - start);
}

/* A line may not have line ends in it. */
static void add_text(engine_buffer_t *out, char kind, const char *text, size_t len) {
  char *at = engine_buffer_room(out, len + 3);
  *at++ = kind;
  for (size_t i = 0; i < len; i++)
    *at++ = text[i] == '\r' || text[i] == '\n' ? ' ' : text[i];
  memcpy(at, "\r\n", 2);
  out->len += len + 3;
}

void engine_reply_integer(engine_call_t *call, int64_t value) {
  add_line(call->out, ':', value, 0);
}

void engine_reply_bulk(engine_call_t *call, const char *at, size_t len) {
  engine_buffer_t *out = call->out;
  add_line(out, '$', (int64_t)len, len + 2);
  char *end = out->at + out->len;
  if (len > 0)
    memcpy(end, at, len);
  memcpy(end + len, "\r\n", 2);
  out->len += len + 2;
}

void engine_reply_bytes(engine_call_t *call, engine_bytes_t word) {
  engine_reply_bulk(call, word.at, word.len);
}

void engine_reply_text(engine_call_t *call, const char *text) {
  engine_reply_bulk(call, text, strlen(text));
}

bool engine_is_resp3(const engine_call_t *call) {
  return !call->in_script && call->conn->resp == 3;
}

void engine_reply_nil(engine_call_t *call) {
  if (engine_is_resp3(call))
    engine_buffer_add(call->out, "_\r\n", 3);
  else
    engine_buffer_add(call->out, "$-1\r\n", 5);
}

void engine_reply_array(engine_call_t *call, size_t count) {
  add_line(call->out, '*', (int64_t)count, 0);
}

void engine_reply_map(engine_call_t *call, size_t pairs) {
  if (engine_is_resp3(call))
    add_line(call->out, '%', (int64_t)pairs, 0);
  else
    engine_reply_array(call, 2 * pairs);
}

void engine_reply_set(engine_call_t *call, size_t count) {
  add_line(call->out, engine_is_resp3(call) ? '~' : '*', (int64_t)count, 0);
}

void engine_reply_push(engine_call_t *call, size_t count) {
  add_line(call->out, engine_is_resp3(call) ? '>' : '*', (int64_t)count, 0);
}

void engine_reply_double(engine_call_t *call, double value) {
  char text[40];
  int len = isinf(value) ? snprintf(text, sizeof text, "%s", value > 0 ? "inf" : "-inf")
                         : snprintf(text, sizeof text, "%.17g", value);
  if (engine_is_resp3(call))
    add_text(call->out, ',', text, (size_t)len);
  else
    engine_reply_bulk(call, text, (size_t)len);
}

void engine_reply_verbatim(engine_call_t *call, const char *at, size_t len) {
  engine_buffer_t *out = call->out;
  if (!engine_is_resp3(call)) {
    engine_reply_bulk(call, at, len);
    return;
  }
  add_line(out, '=', (int64_t)len + 4, 0);
  engine_buffer_add(out, "txt:", 4);
  engine_buffer_add(out, at, len);
  engine_buffer_add(out, "\r\n", 2);
}

void engine_reply_ok(engine_call_t *call) {
  engine_buffer_add(call->out, "+OK\r\n", 5);
}

void engine_reply_status_bytes(engine_call_t *call, const char *at, size_t len) {
  add_text(call->out, '+', at, len);
}

void engine_reply_status(engine_call_t *call, const char *text) {
  engine_reply_status_bytes(call, text, strlen(text));
}

/* Those at the end go, those in the middle become blanks. */
void engine_reply_error_bytes(engine_call_t *call, const char *at, size_t len) {
  while (len > 0 && (at[len - 1] == '\r' || at[len - 1] == '\n'))
    len--;
  add_text(call->out, '-', at, len);
}

void engine_reply_error(engine_call_t *call, const char *format, ...) {
  char text[1024];
  va_list arguments;
  va_start(arguments, format);
  int len = vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  size_t most = sizeof text - 1;
  engine_reply_error_bytes(call, text, len < 0 ? 0 : (size_t)len < most ? (size_t)len : most);
}

void engine_reply_syntax_error(engine_call_t *call) {
  engine_reply_error(call, "ERR syntax error");
}

void engine_reply_wrongtype(engine_call_t *call) {
  engine_reply_error(call, "WRONGTYPE Operation against a key holding the wrong kind of value");
}

void engine_reply_not_an_integer(engine_call_t *call) {
  engine_reply_error(call, "ERR value is not an integer or out of range");
}

#include "core/call/build.h"

#include <assert.h>
#include <string.h>

#include "core/client/client.h"
#include "core/key/slot.h"

#define BUFFER_BITS_MAX 31          /* a command has less than 2 GiB */
#define POOLED_CALLS ((size_t)2048) /* calls that a client keeps for reuse */

/* Size of a call in bytes, without its command. */
static size_t size_of(const belay_client_t *client) {
  size_t id = client->trace != NULL ? 2 * sizeof(uint64_t) : 0; /* call.c: id_of() */
  return sizeof(belay__call_t) + client->node_ops->call_room + id;
}

belay__call_t *belay__call_new(belay_client_t *client, belay__conn_class_t conn_class) {
  belay__list_t *node = belay__list_pop(&client->pool);
  belay__call_t *call;
  if (node != NULL) {
    client->pool_len--;
    call = BELAY__CONTAINER(node, belay__call_t, node);
  } else if ((call = belay__alloc(client->belay, size_of(client))) == NULL) {
    return NULL;
  }
  *call = (belay__call_t){.client = client, .conn_class = conn_class};
  belay__list_init(&call->node);
  return call;
}

/* Take a buffer of 1 << bits bytes; NULL if memory is out. */
static char *take_buffer(belay_client_t *client, unsigned bits) {
  unsigned size = bits - BELAY__BUFFER_BITS;
  return size < BELAY__BUFFER_SIZES
             ? belay__pool_take(client->belay, &client->buffers[size], (size_t)1 << bits)
             : belay__alloc(client->belay, (size_t)1 << bits);
}

/* Give back the buffer of a call, if it has one. */
static void give_buffer(belay__call_t *call) {
  belay_client_t *client = call->client;
  if (call->data == NULL)
    return;
  if (call->buffer < BELAY__BUFFER_SIZES)
    belay__pool_give(client->belay, &client->buffers[call->buffer], call->data,
                     belay__call_cap(call));
  else
    belay__free(client->belay, call->data, belay__call_cap(call));
  call->data = NULL;
}

void belay__call_recycle(belay__call_t *call) {
  belay_client_t *client = call->client;
  assert(belay__list_empty(&call->node));
  belay__timer_stop(client->belay, BELAY__RANK_OTHER, &call->timer);
  if (call->state != BELAY__CALL_BUILDING) {
    client->stats.pending--;
    client->stats.pending_bytes -= call->len;
  }
  give_buffer(call);
  if (client->pool_len >= POOLED_CALLS) {
    belay__free(client->belay, call, size_of(client));
    return;
  }
  belay__list_push_front(&client->pool, &call->node);
  client->pool_len++;
}

void belay__call_pool_free(belay_client_t *client) {
  for (belay__list_t *node; (node = belay__list_pop(&client->pool)) != NULL;)
    belay__free(client->belay, BELAY__CONTAINER(node, belay__call_t, node), size_of(client));
  client->pool_len = 0;
  for (size_t i = 0; i < BELAY__BUFFER_SIZES; i++)
    belay__pool_free(client->belay, &client->buffers[i]);
}

/* Enlarge the buffer until `more` bytes fit behind the command. If memory is out, returns NULL and
 * marks the call as broken. */
static char *enlarge_buffer(belay__call_t *call, size_t more) {
  unsigned bits = BELAY__BUFFER_BITS + (call->data == NULL ? 0 : call->buffer);
  while (bits < BUFFER_BITS_MAX && ((size_t)1 << bits) - call->len < more)
    bits++;
  bool fits = !call->broken && ((size_t)1 << bits) - call->len >= more;
  char *data = fits ? take_buffer(call->client, bits) : NULL;
  if (data == NULL) {
    call->broken = true;
    return NULL;
  }
  if (call->len > 0)
    memcpy(data, call->data, call->len);
  give_buffer(call);
  call->data = data;
  call->buffer = (bits - BELAY__BUFFER_BITS) & 31;
  return data + call->len;
}

/* Make room for `more` bytes and a terminating 0: hiredis reads the byte after a command's name
 * without checking the length. Returns the end of the command; NULL if memory is out. */
static inline char *grow(belay__call_t *call, size_t more) {
  bool fits = belay__call_cap(call) > call->len + more && !call->broken;
  return fits ? call->data + call->len : enlarge_buffer(call, more + 1);
}

#define DIGITS_MAX 20

/* Write a number; returns the number of digits. Much faster than snprintf(), and used for every
 * call. */
static size_t put_digits(char out[DIGITS_MAX], uint64_t value) {
  char digits[DIGITS_MAX];
  size_t n = 0, at = 0;
  do {
    digits[n++] = (char)('0' + value % 10);
    value /= 10;
  } while (value > 0);
  while (n > 0)
    out[at++] = digits[--n];
  return at;
}

/* Write a type byte, a number and a line end; returns the number of bytes, at most 23. */
static inline size_t put_header(char *out, char type, uint64_t value) {
  size_t at = 0;
  out[at++] = type;
  if (value < 100) { /* the usual case */
    if (value >= 10)
      out[at++] = (char)('0' + value / 10);
    out[at++] = (char)('0' + value % 10);
  } else {
    at += put_digits(out + at, value);
  }
  out[at++] = '\r';
  out[at++] = '\n';
  return at;
}

void belay__call_arg_joined(belay__call_t *call, const char *a, size_t a_len, const char *b,
                            size_t b_len) {
  char *out = call == NULL ? NULL : grow(call, a_len + b_len + 32);
  if (out == NULL)
    return;
  size_t at = put_header(out, '$', a_len + b_len);
  memcpy(out + at, a, a_len);
  at += a_len;
  if (b_len > 0) /* most arguments are one piece: save them a call of memcpy() */
    memcpy(out + at, b, b_len);
  at += b_len;
  out[at++] = '\r';
  out[at++] = '\n';
  out[at] = '\0';
  call->len += (uint32_t)at;
}

void belay__call_arg(belay__call_t *call, const char *data, size_t len) {
  belay__call_arg_joined(call, data, len, "", 0);
}

void belay__call_arg_text(belay__call_t *call, const char *text) {
  belay__call_arg(call, text, strlen(text));
}

void belay__call_arg_int(belay__call_t *call, int64_t value) {
  char text[1 + DIGITS_MAX] = "-";
  size_t sign = value < 0;
  size_t n = put_digits(text + sign, sign ? -(uint64_t)value : (uint64_t)value);
  belay__call_arg(call, text, sign + n);
}

void belay__call_arg_uint(belay__call_t *call, uint64_t value) {
  char text[DIGITS_MAX];
  belay__call_arg(call, text, put_digits(text, value));
}

static void put_count(belay__call_t *call, size_t argc) {
  char *out = grow(call, 32);
  if (out != NULL)
    call->len += (uint32_t)put_header(out, '*', argc);
}

void belay__call_command(belay__call_t *call, const char *name, size_t argc) {
  if (call == NULL)
    return;
  call->command = name;
  put_count(call, argc);
  belay__call_arg(call, name, strlen(name));
}

void belay__call_needs(belay__call_t *call, belay__capability_t what) {
  call->needs = (1 + what) & 7;
}

static void put_script(belay__call_t *call, const belay__script_t *script, size_t keys, size_t args,
                       bool text) {
  if (call == NULL)
    return;
  call->script = script;
  call->as_eval = text;
  put_count(call, 3 + keys + args);
  belay__call_arg(call, text ? "EVAL" : "EVALSHA", text ? 4 : 7);
  belay__call_arg(call, text ? script->text : script->sha1, text ? script->len : 40);
  call->tail = call->len;
  belay__call_arg_int(call, (int64_t)keys);
}

void belay__call_script(belay__call_t *call, const belay__script_t *script, size_t keys,
                        size_t args) {
  put_script(call, script, keys, args, false);
}

void belay__call_script_text(belay__call_t *call, const belay__script_t *script, size_t keys,
                             size_t args) {
  put_script(call, script, keys, args, true);
}

bool belay__call_become_eval(belay__call_t *call) {
  belay_client_t *client = call->client;
  if (!belay__call_restore(call))
    return false;
  if (call->script == NULL || call->as_eval) /* the owner has chosen another command */
    return true;
  size_t tail_len = call->len - call->tail;
  belay__call_t *fresh = belay__call_new(client, (belay__conn_class_t)call->conn_class);
  if (fresh == NULL)
    return false;
  char *count_end = memchr(call->data, '\n', call->len);
  size_t count_len = (size_t)(count_end - call->data) + 1;
  char *out = grow(fresh, count_len + call->script->len + tail_len + 64);
  if (out != NULL) {
    memcpy(out, call->data, count_len);
    fresh->len = (uint32_t)count_len;
    belay__call_arg(fresh, "EVAL", 4);
    belay__call_arg(fresh, call->script->text, call->script->len);
    size_t tail = fresh->len;
    /* with the terminating 0 */
    memcpy(fresh->data + fresh->len, call->data + call->tail, tail_len + 1);
    client->stats.pending_bytes += fresh->len + tail_len - call->len;
    char *data = call->data;
    unsigned buffer = call->buffer;
    call->data = fresh->data;
    call->buffer = fresh->buffer;
    call->len = (uint32_t)(fresh->len + tail_len);
    if (call->publisher != 0)
      call->publisher = (uint32_t)(call->publisher + tail - call->tail);
    call->tail = tail;
    call->as_eval = true;
    fresh->data = data;
    fresh->buffer = buffer & 31;
  }
  belay__call_recycle(fresh);
  return call->as_eval;
}

/* If memory is out, the call keeps the hash of its script. Then a server that does not have the
 * script answers NOSCRIPT. */
void belay__call_bring_script(belay__call_t *call, belay__scripts_t *brought) {
  const belay__script_t *script = call->script;
  if (script == NULL)
    return;
  assert(script->index < BELAY__SCRIPTS_MAX);
  uint64_t *word = &brought->bits[script->index / 64], bit = UINT64_C(1) << script->index % 64;
  if ((*word & bit) == 0 && (call->as_eval || belay__call_become_eval(call)))
    *word |= bit;
}

/* Read a number up to its line end, and skip the line end. */
static size_t read_number(const char **at) {
  size_t value = 0;
  const char *p = *at;
  for (; *p != '\r'; p++)
    value = 10 * value + (size_t)(*p - '0');
  *at = p + 2;
  return value;
}

/* Return the next argument of a command, which must exist, and move *at behind the argument. */
static const char *next_word(const belay__call_t *call, const char **at, size_t *len) {
  const char *end = call->data + call->len;
  assert(*at < end);
  (*at)++;
  *len = read_number(at);
  const char *word = *at;
  *at += *len + 2;
  assert(*at <= end);
  (void)end;
  return word;
}

/* Skip the number of arguments and return it. */
static size_t first_word(const belay__call_t *call, const char **at) {
  *at = call->data + 1;
  return read_number(at);
}

/* Argument n, counted from 0, which must exist. */
static const char *nth_word(const belay__call_t *call, unsigned n, size_t *len) {
  const char *at;
  (void)first_word(call, &at);
  for (; n > 0; n--)
    (void)next_word(call, &at, len);
  return next_word(call, &at, len);
}

bool belay__call_has_keys(const belay__call_t *call) {
  size_t len;
  if (call->script == NULL)
    return false;
  const char *count = nth_word(call, 2, &len);
  return len > 1 || count[0] > '1';
}

static bool is_our_key(const belay_client_t *client, const char *word, size_t len) {
  size_t n = client->prefix_len;
  return len >= n + 2 && memcmp(word, client->prefix, n) == 0 && memcmp(word + n, "::", 2) == 0;
}

void belay__call_redact(const belay__call_t *call, belay__redacted_t *redacted, bool but_keys) {
  const char *at, *end = call->data + call->len;
  size_t len;
  (void)first_word(call, &at);
  (void)next_word(call, &at, &len); /* skip the command's name */
  while (at < end) {
    const char *word = next_word(call, &at, &len);
    if (!but_keys || !is_our_key(call->client, word, len))
      belay__redacted_hide(redacted, word, len);
  }
  assert(at == end);
}

/* true for commands that have no key. */
static bool is_keyless(const char *command) {
  static const char *const names[] = {"PING", "TIME", "SCAN", "WAIT", "INFO"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strcmp(command, names[i]) == 0)
      return true;
  return false;
}

const char *belay__call_key(const belay__call_t *call, size_t *len) {
  if (call->script != NULL)
    return nth_word(call, 3, len);
  return is_keyless(call->command) ? NULL : nth_word(call, 1, len);
}

uint16_t belay__call_slot(const belay__call_t *call) {
  size_t len;
  const char *key = belay__call_key(call, &len);
  return key == NULL ? call->route % BELAY__SLOTS : belay__slot(key, len);
}

belay__call_parts_t belay__call_parts(const belay__call_t *call) {
  const char *at, *end = call->data + call->len;
  size_t len, words = first_word(call, &at);
  at = call->data + call->tail;
  const char *count = next_word(call, &at, &len);
  belay__call_parts_t parts = {.keys = at, .keys_count = read_number(&count)};
  assert(words >= 3 + parts.keys_count);
  for (size_t i = 0; i < parts.keys_count && at < end; i++)
    (void)next_word(call, &at, &len);
  parts.args = at;
  parts.keys_len = (size_t)(at - parts.keys);
  parts.args_len = (size_t)(end - at);
  parts.args_count = words - 3 - parts.keys_count;
  return parts;
}

belay__call_t *belay__call_stale(belay__call_t *call) {
  if (call != NULL)
    call->stale = call->client->read_from != BELAY_READ_PRIMARY;
  return call;
}

void belay__call_repeat(belay__call_t *call, const belay__call_t *original) {
  char *out = grow(call, original->len + 1); /* room for the longer publish command */
  if (out == NULL)
    return;
  memcpy(out, original->data, original->len + 1); /* with the terminating 0 */
  call->len = original->len;
  call->script = original->script;
  if (call->script == NULL)
    call->command = original->command;
  else
    call->tail = original->tail;
  call->publisher = original->publisher;
  call->needs = original->needs;
  call->as_eval = original->as_eval;
}

/* ---- lean calls ---- */

void belay__call_lean(belay__call_t *call) {
  call->lean = true;
  if (call->state == BELAY__CALL_SENT)
    give_buffer(call);
}

/* Let the call's owner build the command again. Returns false, without a buffer, if memory is
 * out. */
static bool rebuild(belay__call_t *call) {
  call->script = NULL;
  call->len = call->publisher = 0;
  call->needs = 0;
  call->as_eval = call->broken = false;
  call->client->extension->rebuild(call);
  if (call->broken)
    give_buffer(call);
  return call->data != NULL;
}

bool belay__call_restore(belay__call_t *call) {
  const belay__call_t was = *call;
  if (call->data != NULL || !call->lean)
    return call->data != NULL;
  if (rebuild(call)) {
    call->client->stats.pending_bytes += (size_t)call->len - was.len;
    return true;
  }
  call->script = was.script; /* the script shows what the server may have executed */
  call->tail = was.tail;
  call->len = was.len;
  return false;
}

belay__call_t *belay__call_readable(belay__call_t *call) {
  if (call->data != NULL)
    return call;
  belay__call_t *again =
      call->lean ? belay__call_new(call->client, (belay__conn_class_t)call->conn_class) : NULL;
  if (again == NULL)
    return NULL;
  again->owner = call->owner;
  if (rebuild(again))
    return again;
  belay__call_recycle(again);
  return NULL;
}

belay__call_t *belay__call_copy(const belay__call_t *call) {
  belay__call_t *copy = belay__call_new(call->client, (belay__conn_class_t)call->conn_class);
  if (copy == NULL)
    return NULL;
  belay__call_repeat(copy, call);
  if (copy->broken) {
    belay__call_recycle(copy);
    return NULL;
  }
  copy->owner = call->owner;
  copy->deadline = call->deadline;
  copy->route = call->route;
  copy->urgent = call->urgent;
  copy->stale = call->stale;
  copy->fail_fast = call->fail_fast;
  return copy;
}

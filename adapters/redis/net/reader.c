#include "redis/net/reader.h"

#include <stddef.h>
#include <string.h>

#define DEPTH_MAX 8
#define ELEMENTS_MAX (1 << 20)
#define CHUNK_SIZE ((size_t)2048) /* bytes of the smallest chunk */
#define SPARES_MAX 4              /* spare chunks: the reply to a batch fits into them */

struct belay__chunk {
  belay__chunk_t *next;
  size_t size, used; /* of data */
  max_align_t data[];
};

typedef struct object {
  redisReply hiredis; /* first: hiredis looks at the type */
  belay__reply_t reply;
  belay__reader_t *reader;
} object_t;

/* ---- the arena ---- */

static belay__chunk_t *get_chunk(belay__reader_t *reader, size_t room) {
  belay__chunk_t *chunk = reader->spare;
  if (room != CHUNK_SIZE || chunk == NULL)
    return belay__alloc(reader->belay, sizeof *chunk + room);
  reader->spare = chunk->next;
  reader->spares--;
  return chunk;
}

static void free_all(belay__reader_t *reader, belay__chunk_t *chunks) {
  for (belay__chunk_t *chunk = chunks, *next; chunk != NULL; chunk = next) {
    next = chunk->next;
    belay__free(reader->belay, chunk, sizeof *chunk + chunk->size);
  }
}

static void *arena_alloc(belay__reader_t *reader, size_t size) {
  size = (size + sizeof(max_align_t) - 1) / sizeof(max_align_t) * sizeof(max_align_t);
  belay__chunk_t *chunk = reader->chunks;
  if (chunk == NULL || chunk->size - chunk->used < size) {
    size_t room = size > CHUNK_SIZE ? size : CHUNK_SIZE;
    if (room > reader->max_reply || reader->bytes > reader->max_reply - room) {
      reader->rejection = "a reply is over the limit";
      return NULL;
    }
    chunk = get_chunk(reader, room);
    if (chunk == NULL)
      return NULL;
    chunk->next = reader->chunks;
    chunk->size = room;
    chunk->used = 0;
    reader->chunks = chunk;
    reader->bytes += room;
  }
  void *at = (char *)chunk->data + chunk->used;
  chunk->used += size;
  return at;
}

/* Empties the arena and keeps some of its blocks. */
static void arena_reset(belay__reader_t *reader) {
  belay__chunk_t *chunks = reader->chunks;
  reader->chunks = NULL;
  reader->bytes = 0;
  while (chunks != NULL && chunks->size == CHUNK_SIZE && reader->spares < SPARES_MAX) {
    belay__chunk_t *next = chunks->next;
    chunks->next = reader->spare;
    reader->spare = chunks;
    reader->spares++;
    chunks = next;
  }
  free_all(reader, chunks);
}

/* ---- hiredis's functions ---- */

static object_t *make(const redisReadTask *task, belay__reply_type_t type) {
  belay__reader_t *reader = task->privdata;
  size_t depth = 0;
  for (const redisReadTask *t = task->parent; t != NULL; t = t->parent)
    depth++;
  if (depth == 0 && *reader->replies_due == 0 && task->type != REDIS_REPLY_PUSH)
    reader->rejection = "a reply without a request";
  else if (depth > DEPTH_MAX)
    reader->rejection = "a reply is nested too deeply";
  else
    reader->rejection = NULL;
  object_t *object = reader->rejection != NULL ? NULL : arena_alloc(reader, sizeof *object);
  if (object == NULL)
    return NULL;
  /* The elements of the hiredis object stay 0, so hiredis finds no subscription of its own. */
  int taken_for = depth == 0 && reader->push_mode ? REDIS_REPLY_PUSH : task->type;
  *object = (object_t){.hiredis = {.type = taken_for}, .reply = {.type = type}, .reader = reader};
  if (task->parent != NULL) {
    object_t *parent = task->parent->obj;
    parent->reply.items[task->idx] = &object->reply;
  }
  return object;
}

static bool speaks_resp3(const redisReadTask *task) {
  return ((const belay__reader_t *)task->privdata)->resp3;
}

static void *refuse(const redisReadTask *task) {
  belay__reader_t *reader = task->privdata;
  reader->rejection = "a reply of an unexpected type";
  return NULL;
}

static void *make_text(const redisReadTask *task, belay__reply_type_t type, const char *str,
                       size_t len) {
  object_t *object = make(task, type);
  char *copy = object == NULL ? NULL : arena_alloc(object->reader, len + 1);
  if (copy == NULL)
    return NULL;
  memcpy(copy, str, len);
  copy[len] = '\0';
  object->hiredis.str = copy;
  object->hiredis.len = len;
  object->reply.str = copy;
  object->reply.len = len;
  return object;
}

static void *make_string(const redisReadTask *task, char *str, size_t len) {
  belay__reply_type_t type = BELAY__REPLY_STRING;
  if (task->type == REDIS_REPLY_STATUS)
    type = BELAY__REPLY_STATUS;
  else if (task->type == REDIS_REPLY_ERROR)
    type = BELAY__REPLY_ERROR;
  else if (task->type != REDIS_REPLY_STRING && !speaks_resp3(task))
    return refuse(task);
  return make_text(task, type, str, len);
}

static void *make_array(const redisReadTask *task, size_t count) {
  if (task->type != REDIS_REPLY_ARRAY && !speaks_resp3(task))
    return refuse(task);
  object_t *object = make(task, BELAY__REPLY_ARRAY);
  if (object == NULL || count == 0)
    return object;
  object->reply.items = arena_alloc(object->reader, count * sizeof(void *));
  object->reply.count = count;
  return object->reply.items == NULL ? NULL : object;
}

static void *make_integer(const redisReadTask *task, long long value) {
  object_t *object = make(task, BELAY__REPLY_INTEGER);
  if (object != NULL)
    object->hiredis.integer = object->reply.integer = value;
  return object;
}

static void *make_double(const redisReadTask *task, double value, char *str, size_t len) {
  (void)value;
  return speaks_resp3(task) ? make_text(task, BELAY__REPLY_STRING, str, len) : refuse(task);
}

static void *make_nil(const redisReadTask *task) {
  /* In RESP2 no command has a null array as its reply; a reply may contain one. */
  if (task->type != REDIS_REPLY_STRING && task->parent == NULL && !speaks_resp3(task))
    return refuse(task);
  return make(task, BELAY__REPLY_NIL);
}

static void *make_bool(const redisReadTask *task, int value) {
  return speaks_resp3(task) ? make_integer(task, value) : refuse(task);
}

static void free_object(void *object) {
  arena_reset(((object_t *)object)->reader);
}

static redisReplyObjectFunctions functions = {
    .createString = make_string,
    .createArray = make_array,
    .createInteger = make_integer,
    .createDouble = make_double,
    .createNil = make_nil,
    .createBool = make_bool,
    .freeObject = free_object,
};

void belay__reader_init(belay__reader_t *reader, belay_t *belay, size_t max_reply,
                        const size_t *replies_due) {
  *reader = (belay__reader_t){.belay = belay, .max_reply = max_reply, .replies_due = replies_due};
}

void belay__reader_deinit(belay__reader_t *reader) {
  arena_reset(reader);
  free_all(reader, reader->spare);
  reader->spare = NULL;
  reader->spares = 0;
}

void belay__reader_attach(belay__reader_t *reader, redisReader *hiredis) {
  hiredis->fn = &functions;
  hiredis->privdata = reader;
  hiredis->maxelements = ELEMENTS_MAX;
}

const belay__reply_t *belay__reader_reply(void *object) {
  return &((object_t *)object)->reply;
}

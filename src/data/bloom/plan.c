#include "data/bloom/plan.h"

#include <string.h>

#include "scripts.gen.h"

/* Maximum bits of a chunk that is sent bit by bit, so that its call does not delay others for
 * long. */
#define CHUNK_BITS 16384u
/* Bytes of max_reply for each bit in a reply; bytes of max_reply for a segment in a reply, besides
 * its own bytes. */
#define REPLY_OF_A_BIT 192u
#define REPLY_OF_A_SEGMENT 65536u
/* Calls with more bits use the BULK class. */
#define BULK_CLASS_BITS 1024u
/* A call transfers a whole segment if it has at most this number of bytes per wanted bit, and if
 * is_bulk() allows the transfer. In a benchmark over a local socket the best limits were 100 for an
 * add and 300 for an exists. The limits are lower because other networks are slower. */
#define BULK_BYTES_PER_ADD 64u
#define BULK_BYTES_PER_EXISTS 256u
#define SEGMENTS (BELAY__BLOOM_SEGMENTS_MAX + 1)

/* ---- the plan ---- */

static uint32_t chunk_items(const belay_bloom_t *bloom, const belay__bloom_shape_t *shape) {
  size_t bits = bloom->handle.client->max_reply / REPLY_OF_A_BIT;
  if (bits > CHUNK_BITS)
    bits = CHUNK_BITS;
  return bits > shape->hashes ? (uint32_t)(bits / shape->hashes) : 1;
}

/* Maximum number of chunks. The last chunk of each segment may have fewer items than the others. */
static size_t chunks_max(const belay_bloom_t *bloom, const belay__bloom_shape_t *shape, size_t n) {
  size_t touched = n < shape->segments ? n : shape->segments;
  return touched + n / chunk_items(bloom, shape);
}

size_t belay__bloom_plan_size(const belay_bloom_t *bloom, const belay__bloom_shape_t *shape,
                              size_t n) {
  size_t chunks = chunks_max(bloom, shape, n);
  return sizeof(belay__bloom_plan_t) + chunks * sizeof(belay__bloom_chunk_t) +
         chunks * sizeof(uint32_t) + n * sizeof(uint32_t);
}

/* True if n items of a segment cost less as a bitmap, and the bitmap fits: into max_reply, and with
 * the other bitmaps of the plan into three quarters of max_bytes, so that other calls have room.
 * Then the function adds the bitmap's size to *bulk_bytes, the size of the plan's bitmaps. */
static bool is_bulk(const belay_bloom_t *bloom, const belay__bloom_shape_t *shape,
                    const belay__bloom_op_t *op, uint32_t n, size_t *bulk_bytes) {
  const belay_client_t *client = bloom->handle.client;
  bool add = op->what == BELAY__BLOOM_ADD;
  size_t bytes = belay__bloom_segment_bytes(shape);
  size_t wanted = (size_t)n * shape->hashes * (add ? BULK_BYTES_PER_ADD : BULK_BYTES_PER_EXISTS);
  if (n < 2 || bytes > wanted || bytes + REPLY_OF_A_SEGMENT > client->max_reply ||
      *bulk_bytes + bytes > client->max_bytes / 4 * 3)
    return false;
  *bulk_bytes += bytes;
  return true;
}

/* Sort the items by segment, into plan->order; the items of a segment keep their order. at[s]
 * becomes the end of the items of segment s. */
static void sort_items(belay__bloom_plan_t *plan, const belay__bloom_op_t *op,
                       uint32_t at[SEGMENTS]) {
  const belay__bloom_shape_t *shape = &plan->layer.shape;
  memset(at, 0, (shape->segments + 1) * sizeof *at);
  for (uint32_t i = 0; i < op->n; i++)
    at[belay__bloom_segment(op->hashes[i], shape) + 1]++;
  for (uint32_t s = 0; s < shape->segments; s++)
    at[s + 1] += at[s];
  for (uint32_t i = 0; i < op->n; i++)
    plan->order[at[belay__bloom_segment(op->hashes[i], shape)]++] = i;
}

void belay__bloom_plan_make(const belay_bloom_t *bloom, belay__bloom_plan_t *plan,
                            const belay__bloom_layer_t *layer, const belay__bloom_op_t *op) {
  const belay__bloom_shape_t *shape = &layer->shape;
  uint32_t ends[SEGMENTS], first = 0, most = chunk_items(bloom, shape);
  size_t bulk_bytes = 0, chunks = chunks_max(bloom, shape, op->n);
  plan->layer = *layer;
  plan->chunks = (belay__bloom_chunk_t *)(plan + 1);
  plan->sent = (uint32_t *)(plan->chunks + chunks);
  plan->order = plan->sent + chunks;
  plan->chunks_len = plan->sent_len = 0;
  plan->conn_class =
      op->n * shape->hashes > BULK_CLASS_BITS ? BELAY__CLASS_BULK : BELAY__CLASS_DATA;
  sort_items(plan, op, ends);
  for (uint32_t s = 0; s < shape->segments; s++) {
    bool bulk = is_bulk(bloom, shape, op, ends[s] - first, &bulk_bytes);
    if (bulk)
      plan->conn_class = BELAY__CLASS_BULK; /* the calls of a step share a connection */
    while (first < ends[s]) {
      uint32_t n = ends[s] - first;
      if (!bulk && n > most)
        n = most;
      plan->chunks[plan->chunks_len++] =
          (belay__bloom_chunk_t){.segment = s, .first = first, .n = n, .bulk = bulk};
      first += n;
    }
  }
}

static bool is_final(const belay__bloom_chunk_t *chunk, int64_t generation) {
  return chunk->answered && chunk->header == generation;
}

uint32_t belay__bloom_plan_select(belay__bloom_plan_t *plan, int64_t generation) {
  plan->sent_len = 0;
  for (uint32_t i = 0; i < plan->chunks_len; i++)
    if (!is_final(&plan->chunks[i], generation))
      plan->sent[plan->sent_len++] = i;
  return plan->sent_len;
}

uint32_t belay__bloom_plan_select_strays(belay__bloom_plan_t *plan) {
  uint32_t last = UINT32_MAX;
  plan->sent_len = 0;
  for (uint32_t i = 0; i < plan->chunks_len; i++) {
    const belay__bloom_chunk_t *chunk = &plan->chunks[i];
    if (!chunk->answered || chunk->header != 0 || chunk->segment == last)
      continue;
    plan->sent[plan->sent_len++] = i;
    last = chunk->segment;
  }
  return plan->sent_len;
}

/* ---- calls ---- */

static belay__call_t *make_bitfield(belay_bloom_t *bloom, const belay__bloom_plan_t *plan,
                                    const belay__bloom_chunk_t *chunk,
                                    const belay__bloom_op_t *op) {
  belay_client_t *client = bloom->handle.client;
  uint32_t positions[BELAY__BLOOM_K_MAX], k = plan->layer.shape.hashes;
  bool add = op->what == BELAY__BLOOM_ADD;
  bool reads = !add && belay__client_can(client, BELAY__BITFIELD_RO);
  const char *name = reads ? "BITFIELD_RO" : "BITFIELD";
  belay__call_t *call = belay__call_new(client, plan->conn_class);
  belay__call_command(call, name, 5 + (size_t)chunk->n * k * (add ? 4 : 3));
  belay__bloom_arg_segment(bloom, call, &plan->layer, chunk->segment, "");
  belay__call_arg_text(call, "GET");
  belay__call_arg_text(call, "i64");
  belay__call_arg_text(call, "0");
  for (uint32_t i = 0; i < chunk->n; i++) {
    belay__bloom_positions(op->hashes[plan->order[chunk->first + i]], &plan->layer.shape,
                           positions);
    for (uint32_t j = 0; j < k; j++) {
      belay__call_arg(call, add ? "SET" : "GET", 3);
      belay__call_arg_text(call, "u1");
      belay__call_arg_int(call, INT64_C(8) * BELAY__BLOOM_HEADER + positions[j]);
      if (add)
        belay__call_arg_text(call, "1");
    }
  }
  return call;
}

static belay__call_t *make_fetch(belay_bloom_t *bloom, const belay__bloom_plan_t *plan,
                                 const belay__bloom_chunk_t *chunk) {
  belay__call_t *call = belay__call_new(bloom->handle.client, plan->conn_class);
  belay__call_command(call, "GETRANGE", 4);
  belay__bloom_arg_segment(bloom, call, &plan->layer, chunk->segment, "");
  belay__call_arg_int(call, 0);
  belay__call_arg_int(call, (int64_t)belay__bloom_segment_bytes(&plan->layer.shape) - 1);
  return call;
}

static belay__call_t *make_or(belay_bloom_t *bloom, const belay__bloom_plan_t *plan,
                              const belay__bloom_chunk_t *chunk, const belay__bloom_op_t *op) {
  belay_client_t *client = bloom->handle.client;
  uint32_t positions[BELAY__BLOOM_K_MAX], k = plan->layer.shape.hashes;
  size_t len = belay__bloom_segment_bytes(&plan->layer.shape);
  belay__call_t *call = belay__call_new(client, plan->conn_class);
  uint8_t *bits = call == NULL ? NULL : belay__alloc(client->belay, len);
  if (bits == NULL) {
    belay__calls_discard(&call, 1);
    return NULL;
  }
  memset(bits, 0, len);
  for (uint32_t i = 0; i < chunk->n; i++) {
    belay__bloom_positions(op->hashes[plan->order[chunk->first + i]], &plan->layer.shape,
                           positions);
    for (uint32_t j = 0; j < k; j++)
      belay__bloom_bit_set(bits + BELAY__BLOOM_HEADER, positions[j]);
  }
  belay__call_script(call, &belay__script_bloom_or, 2, 3);
  belay__bloom_arg_segment(bloom, call, &plan->layer, chunk->segment, "");
  belay__bloom_arg_segment(bloom, call, &plan->layer, chunk->segment, "::or");
  belay__bloom_arg_header(call, op->generation);
  belay__call_arg(call, (const char *)bits, len);
  belay__call_arg_int(call, bloom->config.ends_at);
  belay__free(client->belay, bits, len);
  return call;
}

belay__call_t *belay__bloom_plan_call(belay__operation_t *operation, size_t i, const void *arg) {
  belay_bloom_t *bloom = operation->context;
  const belay__bloom_op_t *op = belay__bloom_op(operation);
  const belay__bloom_plan_t *plan = op->plan;
  const belay__bloom_chunk_t *chunk = &plan->chunks[plan->sent[i]];
  (void)arg;
  belay__call_t *call = !chunk->bulk                      ? make_bitfield(bloom, plan, chunk, op)
                        : op->what == BELAY__BLOOM_EXISTS ? make_fetch(bloom, plan, chunk)
                                                          : make_or(bloom, plan, chunk, op);
  bool reads = chunk->bulk || belay__client_can(bloom->handle.client, BELAY__BITFIELD_RO);
  return op->stale && reads ? belay__call_stale(call) : call;
}

belay__call_t *belay__bloom_plan_stray(belay__operation_t *operation, size_t i, const void *arg) {
  static const char nothing[BELAY__BLOOM_HEADER];
  const belay_bloom_t *bloom = operation->context;
  const belay__bloom_plan_t *plan = belay__bloom_op(operation)->plan;
  (void)arg;
  belay__call_t *call = belay__handle_script(&bloom->handle, &belay__script_bloom_discard, 1, 1);
  belay__bloom_arg_segment(bloom, call, &plan->layer, plan->chunks[plan->sent[i]].segment, "");
  belay__call_arg(call, nothing, sizeof nothing);
  return call;
}

/* ---- answers ---- */

static int read_bitfield(const belay__bloom_plan_t *plan, belay__bloom_chunk_t *chunk,
                         belay__bloom_op_t *op, const belay__reply_t *reply) {
  uint32_t k = plan->layer.shape.hashes;
  int64_t bit;
  if (reply->type != BELAY__REPLY_ARRAY || reply->count != 1 + (size_t)chunk->n * k ||
      !belay__reply_integer(reply->items[0], INT64_MIN, INT64_MAX, &chunk->header))
    return BELAY_EPROTO;
  for (uint32_t i = 0; i < chunk->n; i++) {
    bool all = true;
    for (uint32_t j = 0; j < k; j++) {
      if (!belay__reply_integer(reply->items[1 + (size_t)i * k + j], 0, 1, &bit))
        return BELAY_EPROTO;
      all = all && bit == 1;
    }
    op->answers[plan->order[chunk->first + i]] = all == (op->what == BELAY__BLOOM_EXISTS);
  }
  return 0;
}

/* Compute the answers: replay the items on the segment as it was before the call. Of two equal
 * items only the first is new. */
static void replay_items(const belay__bloom_plan_t *plan, const belay__bloom_chunk_t *chunk,
                         belay__bloom_op_t *op, uint8_t *bits) {
  uint32_t positions[BELAY__BLOOM_K_MAX], k = plan->layer.shape.hashes;
  bool add = op->what == BELAY__BLOOM_ADD;
  for (uint32_t i = 0; i < chunk->n; i++) {
    uint32_t item = plan->order[chunk->first + i];
    bool all = true;
    belay__bloom_positions(op->hashes[item], &plan->layer.shape, positions);
    for (uint32_t j = 0; j < k; j++) {
      all = all && belay__bloom_bit(bits, positions[j]);
      if (add)
        belay__bloom_bit_set(bits, positions[j]);
    }
    op->answers[item] = all != add;
  }
}

static int read_bulk(belay_bloom_t *bloom, const belay__bloom_plan_t *plan,
                     belay__bloom_chunk_t *chunk, belay__bloom_op_t *op,
                     const belay__reply_t *reply) {
  belay_t *belay = bloom->handle.client->belay;
  size_t len = belay__bloom_segment_bytes(&plan->layer.shape);
  char header[BELAY__BLOOM_HEADER];
  if (reply->type != BELAY__REPLY_STRING || reply->len > len)
    return BELAY_EPROTO;
  uint64_t head = 0;
  for (size_t i = 0; i < BELAY__BLOOM_HEADER; i++)
    head = head << 8 | (i < reply->len ? (uint8_t)reply->str[i] : 0);
  chunk->header = (int64_t)head;
  belay__bloom_header(op->generation, header);
  if (reply->len < sizeof header || memcmp(reply->str, header, sizeof header) != 0) {
    chunk->answered = false; /* another generation: an add has changed nothing */
    return 0;
  }
  uint8_t *bits = belay__alloc(belay, len); /* a segment is shorter while its last bits are clear */
  if (bits == NULL)
    return op->what == BELAY__BLOOM_ADD ? BELAY_EUNKNOWN : BELAY_ENOMEM;
  memset(bits, 0, len);
  memcpy(bits, reply->str, reply->len);
  replay_items(plan, chunk, op, bits + BELAY__BLOOM_HEADER);
  belay__free(belay, bits, len);
  return 0;
}

int belay__bloom_plan_read(belay_bloom_t *bloom, belay__bloom_plan_t *plan, belay__bloom_op_t *op,
                           uint32_t nth, const belay__reply_t *reply) {
  belay__bloom_chunk_t *chunk = &plan->chunks[plan->sent[nth]];
  chunk->answered = true;
  int error = chunk->bulk ? read_bulk(bloom, plan, chunk, op, reply)
                          : read_bitfield(plan, chunk, op, reply);
  op->touched |= chunk->answered;
  return error;
}

/* hiredis with belay's reply functions. hiredis decides by fields of its own, without a promise
 * which it reads: this test asks it. In push mode every reply must reach the push callback. If
 * hiredis took one for the confirmation of a subscription of its own, it would abort. */
#include "redis/net/reader.h"

#include <hiredis/async.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/base/test.h"

typedef struct conversation {
  belay_t belay;
  belay__reader_t reader;
  size_t replies_due;
  redisAsyncContext *ac;
  int server;         /* the other end of the socket */
  char said[256];     /* the push callback's replies: one word each */
  unsigned elsewhere; /* number of replies to another callback */
} conversation_t;

static void *alloc(void *ctx, size_t size) {
  (void)ctx;
  return malloc(size);
}

static void give_back(void *ctx, void *memory) {
  (void)ctx;
  free(memory);
}

static void on_push(redisAsyncContext *ac, void *object) {
  conversation_t *c = ac->data;
  const belay__reply_t *reply = belay__reader_reply(object);
  if (reply->type == BELAY__REPLY_ARRAY && reply->count > 0)
    reply = reply->items[0];
  strcat(c->said, reply->str != NULL ? reply->str : "-");
  strcat(c->said, " ");
}

static void on_reply(redisAsyncContext *ac, void *object, void *privdata) {
  (void)privdata;
  conversation_t *c = ac->data;
  c->elsewhere += object != NULL;
}

static void begin(conversation_t *c, bool pushed) {
  int fds[2];
  assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
  *c = (conversation_t){.belay.allocator = {.alloc = alloc, .free = give_back}, .replies_due = 100};
  redisOptions options = {.type = REDIS_CONN_USERFD, .endpoint.fd = fds[0]};
  c->ac = redisAsyncConnectWithOptions(&options);
  assert_non_null(c->ac);
  c->server = fds[1];
  c->ac->c.flags |= REDIS_CONNECTED;
  c->ac->data = c;
  redisAsyncSetPushCallback(c->ac, on_push);
  belay__reader_init(&c->reader, &c->belay, 65536, &c->replies_due);
  c->reader.resp3 = true;
  c->reader.push_mode = pushed;
  belay__reader_attach(&c->reader, c->ac->c.reader);
}

static void receive(conversation_t *c, const char *text) {
  assert_int_equal(write(c->server, text, strlen(text)), strlen(text));
  redisAsyncHandleRead(c->ac);
}

static void end(conversation_t *c) {
  redisAsyncFree(c->ac);
  belay__reader_deinit(&c->reader);
  close(c->server);
}

#define WORDS(kind, len) ">3\r\n$" len "\r\n" kind "\r\n$1\r\nc\r\n:1\r\n"

TEST(push_mode) {
  conversation_t c;
  begin(&c, true);
  receive(&c, WORDS("subscribe", "9") WORDS("ssubscribe", "10") WORDS("message", "7"));
  receive(&c, WORDS("smessage", "8") WORDS("psubscribe", "10") WORDS("pmessage", "8"));
  receive(&c, WORDS("unsubscribe", "11") WORDS("sunsubscribe", "12") WORDS("m", "1"));
  receive(&c, "+PONG\r\n-ERR\r\n:1\r\n$-1\r\n_\r\n*0\r\n>0\r\n#t\r\n");
  receive(&c, "*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n");
  assert_string_equal(c.said, "subscribe ssubscribe message smessage psubscribe pmessage "
                              "unsubscribe sunsubscribe m PONG ERR - - - - - - subscribe ");
  assert_int_equal(c.ac->err, 0);
  end(&c);
}

/* In RESP2 a null that is no string stands inside of an answer, and is none. */
TEST(null_array_inside_a_reply) {
  static const char ping[] = "*1\r\n$4\r\nPING\r\n";
  conversation_t c;
  begin(&c, false);
  c.reader.resp3 = false;
  assert_int_equal(redisAsyncFormattedCommand(c.ac, on_reply, NULL, ping, sizeof ping - 1),
                   REDIS_OK);
  receive(&c, "*2\r\n*-1\r\n:1\r\n");
  assert_int_equal(c.elsewhere, 1);
  assert_int_equal(c.ac->err, 0);
  void *reply = NULL;
  assert_int_equal(redisReaderFeed(c.ac->c.reader, "*-1\r\n", 5), REDIS_OK);
  assert_int_equal(redisReaderGetReply(c.ac->c.reader, &reply), REDIS_ERR);
  end(&c);
}

/* Before push mode, replies go to their commands, and pushes between them do not. */
TEST(push_is_no_reply) {
  static const char ping[] = "*1\r\n$4\r\nPING\r\n";
  conversation_t c;
  begin(&c, false);
  for (int i = 0; i < 3; i++)
    assert_int_equal(redisAsyncFormattedCommand(c.ac, on_reply, NULL, ping, sizeof ping - 1),
                     REDIS_OK);
  receive(&c, WORDS("subscribe", "9") "+PONG\r\n" WORDS("message", "7"));
  assert_int_equal(c.elsewhere, 1);
  receive(&c, "*1\r\n$9\r\nsubscribe\r\n" WORDS("unsubscribe", "11") "*0\r\n");
  assert_int_equal(c.elsewhere, 3);
  assert_string_equal(c.said, "subscribe message unsubscribe ");
  end(&c);
}

/* A fake server: on a TCP port of 127.0.0.1, in a thread of its own, it replies as the test
 * wants. */
#ifndef TEST_SUPPORT_DEPLOYMENTS_FAKE_H
#define TEST_SUPPORT_DEPLOYMENTS_FAKE_H

#include <stdbool.h>
#include <stddef.h>

typedef struct fake fake_t;
typedef struct fake_link fake_link_t;

/* A command came in; in the fake's thread. */
typedef void (*fake_command_fn)(fake_link_t *link, const char *const *words, size_t count,
                                void *arg);

typedef struct fake_options {
  bool mute;                  /* accepts, reads, and never says a word */
  const char *knows;          /* a command that version 7 does not; NULL: none */
  const char *greeting;       /* sent to each new client before its first command; NULL: none */
  fake_command_fn on_command; /* NULL: fake_behave() */
  void *arg;
} fake_options_t;

fake_t *fake_start(const fake_options_t *options);
void fake_stop(fake_t *fake);
const char *fake_url(const fake_t *fake);

/* So far: connections that came, and commands that are no handshake. */
unsigned fake_connections(fake_t *fake);
unsigned fake_commands(fake_t *fake);

/* Says something, soon, on every connection that listens. */
void fake_publish(fake_t *fake, const char *text);

/* ---- in on_command ---- */

/* Whether it belongs to a handshake: AUTH, SELECT, CLIENT, COMMAND, HELLO, INFO. */
bool fake_is_handshake(const char *const *words);

/* Replies like a server of version 7 that grants each acquire and accepts each release. */
void fake_behave(fake_link_t *link, const char *const *words, size_t count);

/* Numbers connections from 1, and the commands of one that are no handshake from 1. */
unsigned fake_link_number(const fake_link_t *link);
unsigned fake_link_command(const fake_link_t *link);

void fake_say(fake_link_t *link, const char *text);
void fake_say_bytes(fake_link_t *link, const char *data, size_t len);

/* From now on what is published is said here too. */
void fake_listen(fake_link_t *link);

/* Says nothing more, and reads nothing more: FIN. */
void fake_hang_up(fake_link_t *link);

#endif /* TEST_SUPPORT_DEPLOYMENTS_FAKE_H */

/* The belay command: the library worn by a shell. */
#include <stdio.h>
#include <string.h>

#include "acl.h"
#include "belay/version.h"
#include "demo.h"
#include "refill.h"
#include "server.h"
#include "stampede.h"
#include "term.h"
#include "worker.h"

#define WRONG_USAGE 2

typedef struct command {
  const char *name;
  int (*run)(int argc, char **argv); /* argv[1] is the name */
  const char *usage;                 /* NULL: only belay itself uses it */
  const char *summary;
  void (*help)(FILE *out); /* says more; NULL: there is no more to say */
} command_t;

static int command_help(int argc, char **argv);
static int command_version(int argc, char **argv);

static const command_t commands[] = {
    {"acl", command_acl, "acl OPTION... NAME...", "the rules of a least-privilege user", help_acl},
    {"demo", command_demo, "demo [--url URL]", "watch locks at work, and check what they promise",
     NULL},
    {"help", command_help, "help", "say this", NULL},
    {"version", command_version, "version", "say which belay this is", NULL},
    {"demo-worker", command_demo_worker, NULL, NULL, NULL},
    {"demo-raw", command_demo_raw, NULL, NULL, NULL},
    {"demo-refiller", command_demo_refiller, NULL, NULL, NULL},
    {"demo-stampede", command_demo_stampede, NULL, NULL, NULL},
    {"demo-server", command_demo_server, NULL, NULL, NULL},
};
#define COMMANDS (sizeof commands / sizeof *commands)

static void usage(FILE *out) {
  (void)fputs("usage: belay COMMAND [OPTION]...\n\n", out);
  for (size_t i = 0; i < COMMANDS; i++)
    if (commands[i].usage != NULL)
      (void)fprintf(out, "  belay %-20s %s\n", commands[i].usage, commands[i].summary);
  (void)fputs("\nURL: redis://[user[:password]@]host[:port][/db] or unix:///path[?db=n];"
              " without one,\nthe demo starts a server of its own, which is gone when it ends."
              " A URL with a password\nbelongs in the environment variable BELAY_URL instead:"
              " everybody on this machine may read\na command line (/proc/PID/cmdline).\n",
              out);
}

static int command_help(int argc, char **argv) {
  (void)argv;
  if (argc != 2) {
    usage(stderr);
    return WRONG_USAGE;
  }
  usage(stdout);
  return term_flush() ? 0 : 1;
}

/* What a command says of itself, or belay of all of them. */
static int help_of(const command_t *command) {
  (command->help != NULL ? command->help : usage)(stdout);
  return term_flush() ? 0 : 1;
}

static int command_version(int argc, char **argv) {
  (void)argv;
  if (argc != 2) {
    usage(stderr);
    return WRONG_USAGE;
  }
  (void)puts("belay " BELAY_VERSION_STRING);
  return term_flush() ? 0 : 1;
}

/* Options that everybody tries first. */
static const char *command_name(const char *argument) {
  if (strcmp(argument, "--help") == 0 || strcmp(argument, "-h") == 0)
    return "help";
  return strcmp(argument, "--version") == 0 ? "version" : argument;
}

int main(int argc, char **argv) {
  const char *name = argc > 1 ? command_name(argv[1]) : "";
  for (size_t i = 0; i < COMMANDS; i++) {
    if (strcmp(commands[i].name, name) != 0)
      continue;
    if (argc == 3 && strcmp(command_name(argv[2]), "help") == 0)
      return help_of(&commands[i]);
    int status = commands[i].run(argc, argv);
    if (status == WRONG_USAGE && commands[i].run == command_demo)
      usage(stderr);
    return status;
  }
  usage(stderr);
  return WRONG_USAGE;
}

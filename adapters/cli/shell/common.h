/* The options that all commands share. Those of servers are settings too, see config.h. */
#ifndef BELAY_CLI_SHELL_COMMON_H
#define BELAY_CLI_SHELL_COMMON_H

#include "command.h"

#define URLS_MAX 16
#define NAMESPACE_PARTS_MAX 8

/* The given values, or the defaults. */
typedef struct common {
  bool help, json, quiet, verbose;
  const char *label;  /* --as of commands that hold something; NULL: host:pid */
  const char *config; /* NULL: the default files */
  texts_t urls;       /* empty: COMMON_URL */
  const char *namespace_text, *user, *password, *password_file;
  int64_t timeout_ms; /* of one operation; 0 until config_read() */
  const char *tls_ca, *tls_ca_dir, *tls_cert, *tls_key, *tls_server_name;
} common_t;

#define COMMON_URL "redis://127.0.0.1:6379"

extern common_t common;

/* Options of every command, of commands that report, and of commands that query servers. */
extern const option_t common_options[], common_report_options[], common_server_options[];

/* The parts of a namespace. */
typedef struct namespace_parts {
  const char *part[NAMESPACE_PARTS_MAX];
  size_t n;
} namespace_parts_t;

/* Divide "PART::PART" at each "::" into copies that live to the end of the process. Returns false
 * if there are too many parts, or no memory. */
bool namespace_divide(const char *text, namespace_parts_t *out);

#endif /* BELAY_CLI_SHELL_COMMON_H */

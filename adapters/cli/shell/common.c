#include "shell/common.h"

#include <string.h>

#include "ui/text.h"

common_t common = {.timeout_ms = 2000};

const option_t common_options[] = {
    FLAG("help", &common.help, "say what the command does and what it takes", .letter = 'h'),
    {0},
};

const option_t common_report_options[] = {
    FLAG("json", &common.json,
         "write each result as a JSON object in a line of its own; ids, counters, scores and "
         "fencing numbers are strings of digits, other numbers are below 2^53"),
    FLAG("quiet", &common.quiet,
         "write no results: the exit status tells; what goes wrong is said all the same",
         .letter = 'q'),
    {0},
};

const option_t common_server_options[] = {
    TEXTS("url", "URL", &common.urls, "the server, or deployment; default " COMMON_URL,
          .letter = 'u'),
    TEXT("namespace", "PART[::PART]...", &common.namespace_text,
         "what all keys begin with; default belay", .letter = 'n'),
    TEXT("user", "NAME", &common.user, "who we are to the server; default: what the URL says"),
    TEXT("password-file", "FILE", &common.password_file,
         "its first line is the password; refused if everybody may read it; default: "
         "BELAY_PASSWORD, or what the URL says"),
    DURATION("timeout", 1, HOUR_MS / 6, &common.timeout_ms,
             "how long a server may take to answer; default 2s"),
    TEXT("tls-ca", "FILE", &common.tls_ca,
         "the authorities that the server's certificate may be signed by; default: the system's"),
    TEXT("tls-ca-dir", "FOLDER", &common.tls_ca_dir,
         "a folder of them, as `openssl rehash` leaves it"),
    TEXT("tls-cert", "FILE", &common.tls_cert, "our own certificate, for servers that ask for one"),
    TEXT("tls-key", "FILE", &common.tls_key,
         "its key; default: it is in the certificate's file too"),
    TEXT("tls-server-name", "NAME", &common.tls_server_name,
         "whom the server's certificate must be for; default: the host in the URL"),
    TEXT("config", "FILE", &common.config, "read this file of settings instead of the usual ones"),
    FLAG("verbose", &common.verbose, "say on standard error what happens to connections",
         .letter = 'v'),
    {0},
};

const option_t common_secrets[] = {
    TEXT("password", "TEXT", &common.password,
         "the password; in the environment, or in a file that others cannot read"),
    {0},
};

bool namespace_divide(const char *text, namespace_parts_t *out) {
  *out = (namespace_parts_t){0};
  char *copy = text_keep(text, strlen(text));
  for (char *next = copy; next != NULL; out->n++) {
    if (out->n == NAMESPACE_PARTS_MAX)
      return false;
    out->part[out->n] = next;
    next = strstr(next, "::");
    if (next != NULL) {
      *next = '\0';
      next += 2;
    }
  }
  return copy != NULL;
}

#include "shell/common.h"

#include <string.h>

#include "ui/text.h"

common_t common;

const option_t common_options[] = {
    FLAG("help", &common.help, "print what the command does, with its arguments and options",
         .letter = 'h'),
    {0},
};

const option_t common_report_options[] = {
    FLAG("json", &common.json,
         "write each result as a JSON object on its own line; ids, counters, scores and "
         "fencing numbers are strings of digits, other numbers are below 2^53"),
    FLAG("quiet", &common.quiet,
         "write no results; the exit status tells the result. Errors are still reported",
         .letter = 'q'),
    {0},
};

const option_t common_server_options[] = {
    TEXTS("url", "URL", &common.urls, "URL of the server or deployment; default " COMMON_URL,
          .letter = 'u'),
    TEXT("namespace", "PART[::PART]...", &common.namespace_text,
         "prefix of all keys; default belay", .letter = 'n'),
    TEXT("user", "NAME", &common.user, "user name for the server; default: that of the URL"),
    TEXT("password-file", "FILE", &common.password_file,
         "file with the password on its first line; refused if all users can read it; default: "
         "BELAY_PASSWORD, or that of the URL"),
    DURATION("timeout", 1, HOUR_MS / 6, &common.timeout_ms,
             "maximum time for a server to answer; default 2s"),
    TEXT("tls-ca", "FILE", &common.tls_ca,
         "file with the certificate authorities for the server's certificate; default: the "
         "system's"),
    TEXT("tls-ca-dir", "FOLDER", &common.tls_ca_dir,
         "folder of certificate authorities, as `openssl rehash` makes it"),
    TEXT("tls-cert", "FILE", &common.tls_cert,
         "certificate of this client, for servers that "
         "require one"),
    TEXT("tls-key", "FILE", &common.tls_key,
         "key of the certificate; default: it is in the certificate's file"),
    TEXT("tls-server-name", "NAME", &common.tls_server_name,
         "name that the server's certificate must have; default: the host in the URL"),
    TEXT("config", "FILE", &common.config, "read this settings file instead of the usual ones"),
    FLAG("verbose", &common.verbose, "report events of connections on standard error",
         .letter = 'v'),
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

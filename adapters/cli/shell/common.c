#include "shell/common.h"

#include <string.h>

#include "ui/text.h"

common_t common = {.timeout_ms = 2000};

const option_t common_options[] = {
    {.name = "help",
     .letter = 'h',
     .kind = OPTION_FLAG,
     .to.flag = &common.help,
     .help = "say what the command does and what it takes"},
    {0},
};

const option_t common_report_options[] = {
    {.name = "json",
     .kind = OPTION_FLAG,
     .to.flag = &common.json,
     .help = "write each result as a JSON object in a line of its own; ids, counters, scores and "
             "fencing numbers are strings of digits, other numbers are below 2^53"},
    {.name = "quiet",
     .letter = 'q',
     .kind = OPTION_FLAG,
     .to.flag = &common.quiet,
     .help = "write no results: the exit status tells; what goes wrong is said all the same"},
    {0},
};

const option_t common_server_options[] = {
    {.name = "url",
     .letter = 'u',
     .kind = OPTION_TEXTS,
     .value = "URL",
     .to.texts = &common.urls,
     .help = "the server, or deployment; default " COMMON_URL},
    {.name = "namespace",
     .letter = 'n',
     .kind = OPTION_TEXT,
     .value = "PART[::PART]...",
     .to.text = &common.namespace_text,
     .help = "what all keys begin with; default belay"},
    {.name = "user",
     .kind = OPTION_TEXT,
     .value = "NAME",
     .to.text = &common.user,
     .help = "who we are to the server; default: what the URL says"},
    {.name = "password-file",
     .kind = OPTION_TEXT,
     .value = "FILE",
     .to.text = &common.password_file,
     .help = "its first line is the password; refused if everybody may read it; default: "
             "BELAY_PASSWORD, or what the URL says"},
    {.name = "timeout",
     .kind = OPTION_DURATION,
     .value = "DURATION",
     .to.number = &common.timeout_ms,
     .min = 1,
     .max = HOUR_MS / 6,
     .help = "how long a server may take to answer; default 2s"},
    {.name = "tls-ca",
     .kind = OPTION_TEXT,
     .value = "FILE",
     .to.text = &common.tls_ca,
     .help =
         "the authorities that the server's certificate may be signed by; default: the system's"},
    {.name = "tls-ca-dir",
     .kind = OPTION_TEXT,
     .value = "FOLDER",
     .to.text = &common.tls_ca_dir,
     .help = "a folder of them, as `openssl rehash` leaves it"},
    {.name = "tls-cert",
     .kind = OPTION_TEXT,
     .value = "FILE",
     .to.text = &common.tls_cert,
     .help = "our own certificate, for servers that ask for one"},
    {.name = "tls-key",
     .kind = OPTION_TEXT,
     .value = "FILE",
     .to.text = &common.tls_key,
     .help = "its key; default: it is in the certificate's file too"},
    {.name = "tls-server-name",
     .kind = OPTION_TEXT,
     .value = "NAME",
     .to.text = &common.tls_server_name,
     .help = "whom the server's certificate must be for; default: the host in the URL"},
    {.name = "config",
     .kind = OPTION_TEXT,
     .value = "FILE",
     .to.text = &common.config,
     .help = "read this file of settings instead of the usual ones"},
    {.name = "verbose",
     .letter = 'v',
     .kind = OPTION_FLAG,
     .to.flag = &common.verbose,
     .help = "say on standard error what happens to connections"},
    {0},
};

const option_t common_secrets[] = {
    {.name = "password",
     .kind = OPTION_TEXT,
     .value = "TEXT",
     .to.text = &common.password,
     .help = "the password; in the environment, or in a file that others cannot read"},
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

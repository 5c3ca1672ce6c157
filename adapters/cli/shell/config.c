#include "shell/config.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "shell/common.h"
#include "shell/options.h"
#include "ui/out.h"
#include "ui/text.h"

#define PASSWORD_FILE_MAX ((size_t)70000) /* a password has at most 65,536 bytes */
#define ENV_NAME_MAX 64

/* ---- the environment ---- */

/* "tls-ca" is BELAY_TLS_CA. */
static void name_in_environment(const option_t *option, char out[ENV_NAME_MAX]) {
  (void)snprintf(out, ENV_NAME_MAX, "BELAY_%s", option->name);
  for (char *c = out; *c != '\0'; c++)
    *c = *c == '-' ? '_' : (char)toupper((unsigned char)*c);
}

/* Spaces separate the values of an option that may be given several times. */
static const char *set_from_environment(const option_t *option, const char *value) {
  if (option->kind != OPTION_TEXTS)
    return option_set_value(option, value);
  static const char spaces[] = " \t\n";
  for (value += strspn(value, spaces); *value != '\0'; value += strspn(value, spaces)) {
    size_t len = strcspn(value, spaces);
    const char *url = text_keep(value, len);
    const char *wrong =
        url == NULL ? "cannot be stored: out of memory" : option_set_value(option, url);
    if (wrong != NULL)
      return wrong;
    value += len;
  }
  return NULL;
}

bool config_read_environment(void) {
  const char *password = getenv("BELAY_PASSWORD");
  if (password != NULL && *password != '\0')
    common.password = password;
  for (const option_t *o = common_server_options; o->name != NULL; o++) {
    char name[ENV_NAME_MAX];
    name_in_environment(o, name);
    const char *value = getenv(name);
    if (value == NULL || *value == '\0' || o->kind == OPTION_FLAG)
      continue;
    const char *wrong = set_from_environment(o, value);
    if (wrong != NULL) {
      complain("%s %s", name, wrong);
      return false;
    }
  }
  return true;
}

/* ---- passwords ---- */

bool url_has_password(const char *url) {
  const char *rest = strstr(url, "://");
  if (rest == NULL)
    return false;
  rest += 3;
  size_t len = strcspn(rest, "@/");
  return rest[len] == '@' && memchr(rest, ':', len) != NULL;
}

/* Read the open password file. Returns what is wrong, or NULL. */
static const char *read_password(FILE *file) {
  static char text[PASSWORD_FILE_MAX + 2];
  struct stat status;
  if (fstat(fileno(file), &status) != 0)
    return strerror(errno);
  if (S_ISREG(status.st_mode) && (status.st_mode & S_IROTH) != 0)
    return "has a password, and all users can read it: run chmod o= on it";
  size_t len = fread(text, 1, PASSWORD_FILE_MAX + 1, file);
  if (ferror(file))
    return strerror(errno);
  if (memchr(text, '\0', len) != NULL)
    return "has a byte 0";
  if (len > PASSWORD_FILE_MAX)
    return "is longer than 70000 bytes";
  text[strcspn(text, "\r\n")] = '\0';
  common.password = text;
  return text[0] == '\0' ? "has no password in its first line" : NULL;
}

bool config_read_password(void) {
  if (common.password_file == NULL)
    return true;
  FILE *file = fopen(common.password_file, "re");
  const char *wrong = file != NULL ? read_password(file) : strerror(errno);
  if (file != NULL)
    (void)fclose(file);
  if (wrong != NULL)
    complain("password file %s: %s", common.password_file, wrong);
  return wrong == NULL;
}

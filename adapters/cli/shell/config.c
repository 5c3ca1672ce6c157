#include "shell/config.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "shell/common.h"
#include "shell/options.h"
#include "ui/out.h"
#include "ui/text.h"

#define PATH_LEN_MAX 4096
#define SETTINGS_FILE_MAX ((size_t)1 << 20)
#define PASSWORD_FILE_MAX ((size_t)70000) /* a password has at most 65,536 bytes */
#define ENV_NAME_MAX 64
#define SETTINGS_MAX 32
#define TIMEOUT_MS 2000
#define NO_MEMORY "cannot be stored: out of memory"
#define READABLE "has a password, and all users can read it: run chmod o= on it"

/* Settings: some options, and a password, which has no option because all users can read command
 * lines. They have no default value until all sources are read. */
static const option_t secrets[] = {TEXT("password", "TEXT", &common.password, ""), {0}};
static const option_set_t settings = {{common_server_options, secrets}, 2};

/* Returns true if an earlier source has set the option. A password and a password file are one
 * setting. */
static bool is_set(const option_t *option) {
  const char **text = option->to.text;
  if (option->kind == OPTION_TEXTS)
    return option->to.texts->n > 0;
  if (option->kind == OPTION_DURATION)
    return *option->to.number != 0;
  if (text == &common.password || text == &common.password_file)
    return common.password != NULL || common.password_file != NULL;
  return *text != NULL;
}

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
    const char *wrong = url == NULL ? NO_MEMORY : option_set_value(option, url);
    if (wrong != NULL)
      return wrong;
    value += len;
  }
  return NULL;
}

static bool read_environment(void) {
  const option_t *o;
  for (size_t i = 0; (o = option_nth(&settings, i)) != NULL; i++) {
    char name[ENV_NAME_MAX];
    name_in_environment(o, name);
    const char *value = getenv(name);
    if (value == NULL || *value == '\0' || o->kind == OPTION_FLAG || is_set(o))
      continue;
    const char *wrong = set_from_environment(o, value);
    if (wrong != NULL) {
      complain("%s %s", name, wrong);
      return false;
    }
  }
  return true;
}

/* ---- files ---- */

typedef struct reading {
  const char *path;
  bool open_to_all; /* true if all users can read the file */
  unsigned line;
  bool taken[SETTINGS_MAX]; /* settings of earlier sources */
} reading_t;

/* Read an open file to its end, and terminate the text. Returns NULL, or the text of an error. */
static const char *read_text(FILE *file, size_t max, char *out) {
  static char too_long[64];
  size_t len = fread(out, 1, max + 1, file);
  out[len] = '\0';
  if (ferror(file))
    return strerror(errno);
  if (memchr(out, '\0', len) != NULL)
    return "has a byte 0"; /* which would hide the rest of its line */
  (void)snprintf(too_long, sizeof too_long, "is longer than %zu bytes", max);
  return len > max ? too_long : NULL;
}

bool url_has_password(const char *url) {
  const char *rest = strstr(url, "://");
  if (rest == NULL)
    return false;
  rest += 3;
  size_t len = strcspn(rest, "@/");
  return rest[len] == '@' && memchr(rest, ':', len) != NULL;
}

/* Set option number i from a line of a file. Returns NULL, or the text of an error. */
static const char *set_from_file(reading_t *r, size_t i, const char *value) {
  const option_t *option = option_nth(&settings, i);
  bool secret = option->to.text == &common.password ||
                (option->to.texts == &common.urls && url_has_password(value));
  if (*value == '\0')
    return "has no value";
  if (secret && r->open_to_all)
    return READABLE;
  if (r->taken[i])
    return NULL;
  if (option->kind != OPTION_TEXTS && is_set(option))
    return "is set twice";
  const char *copy = text_keep(value, strlen(value));
  return copy == NULL ? NO_MEMORY : option_set_value(option, copy);
}

/* Return the number of the setting of that name, or -1. Flags and --config are no settings of
 * files. */
static int find_setting(const char *name, size_t len) {
  const option_t *option = option_find(&settings, name, len);
  if (option == NULL || option->kind == OPTION_FLAG || option->to.text == &common.config)
    return -1;
  int i = 0;
  while (option_nth(&settings, (size_t)i) != option)
    i++;
  return i;
}

/* Report what is wrong with a line. Unknown words are not repeated: they may be passwords. */
static bool refuse_line(const reading_t *r, const char *name, const char *wrong) {
  complain("%s:%u: %s%s%s", r->path, r->line, name, *name != '\0' ? " " : "", wrong);
  return false;
}

/* Read a line `name = value`, an empty line or a comment. */
static bool read_line(reading_t *r, char *line) {
  static const char spaces[] = " \t\r";
  size_t len = strlen(line);
  while (len > 0 && strchr(spaces, line[len - 1]) != NULL)
    line[--len] = '\0';
  line += strspn(line, spaces);
  if (*line == '\0' || *line == '#')
    return true;
  size_t name_len = strcspn(line, "= \t");
  const char *value = line + name_len + strspn(line + name_len, spaces);
  if (*value != '=')
    return refuse_line(r, "", "not a line `name = value`");
  int i = find_setting(line, name_len);
  if (i < 0)
    return refuse_line(r, "", "there is no such setting");
  value += 1 + strspn(value + 1, spaces);
  const char *wrong = set_from_file(r, (size_t)i, value);
  return wrong == NULL || refuse_line(r, option_nth(&settings, (size_t)i)->name, wrong);
}

static bool read_settings(FILE *file, const char *path) {
  static char text[SETTINGS_FILE_MAX + 2];
  struct stat status;
  bool regular = fstat(fileno(file), &status) == 0 && S_ISREG(status.st_mode);
  const char *wrong = regular ? read_text(file, SETTINGS_FILE_MAX, text) : "is not a regular file";
  if (wrong != NULL) {
    complain("%s: %s", path, wrong);
    return false;
  }
  reading_t r = {.path = path, .open_to_all = (status.st_mode & S_IROTH) != 0};
  const option_t *o;
  for (size_t i = 0; (o = option_nth(&settings, i)) != NULL; i++)
    r.taken[i] = o->kind != OPTION_FLAG && is_set(o);
  char *next = text;
  while (next != NULL) {
    r.line++;
    if (!read_line(&r, strsep(&next, "\n")))
      return false;
  }
  return true;
}

/* needed: a missing file is an error. With O_NONBLOCK the open() of a pipe without a writer
 * returns, and the pipe is refused. */
static bool read_file(const char *path, bool needed) {
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;
  if (file == NULL) {
    bool wrong = needed || (errno != ENOENT && errno != ENOTDIR && errno != EACCES);
    if (wrong)
      complain("%s: %s", path, strerror(errno));
    return !wrong;
  }
  bool well = read_settings(file, path);
  (void)fclose(file);
  return well;
}

static bool read_files(void) {
  char path[PATH_LEN_MAX];
  if (common.config != NULL)
    return read_file(common.config, true);
  const char *folder = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
  int len = 0;
  if (folder != NULL && *folder == '/')
    len = snprintf(path, sizeof path, "%s/belay/config", folder);
  else if (home != NULL && *home != '\0')
    len = snprintf(path, sizeof path, "%s/.config/belay/config", home);
  if (len > 0 && (size_t)len < sizeof path && !read_file(path, false))
    return false;
  return read_file("/etc/belay/config", false);
}

/* ---- the password file ---- */

/* Read the open password file. Returns NULL, or the text of an error. */
static const char *read_password(FILE *file) {
  static char text[PASSWORD_FILE_MAX + 2];
  struct stat status;
  if (fstat(fileno(file), &status) != 0)
    return strerror(errno);
  if (S_ISREG(status.st_mode) && (status.st_mode & S_IROTH) != 0)
    return READABLE;
  const char *wrong = read_text(file, PASSWORD_FILE_MAX, text);
  text[strcspn(text, "\r\n")] = '\0';
  common.password = text;
  return wrong == NULL && text[0] == '\0' ? "has no password in its first line" : wrong;
}

static bool read_password_file(void) {
  FILE *file = fopen(common.password_file, "re");
  const char *wrong = file != NULL ? read_password(file) : strerror(errno);
  if (file != NULL)
    (void)fclose(file);
  if (wrong != NULL)
    complain("password file %s: %s", common.password_file, wrong);
  return wrong == NULL;
}

bool config_read(void) {
  if (!read_environment() || !read_files())
    return false;
  if (common.timeout_ms == 0)
    common.timeout_ms = TIMEOUT_MS;
  return common.password_file == NULL || read_password_file();
}

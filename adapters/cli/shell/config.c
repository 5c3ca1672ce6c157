#include "shell/config.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shell/common.h"
#include "shell/options.h"
#include "ui/out.h"
#include "ui/text.h"

#define PATH_LEN_MAX 4096
#define LINE_BYTES_MAX ((size_t)70000) /* a password has at most 65,536 bytes */
#define ENV_NAME_MAX 64
#define FILE_BYTES_MAX ((size_t)1 << 20)
#define NO_MEMORY "cannot be stored: out of memory"

/* All settings. */
static const option_set_t settings = {{common_server_options, common_secrets}, 2};

/* Returns true if an earlier source has set the option. A password and a password file are one
 * setting. */
static bool is_set_before(const option_t *option, int source) {
  bool password = option->to.text == &common.password || option->to.text == &common.password_file;
  int before = option_source(option);
  return (before != FROM_NOWHERE && before < source) ||
         (password && before == FROM_NOWHERE &&
          (common.password != NULL || common.password_file != NULL));
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
    if (value == NULL || *value == '\0' || o->kind == OPTION_FLAG ||
        is_set_before(o, FROM_ENVIRONMENT))
      continue;
    const char *wrong = set_from_environment(o, value);
    if (wrong != NULL) {
      complain("%s %s", name, wrong);
      return false;
    }
    option_mark(o, FROM_ENVIRONMENT);
  }
  return true;
}

/* ---- files ---- */

typedef struct reading {
  const char *path;
  bool open_to_all;
  unsigned line;
  int source;
} reading_t;

bool url_has_password(const char *url) {
  const char *rest = strstr(url, "://");
  if (rest == NULL)
    return false;
  rest += 3;
  size_t len = strcspn(rest, "@/");
  return rest[len] == '@' && memchr(rest, ':', len) != NULL;
}

/* A byte 0 would hide the rest of its line. */
static bool refuse_zero(const char *path, const char *text, size_t at) {
  unsigned line = 1;
  for (size_t i = 0; i < at; i++)
    line += text[i] == '\n';
  complain("%s:%u: has a byte 0", path, line);
  return false;
}

/* Read an open file to its end, at most max bytes, and terminate the text. */
static bool read_all(FILE *file, const char *path, size_t max, char *out) {
  size_t len = fread(out, 1, max + 1, file);
  const char *zero = memchr(out, '\0', len);
  if (ferror(file))
    complain("%s: %s", path, strerror(errno));
  else if (zero != NULL)
    return refuse_zero(path, out, (size_t)(zero - out));
  else if (len > max)
    complain("%s: is longer than %zu bytes", path, max);
  out[len] = '\0';
  return !ferror(file) && len <= max;
}

static bool refuse_open(const char *path) {
  complain("%s: has a password, and all users can read it: run chmod o= on it", path);
  return false;
}

static bool wrong_line(const reading_t *r, const char *name, const char *what) {
  complain("%s:%u: %s%s%s", r->path, r->line, name, *name != '\0' ? " " : "", what);
  return false;
}

/* Returns true for options that a file may set: not --config, and not flags. */
static bool is_setting(const option_t *option) {
  return option->kind != OPTION_FLAG && option->to.text != &common.config;
}

static bool set_from_file(reading_t *r, const option_t *option, const char *value) {
  bool secret = option->to.text == &common.password ||
                (option->to.texts == &common.urls && url_has_password(value));
  if (secret && r->open_to_all)
    return refuse_open(r->path);
  bool again = option_source(option) == r->source;
  if (again && option->kind != OPTION_TEXTS)
    return wrong_line(r, option->name, "is set twice");
  if (!again && is_set_before(option, r->source))
    return true;
  const char *copy = text_keep(value, strlen(value));
  const char *wrong = copy == NULL ? NO_MEMORY : option_set_value(option, copy);
  if (wrong != NULL)
    return wrong_line(r, option->name, wrong);
  option_mark(option, r->source);
  return true;
}

static bool read_line(reading_t *r, char *line) {
  static const char spaces[] = " \t\r\n";
  size_t len = strlen(line);
  while (len > 0 && strchr(spaces, line[len - 1]) != NULL)
    line[--len] = '\0';
  line += strspn(line, spaces);
  if (*line == '\0' || *line == '#')
    return true;
  size_t name_len = strcspn(line, "= \t");
  char *value = line + name_len + strspn(line + name_len, " \t");
  if (*value != '=')
    return wrong_line(r, "", "not a line `name = value`");
  value += 1 + strspn(value + 1, " \t");
  const option_t *option = option_find(&settings, line, name_len);
  if (option == NULL || !is_setting(option))
    return wrong_line(r, "", "there is no such setting");
  if (*value == '\0')
    return wrong_line(r, option->name, "has no value");
  return set_from_file(r, option, value);
}

static bool read_lines(reading_t *r, char *text) {
  for (char *line = text, *next; *line != '\0'; line = next) {
    size_t len = strcspn(line, "\n");
    next = line + len + (line[len] == '\n');
    line[len] = '\0';
    r->line++;
    if (len > LINE_BYTES_MAX)
      return wrong_line(r, "", "is too long");
    if (!read_line(r, line))
      return false;
  }
  return true;
}

static bool read_settings(FILE *file, const char *path, int source) {
  static char text[FILE_BYTES_MAX + 2];
  struct stat status;
  if (fstat(fileno(file), &status) != 0 || !S_ISREG(status.st_mode)) {
    complain("%s: is not a regular file", path);
    return false;
  }
  reading_t r = {.path = path, .open_to_all = (status.st_mode & S_IROTH) != 0, .source = source};
  return read_all(file, path, FILE_BYTES_MAX, text) && read_lines(&r, text);
}

/* needed: a missing file is an error. With O_NONBLOCK the open() of a pipe without a writer
 * returns, and the pipe is refused. */
static bool read_file(const char *path, bool needed, int source) {
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;
  if (file == NULL) {
    bool wrong = needed || (errno != ENOENT && errno != ENOTDIR && errno != EACCES);
    if (wrong)
      complain("%s: %s", path, strerror(errno));
    return !wrong;
  }
  bool well = read_settings(file, path, source);
  (void)fclose(file);
  return well;
}

static bool read_files(void) {
  char path[PATH_LEN_MAX];
  if (common.config != NULL)
    return read_file(common.config, true, FROM_FILES);
  const char *folder = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
  int len = 0;
  if (folder != NULL && *folder == '/')
    len = snprintf(path, sizeof path, "%s/belay/config", folder);
  else if (home != NULL && *home != '\0')
    len = snprintf(path, sizeof path, "%s/.config/belay/config", home);
  if (len > 0 && (size_t)len < sizeof path && !read_file(path, false, FROM_FILES))
    return false;
  return read_file("/etc/belay/config", false, FROM_FILES + 1);
}

/* ---- passwords ---- */

/* Read the first line of the password file. A pipe has no mode that other users could use. */
static bool read_password(void) {
  static char text[LINE_BYTES_MAX + 2];
  const char *path = common.password_file;
  struct stat status;
  FILE *file = fopen(path, "re");
  if (file == NULL || fstat(fileno(file), &status) != 0) {
    complain("the password file cannot be read: %s", strerror(errno));
    return false;
  }
  bool open_to_all = S_ISREG(status.st_mode) && (status.st_mode & S_IROTH) != 0;
  bool well = open_to_all ? refuse_open(path) : read_all(file, path, LINE_BYTES_MAX, text);
  (void)fclose(file);
  text[strcspn(text, "\r\n")] = '\0';
  if (well && text[0] == '\0')
    complain("there is no password in the password file");
  common.password = text;
  return well && text[0] != '\0';
}

bool config_read(void) {
  if (!read_environment() || !read_files())
    return false;
  return common.password_file == NULL || common.password != NULL || read_password();
}

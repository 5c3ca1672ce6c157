/* Permissions without a server: the width of a field, and the names of its values. */
#include <string.h>

#include "data/permission/permission.h"

#define NAME_MAX_LEN ((size_t)128)

unsigned belay_permission_width(uint64_t levels) {
  if (levels == 0 || levels > UINT64_C(1) << BELAY_PERMISSION_WIDTH_MAX)
    return 0;
  unsigned width = 1;
  while (UINT64_C(1) << width < levels)
    width++;
  return width;
}

const char *belay_permission_name(const belay_permission_t *permission, uint64_t value) {
  const belay__names_t *names = permission == NULL ? NULL : permission->names;
  const char *text = names != NULL && value < names->count ? names->text[value] : NULL;
  return text != NULL ? text : "unknown";
}

/* ---- options ------------------------------------------------------------------------------------------- */

static int check_width(belay_t *belay, belay_permission_options_t *o) {
  uint64_t levels = o->levels;
  if (levels == 0)
    levels = o->width != 0 ? UINT64_C(1) << o->width : o->names_len;
  if (levels == 0)
    return belay__invalid(belay, "width: neither it nor levels nor names are given");
  unsigned needed = belay_permission_width(levels);
  if (needed == 0)
    return belay__invalid(belay, "levels: more than 2^63");
  if (o->width == 0)
    o->width = needed;
  if (needed > o->width)
    return belay__invalid(belay, "levels: more than fit into width");
  if (o->names_len > levels)
    return belay__invalid(belay, "names: more than there are values");
  return 0;
}

static int check_names(belay_t *belay, const belay_permission_options_t *o) {
  if (o->names_len > BELAY_PERMISSION_NAMES_MAX || (o->names_len > 0 && o->names == NULL))
    return belay__invalid(belay, "names: NULL, or more than 65536 of them");
  for (size_t i = 0; i < o->names_len; i++)
    if (o->names[i] != NULL && strnlen(o->names[i], NAME_MAX_LEN + 1) > NAME_MAX_LEN)
      return belay__invalid(belay, "names: one of more than 128 bytes");
  return 0;
}

int belay__permission_check_options(belay_t *belay, belay_permission_options_t *options) {
  int error = check_names(belay, options);
  if (error == 0)
    error = check_width(belay, options);
  if (error != 0)
    return error;
  uint64_t fields = BELAY_PERMISSION_BITS_MAX / options->width;
  if (options->max_index >= fields)
    return belay__invalid(belay, "max_index: not from 0 to %llu", (unsigned long long)fields - 1);
  return 0;
}

/* ---- names --------------------------------------------------------------------------------------------- */

bool belay__permission_copy_names(belay_t *belay, const belay_permission_options_t *options,
                                  belay__names_t **out) {
  belay__names_t *names = *out = NULL;
  size_t n = options->names_len, size = sizeof *names + n * sizeof names->text[0];
  if (n == 0)
    return true;
  for (size_t i = 0; i < n; i++)
    size += options->names[i] == NULL ? 0 : strlen(options->names[i]) + 1;
  names = *out = belay__alloc(belay, size);
  if (names == NULL)
    return false;
  names->size = size;
  names->count = n;
  char *at = (char *)&names->text[n];
  for (size_t i = 0; i < n; i++) {
    names->text[i] = NULL;
    if (options->names[i] == NULL)
      continue;
    size_t len = strlen(options->names[i]) + 1;
    names->text[i] = memcpy(at, options->names[i], len);
    at += len;
  }
  return true;
}

void belay__permission_free_names(belay_t *belay, belay__names_t *names) {
  if (names != NULL)
    belay__free(belay, names, names->size);
}

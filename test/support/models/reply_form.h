/* Whether a reply has the form that is documented; the forms are those of
 * support/models/script_rows.h. */
#ifndef TEST_SUPPORT_MODELS_REPLY_FORM_H
#define TEST_SUPPORT_MODELS_REPLY_FORM_H

#include <stdbool.h>

#include "support/servers/resp.h"

bool reply_has_form(const resp_t *reply, const char *form);

/* The reply in words, at most size - 1 bytes of them. Returns out. */
const char *reply_in_words(const resp_t *reply, char *out, size_t size);

#endif /* TEST_SUPPORT_MODELS_REPLY_FORM_H */

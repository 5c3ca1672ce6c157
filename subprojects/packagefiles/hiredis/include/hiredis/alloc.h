/* An installed hiredis is included as <hiredis/alloc.h>; so is this one. */
#include "../../alloc.h"

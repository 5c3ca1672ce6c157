/* An installed hiredis is included as <hiredis/adapters/libuv.h>; so is this one. */
#include "../../../adapters/libuv.h"

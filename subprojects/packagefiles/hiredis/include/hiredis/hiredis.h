/* An installed hiredis is included as <hiredis/hiredis.h>; so is this one. */
#include "../../hiredis.h"

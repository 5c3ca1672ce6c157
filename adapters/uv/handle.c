#include "uv/handle.h"

static void on_close(uv_handle_t *any) {
  belay__uv_handle_t *handle = (belay__uv_handle_t *)any;
  handle->closed(handle);
}

static void on_spare_close(uv_handle_t *spare) {
  belay__uv_handle_t *handle = spare->data;
  if (--handle->turns > 0) {
    uv_idle_init(spare->loop, &handle->spare);
    uv_close((uv_handle_t *)&handle->spare, on_spare_close);
    return;
  }
  handle->closed(handle);
}

void belay__uv_handle_close(belay__uv_handle_t *handle,
                            void (*closed)(belay__uv_handle_t *handle)) {
  handle->closed = closed;
  if (!uv_is_closing(&handle->u.any)) {
    uv_close(&handle->u.any, on_close);
    return;
  }
  handle->turns = 2;
  uv_idle_init(handle->u.any.loop, &handle->spare);
  handle->spare.data = handle;
  uv_close((uv_handle_t *)&handle->spare, on_spare_close);
}

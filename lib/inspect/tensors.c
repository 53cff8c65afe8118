/* Tensors of a target, for probing.h: lib/tensor over the target's memory. */
#include "inspect/target.h"
#include "tensor/tensor.h"

bool prb_tensor_take(struct prb_target *target, prb_addr object, struct prb_tensor *out,
                     struct prb_error *err)
{
    struct prb_objects *objects = target->runtimes[0].objects;
    if (prb_proc_live(target->proc))
        prb_objects_clear(objects);
    return prb_array_read(objects, object, out, err);
}

bool prb_tensor_take_native(struct prb_target *target, prb_addr impl, struct prb_tensor *out,
                            struct prb_error *err)
{
    struct prb_objects *objects = target->runtimes[0].objects;
    if (prb_proc_live(target->proc))
        prb_objects_clear(objects);
    return prb_torch_impl(objects, impl, out, err);
}

bool prb_tensor_elements(struct prb_target *target, const struct prb_tensor *tensor, int64_t start,
                         size_t count, struct prb_element *out, struct prb_error *err)
{
    return prb_tensor_elements_in(target->mem, tensor, start, count, out, err);
}

char *prb_tensor_text(struct prb_target *target, const struct prb_tensor *tensor, size_t limit,
                      struct prb_error *err)
{
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    if (!prb_tensor_text_in(target->mem, tensor, limit, &text, err))
        return NULL;
    char *out = prb_buf_steal(&text);
    return out ? out : PRB_NULL(prb_nomem(err));
}

bool prb_tensor_statistics(struct prb_target *target, const struct prb_tensor *tensor,
                           const struct prb_statistics_options *options, struct prb_statistics *out,
                           struct prb_error *err)
{
    return prb_tensor_statistics_in(target->mem, tensor, options, out, err);
}

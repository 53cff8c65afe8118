/*
 * Threads, frames and code objects of a damaged target: a synthetic interpreter of one layout with
 * words of it overwritten.  Input: one byte for the version, then records of page (1), word in it
 * (1), how (1) and value (8 bytes).
 */
#include <stdint.h>
#include <stdio.h>

#include "../unit/stack_image.h"
#include "damage.h"

static void look(struct prb_py *py)
{
    struct prb_error err;
    PRB_AUTO(prb_sampler) struct prb_sampler *sampler = prb_sampler_new(py, NULL, &err);
    IMAGE_CHECK(sampler);
    prb_sampler_want_anchors(sampler, true);
    const struct prb_raw_stacks *stacks = prb_sampler_take(sampler, 2, &err);
    for (size_t i = 0; stacks && i < stacks->thread_count && i < 16; i++) {
        const struct prb_raw_thread *thread = &stacks->threads[i];
        for (size_t k = 0; k < thread->frame_count && k < 16; k++) {
            const struct prb_code_object *code =
                prb_code_get(py, thread->frames[k].code, true, &err);
            if (code)
                prb_code_position(py, code, thread->frames[k].instruction);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    struct stack_image s;
    stack_image_init(&s, data[0] % (sizeof image_versions / sizeof *image_versions));
    damage(&s.f.image, data + 1, size - 1);
    look(&s.f.image.py);
    stack_image_deinit(&s);
    return 0;
}

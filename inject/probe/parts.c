/* Calling the parts: see part.h. */
#include "inject/probe/part.h"

#include <stddef.h>

#include "inject/probe/server/request.h"

static const struct prb_probe_part *const parts[] = {
#define PART(name) &prb_probe_part_##name,
#include "inject/probe/parts.def"
#undef PART
};
enum { COUNT = sizeof parts / sizeof *parts };

#define EACH(function, ...)                                                                        \
    for (int i = 0; i < COUNT; i++)                                                                \
        if (parts[i]->function)                                                                    \
    parts[i]->function(__VA_ARGS__)

void prb_parts_configure(void) { EACH(configure); }

void prb_parts_configure_alone(void)
{
    for (int i = 0; i < COUNT; i++)
        if (parts[i]->alone && parts[i]->configure)
            parts[i]->configure();
}

bool prb_parts_accept(const char *key, const char *value, struct prb_error *err)
{
    for (int i = 0; i < COUNT; i++)
        if (parts[i]->accepts && !parts[i]->accepts(key, value, err))
            return false;
    return true;
}

void prb_parts_detach(const struct prb_py_api *py) { EACH(detach, py); }
void prb_parts_closing(const struct prb_py_api *py) { EACH(closing, py); }
void prb_parts_end(void) { EACH(end); }
void prb_parts_forked(void) { EACH(forked); }
void prb_parts_status(struct prb_buf *fields) { EACH(status, fields); }
void prb_parts_functions(struct prb_probe_functions *out) { EACH(functions, out); }

unsigned prb_parts_on(void)
{
    unsigned on = 0;
    for (int i = 0; i < COUNT; i++)
        if (parts[i]->is_on && parts[i]->is_on())
            on |= 1u << i;
    return on;
}

void prb_parts_follow(unsigned before, uint32_t wait_ms)
{
    unsigned now = prb_parts_on();
    for (int i = 0; i < COUNT; i++)
        if (((now ^ before) & 1u << i) && parts[i]->follow)
            parts[i]->follow(now & 1u << i, wait_ms);
}

const struct prb_request_kind *prb_parts_request(uint16_t type)
{
    for (int i = 0; i < COUNT; i++)
        for (const struct prb_request_kind *const *one = parts[i]->requests; one && *one; one++)
            if ((*one)->type == type)
                return *one;
    return NULL;
}

/* Numbers of PyTorch's CUDA allocator: see torch_allocator.h. */
#include "table/shared/torch_allocator.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "inject/control.h"
#include "inspect/target.h"
#include "table/shared/duration.h"

#define LIBRARY "libc10_cuda.so"
#define GIL_S 0.5
#define ANSWER_S 2.0

PRB_DEFINE_AUTO_PTR(prb_control, struct prb_control, prb_control_close)

/* A lock and counters of the allocator: no call of CUDA, which could end a capture or wait. */
static const char code[] =
    "(lambda torch: None if not torch or not torch.cuda.is_initialized() else [sum(one[what]['all']"
    "[which] for one in map(torch.cuda.memory_stats_as_nested_dict, "
    "range(torch.cuda.device_count())) "
    "if one) for what, which in (('allocated_bytes', 'current'), ('reserved_bytes', 'current'), "
    "('allocated_bytes', 'peak'))])(__import__('sys').modules.get('torch'))";

static bool has_cuda(struct prb_proc *proc)
{
    PRB_AUTO(prb_maps) struct prb_maps maps = {0};
    if (!prb_proc_maps_now(proc, &maps, NULL))
        return false;
    for (size_t i = 0; i < maps.count; i++)
        if (strcmp(prb_base_name(maps.items[i].path), LIBRARY) == 0)
            return true;
    return false;
}

static bool is_over(void *rows) { return !prb_rows_in_time(rows); }

static bool ask(struct prb_rows *rows, pid_t pid, struct prb_torch_allocator *out,
                struct prb_error *err)
{
    PRB_AUTO(prb_control) struct prb_control *control = prb_control_open(pid, err);
    const struct prb_eval_options options = {.code = code,
                                             .code_len = sizeof code - 1,
                                             .name_space = "",
                                             .gil_timeout = GIL_S,
                                             .timeout = ANSWER_S,
                                             .cancelled = is_over,
                                             .context = rows};
    struct prb_eval_result result = {0};
    long long allocated = -1, reserved = -1, peak = -1;
    if (!control || !prb_control_eval(control, &options, &result, err))
        return false;
    bool good = result.none ||
                (!result.raised && result.text &&
                 sscanf(result.text, "[%lld, %lld, %lld]", &allocated, &reserved, &peak) == 3);
    if (good)
        *out = (struct prb_torch_allocator){allocated, reserved, peak};
    else
        prb_fail(err, PRB_CORRUPT, "this PyTorch has no such numbers");
    prb_eval_result_free(&result);
    return good;
}

void prb_torch_allocator_ask(struct prb_rows *rows, struct prb_torch_allocator *out)
{
    struct prb_target *target = prb_rows_target(rows);
    struct prb_error err = {0};
    pid_t pid = (pid_t)target->info.pid;
    *out = (struct prb_torch_allocator){-1, -1, -1};
    if (!has_cuda(target->proc) || ask(rows, pid, out, &err))
        return;
    if (err.code == PRB_NOT_FOUND)
        prb_rows_warn(rows,
                      "torch_allocated, torch_reserved and torch_peak are told by a probe, and "
                      "process %d has none: probing %d inject",
                      (int)pid, (int)pid);
    else
        prb_rows_warn(rows, "PyTorch's CUDA allocator: %s", err.text);
}

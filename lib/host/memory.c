/* How much memory a process has: see memory.h. */
#include "host/memory.h"

#include "proc/stat.h"

#define KB 1024

static int64_t number_of(const struct prb_buf *text, const char *key)
{
    int64_t number;
    return prb_status_number(text, key, &number) ? number : -1;
}

static int64_t bytes_of(const struct prb_buf *text, const char *key)
{
    int64_t kb;
    return prb_status_number(text, key, &kb) && kb >= 0 && kb < INT64_MAX / KB ? kb * KB : -1;
}

/* Not known where the kernel does not let us: it is no error. */
static void read_share(struct prb_proc *proc, struct prb_memory_usage *out)
{
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    if (!prb_proc_text(proc, "smaps_rollup", &text, NULL))
        return;
    int64_t clean = bytes_of(&text, "Private_Clean"), dirty = bytes_of(&text, "Private_Dirty");
    out->proportional = bytes_of(&text, "Pss");
    out->unique = clean < 0 || dirty < 0 ? -1 : clean + dirty;
}

bool prb_memory_usage_read(struct prb_proc *proc, bool share, int *kept,
                           struct prb_memory_usage *out, struct prb_error *err)
{
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    if (!(kept && prb_proc_line(proc, "status", kept, &text)) &&
        !prb_proc_text(proc, "status", &text, err))
        return false;
    *out = (struct prb_memory_usage){
        .resident = bytes_of(&text, "VmRSS"),
        .anon = bytes_of(&text, "RssAnon"),
        .file = bytes_of(&text, "RssFile"),
        .shared = bytes_of(&text, "RssShmem"),
        .swap = bytes_of(&text, "VmSwap"),
        .peak = bytes_of(&text, "VmHWM"),
        .proportional = -1,
        .unique = -1,
        .voluntary = number_of(&text, "voluntary_ctxt_switches"),
        .forced = number_of(&text, "nonvoluntary_ctxt_switches"),
    };
    if (share)
        read_share(proc, out);
    return true;
}

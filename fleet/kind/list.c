/* What process each rank is.  args: children (the Python processes below it, too).  result: struct
 * prb_rank_objects, the objects as prb_process_list_json has them. */
#include <stdlib.h>

#include "base/error.h"
#include "fleet/kind/answers.h"
#include "format/format.h"
#include "inject/control.h"

PRB_DEFINE_AUTO_PTR(prb_process_list, struct prb_process_list, prb_process_list_free)

#define GENERATIONS 64

static bool is_below(const struct prb_process_list *all, const struct prb_process *one, pid_t pid)
{
    for (int i = 0; one && i < GENERATIONS; i++) {
        if (one->pid == pid)
            return true;
        one = prb_process_find(all, one->ppid);
    }
    return false;
}

static bool of_rank(struct prb_fleet_seat *seat, const json_t *args, struct prb_buf *out,
                    struct prb_error *err)
{
    bool children = json_is_true(json_object_get(args, "children"));
    PRB_AUTO(prb_process_list) struct prb_process_list *all = prb_process_list(err);
    PRB_AUTO_FREE struct prb_process *items = all ? calloc(all->count + 1, sizeof *items) : NULL;
    struct prb_process_list kept = {items, 0};
    if (!all || !items)
        return all ? prb_nomem(err) : false;
    for (size_t i = 0; i < all->count; i++)
        if (children ? is_below(all, &all->items[i], seat->member.pid)
                     : all->items[i].pid == seat->member.pid)
            items[kept.count++] = all->items[i];
    if (!kept.count)
        return prb_fail(err, PRB_NOT_FOUND, "process %d is not to be seen", (int)seat->member.pid);
    PRB_AUTO_FREE char *text = NULL;
    size_t len = 0;
    FILE *file = open_memstream(&text, &len);
    if (!file)
        return prb_nomem(err);
    prb_process_list_json(&kept, prb_control_seen, file);
    if (fclose(file) != 0 || !text)
        return prb_nomem(err);
    prb_buf_add(out, text, len);
    return true;
}

static bool at_root(const json_t *args, const struct prb_fleet_reply *reply, void *result,
                    struct prb_error *err)
{
    (void)args;
    return prb_objects_of_host(result, reply, err);
}

const struct prb_fleet_kind prb_fleet_kind_list = {
    .name = "list",
    .budget = 5,
    .of_rank = of_rank,
    .at_root = at_root,
};

/*
 * A snapshot of each rank, in a file on its host.  args: path (stuck.snap of rank 3 is
 * stuck.rank3.snap), native, locals, stop; from an agent: as_user.  result: struct prb_rank_objects: path, bytes, moved.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "fleet/kind/answers.h"
#include "inspect/snapshot.h"

#define PATH_MOST 4000

static bool has(const json_t *args, const char *key)
{
    return json_is_true(json_object_get(args, key));
}

static char *path_of(const char *path, int rank)
{
    const char *name = strrchr(path, '/'), *dot = strrchr(name ? name : path, '.');
    int stem = dot && dot > (name ? name + 1 : path) ? (int)(dot - path) : (int)strlen(path);
    char *text;
    return asprintf(&text, "%.*s.rank%d%s", stem, path, rank, path + stem) < 0 ? NULL : text;
}

/* Who asks an agent of root names the path, and gets what the rank's user may write.  *as_out: NULL:
 * nobody else's rights. */
static bool rights_for(const json_t *args, pid_t pid, struct prb_ids *ids,
                       const struct prb_ids **as_out, struct prb_error *err)
{
    *as_out = has(args, "as_user") && geteuid() == 0 ? ids : NULL;
    return !*as_out || prb_ids_of(pid, ids) ||
           prb_fail(err, PRB_GONE, "process %d has ended", (int)pid);
}

static bool of_rank(struct prb_fleet_seat *seat, const json_t *args, struct prb_buf *out,
                    struct prb_error *err)
{
    const struct prb_snapshot_options options = {
        .native = has(args, "native"), .locals = has(args, "locals"), .stop = has(args, "stop")};
    const char *path = json_string_value(json_object_get(args, "path"));
    size_t moved = 0;
    uint64_t bytes = 0;
    if (!path || *path != '/' || strlen(path) > PATH_MOST)
        return prb_fail(err, PRB_USAGE, "a snapshot needs the whole path of a file");
    struct prb_target *target = prb_fleet_seat_target(seat, err);
    PRB_AUTO_FREE char *own = path_of(path, seat->member.rank);
    struct prb_ids ids;
    const struct prb_ids *as;
    if (!target || !own)
        return target ? prb_nomem(err) : false;
    if (!rights_for(args, seat->member.pid, &ids, &as, err))
        return false;
    if (!prb_snapshot_write_as(target, own, as, &options, &bytes, &moved, err)) {
        if (err && err->code == PRB_NOT_FOUND) /* the folder: the rank is not gone */
            err->code = PRB_IO;
        return false;
    }
    PRB_AUTO(json_t)
    json_t *list = json_pack("[{s:s, s:I, s:I}]", "path", own, "bytes", (json_int_t)bytes, "moved",
                             (json_int_t)moved);
    PRB_AUTO_FREE char *text = list ? json_dumps(list, JSON_COMPACT) : NULL;
    if (!text)
        return prb_fail(err, PRB_USAGE, "the path is not UTF-8");
    prb_buf_adds(out, text);
    return true;
}

static bool at_root(const json_t *args, const struct prb_fleet_reply *reply, void *result,
                    struct prb_error *err)
{
    (void)args;
    return prb_objects_of_host(result, reply, err);
}

const struct prb_fleet_kind prb_fleet_kind_snapshot = {
    .name = "snapshot",
    .needs = PRB_FLEET_CONTROL,
    .budget = 30,
    .of_rank = of_rank,
    .at_root = at_root,
};

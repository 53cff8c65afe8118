/* Inside the child that looks at one rank: child.h. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "fleet/host/child.h"

#define REQUEST_MAX ((uint64_t)4 << 20)

struct prb_target *prb_fleet_seat_target(struct prb_fleet_seat *seat, struct prb_error *err)
{
    if (!seat->target)
        seat->target = prb_target_open_pid(seat->member.pid, err);
    return seat->target;
}

bool prb_fleet_seat_lives(const struct prb_fleet_seat *seat)
{
    return kill(seat->member.pid, 0) == 0 || errno != ESRCH;
}

struct prb_db *prb_fleet_seat_db(struct prb_fleet_seat *seat, struct prb_error *err)
{
    if (!seat->db && prb_fleet_seat_target(seat, err))
        seat->db = prb_db_open(seat->target, err);
    return seat->db;
}

/* The next question may find it well. */
static void close_seat(struct prb_fleet_seat *seat)
{
    prb_db_close(seat->db); /* it borrows the target */
    prb_target_close(seat->target);
    seat->db = NULL;
    seat->target = NULL;
}

static enum prb_coverage_state state_of(const struct prb_error *why)
{
    return why->code == PRB_GONE || why->code == PRB_NOT_FOUND ? PRB_COVERAGE_GONE
                                                               : PRB_COVERAGE_FAILED;
}

static bool look(struct prb_fleet_seat *seat, const struct prb_fleet_request *request,
                 struct prb_buf *out, struct prb_error *err)
{
    PRB_AUTO(prb_buf) struct prb_buf part = {0};
    struct prb_error why = {0};
    double begun = prb_clock_s();
    struct prb_fleet_state state = {.rank = seat->member.rank, .pid = seat->member.pid};
    struct prb_fleet_reply reply = {
        .clock = prb_clock_epoch_s(), .states = &state, .state_count = 1};
    struct prb_fleet_part whole = {.rank = seat->member.rank};
    seat->budget = request->budget;
    seat->max_bytes = request->max_bytes;
    bool ok = request->kind->of_rank(seat, request->args, &part, &why);
    state.ms = (prb_clock_s() - begun) * 1000;
    if (ok && !prb_buf_ok(&part))
        ok = prb_nomem(&why);
    if (ok && part.len > request->max_bytes)
        ok = prb_fail(&why, PRB_TIMEOUT,
                      "its part has %zu bytes, and %zu are allowed (probing.cluster.host_bytes)",
                      part.len, request->max_bytes);
    if (ok) {
        state.state = PRB_COVERAGE_ANSWERED;
        whole.data = part.data;
        whole.len = part.len;
        reply.parts = &whole;
        reply.part_count = 1;
    } else {
        state.state = state_of(&why);
        snprintf(state.reason, sizeof state.reason, "%s", why.text);
        close_seat(seat);
    }
    return prb_fleet_reply_pack(&reply, request->id, out, err);
}

static bool read_exactly(int fd, void *out, size_t len)
{
    for (size_t done = 0; done < len;) {
        ssize_t got = read(fd, (char *)out + done, len - done);
        if (got > 0)
            done += (size_t)got;
        else if (got == 0 || errno != EINTR)
            return false;
    }
    return true;
}

static bool serve_one(struct prb_fleet_seat *seat, int fd)
{
    uint64_t size;
    struct prb_error err = {0};
    PRB_AUTO(prb_fleet_request) struct prb_fleet_request request = {0};
    PRB_AUTO(prb_buf) struct prb_buf reply = {0};
    if (!read_exactly(fd, &size, sizeof size) || size > REQUEST_MAX)
        return false;
    PRB_AUTO_FREE char *text = malloc(size + 1);
    if (!text || !read_exactly(fd, text, size) ||
        !prb_fleet_request_parse(text, size, &request, &err))
        return false;
    prb_buf_add(&reply, &size, sizeof size); /* room */
    if (!look(seat, &request, &reply, &err) || !prb_buf_ok(&reply))
        return false;
    size = reply.len - sizeof size;
    memcpy(reply.data, &size, sizeof size);
    return prb_write_all(fd, reply.data, reply.len);
}

void prb_fleet_child_serve(const struct prb_fleet_member *member, int fd)
{
    struct prb_fleet_seat seat = {.member = *member};
    while (serve_one(&seat, fd))
        continue;
}

/*
 * The timeline of a profile: intervals as variable-length numbers (seven bits a byte, least
 * significant first), some ten bytes each.  What is too much for memory goes to a file without a
 * name, which ends with this process.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#include "base/file.h"
#include "profile/profile.h"

static void add_number(struct prb_buf *out, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        prb_buf_addc(out, (char)(value | 0x80));
    prb_buf_addc(out, (char)value);
}

static uint64_t zigzag(int64_t value) { return (uint64_t)value << 1 ^ (uint64_t)(value >> 63); }

static int64_t unzigzag(uint64_t value) { return (int64_t)(value >> 1) ^ -(int64_t)(value & 1); }

static int unnamed_file(void)
{
    const char *folder = getenv("TMPDIR");
    int fd = open(folder && *folder ? folder : "/var/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    return fd >= 0 ? fd : open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
}

static void spill(struct prb_timeline *timeline)
{
    if (timeline->fd < 0)
        timeline->fd = unnamed_file();
    if (timeline->fd < 0 ||
        !prb_write_all(timeline->fd, timeline->bytes.data, timeline->bytes.len)) {
        timeline->lost = true;
        return;
    }
    timeline->spilled += timeline->bytes.len;
    timeline->bytes.len = 0;
}

void prb_timeline_add(struct prb_timeline *timeline, const struct prb_profile_interval *interval,
                      uint64_t start, uint64_t end)
{
    if (timeline->lost)
        return;
    struct prb_buf *out = &timeline->bytes;
    add_number(out, interval->thread);
    add_number(out, interval->node);
    add_number(out, interval->state);
    add_number(out, zigzag((int64_t)(start - timeline->last_start)));
    add_number(out, end - start);
    add_number(out, interval->samples);
    add_number(out, interval->ns);
    timeline->last_start = start;
    if (out->len >= PRB_TIMELINE_KEPT)
        spill(timeline);
}

void prb_timeline_deinit(struct prb_timeline *timeline)
{
    prb_buf_deinit(&timeline->bytes);
    if (timeline->fd >= 0)
        close(timeline->fd);
}

/* ---- reading ---- */

struct reading {
    const uint8_t *at, *end;
    uint64_t start;
};

static uint64_t next_number(struct reading *reading)
{
    uint64_t value = 0;
    for (unsigned shift = 0; reading->at < reading->end && shift < 64; shift += 7) {
        uint8_t byte = *reading->at++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            break;
    }
    return value;
}

static bool read_stays(struct reading *reading, const uint8_t *bytes, size_t len,
                       prb_profile_interval_fn *each, void *context)
{
    reading->at = bytes;
    reading->end = bytes + len;
    while (reading->at < reading->end) {
        struct prb_profile_interval interval = {0};
        interval.thread = (uint32_t)next_number(reading);
        interval.node = (uint32_t)next_number(reading);
        interval.state = (unsigned)next_number(reading);
        reading->start += (uint64_t)unzigzag(next_number(reading));
        interval.start = 1e-9 * (double)reading->start;
        interval.end = interval.start + 1e-9 * (double)next_number(reading);
        interval.samples = next_number(reading);
        interval.ns = next_number(reading);
        if (!each(context, &interval))
            return false;
    }
    return true;
}

bool prb_profile_each_interval(const struct prb_profile *profile, prb_profile_interval_fn *each,
                               void *context, struct prb_error *err)
{
    const struct prb_timeline *timeline = &((const struct prb_profile_box *)profile)->timeline;
    struct reading reading = {0};
    if (!timeline->wanted)
        return prb_fail(err, PRB_USAGE, "this profile has no timeline");
    if (timeline->spilled) {
        void *map = mmap(NULL, timeline->spilled, PROT_READ, MAP_PRIVATE, timeline->fd, 0);
        if (map == MAP_FAILED)
            return prb_fail_sys(err, errno, "the timeline's file");
        bool on = read_stays(&reading, map, timeline->spilled, each, context);
        munmap(map, timeline->spilled);
        if (!on)
            return true;
    }
    if (timeline->bytes.len)
        read_stays(&reading, (const uint8_t *)timeline->bytes.data, timeline->bytes.len, each,
                   context);
    return true;
}

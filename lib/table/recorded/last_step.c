/* Steps of a job, read from the ring of its probe as they are written (last_step.h). */
#include "table/recorded/last_step.h"

#include <fcntl.h>
#include <string.h>

#include "base/clock.h"
#include "ring/ring.h"

#define RING "torch_step_timing.ring"
#define COLUMN "step"
#define AGAIN 5.0                          /* s between two looks for a ring that is not there */
#define READ_BYTES_MAX ((uint64_t)4 << 20) /* at once */

struct prb_step_reader {
    pid_t pid;
    uint64_t started;
    double next; /* s, monotonic: when to look for the ring */
    struct prb_ring_reader *ring;
    struct prb_ring_mark mark;
    size_t column;
    int64_t last;
};

struct prb_step_reader *prb_step_reader_new(pid_t pid, uint64_t started)
{
    struct prb_step_reader *reader = calloc(1, sizeof *reader);
    if (reader) {
        reader->pid = pid;
        reader->started = started;
        reader->last = -1;
    }
    return reader;
}

void prb_step_reader_free(struct prb_step_reader *reader)
{
    if (!reader)
        return;
    if (reader->ring)
        prb_ring_close(reader->ring);
    prb_ring_mark_deinit(&reader->mark);
    free(reader);
}

static bool open_ring(struct prb_step_reader *reader)
{
    char data[PRB_RING_PATH_MAX], path[PRB_RING_PATH_MAX + 64];
    size_t count = 0;
    double now = prb_clock_s();
    if (now < reader->next || !prb_ring_data_dir(data, NULL))
        return false;
    reader->next = now + AGAIN;
    snprintf(path, sizeof path, "%s/%d-%llu", data, (int)reader->pid,
             (unsigned long long)reader->started);
    PRB_AUTO_FD int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    struct prb_ring_reader *ring = folder >= 0 ? prb_ring_open(folder, RING, NULL) : NULL;
    if (!ring)
        return false;
    const struct prb_ring_column *columns = prb_ring_columns(ring, &count);
    for (size_t i = 0; i < count; i++)
        if (strcmp(columns[i].name, COLUMN) == 0 && columns[i].type == PRB_RING_INTEGER) {
            reader->column = i;
            reader->ring = ring;
            return true;
        }
    prb_ring_close(ring);
    return false;
}

static bool take(void *context, const struct prb_ring_value *values)
{
    struct prb_step_reader *reader = context;
    if (!values[reader->column].null)
        reader->last = values[reader->column].integer;
    return true;
}

int64_t prb_step_reader_last(struct prb_step_reader *reader)
{
    struct prb_ring_counts counts = {0};
    struct prb_ring_mark to = {0};
    if (!reader->ring && !open_ring(reader))
        return -1;
    if (prb_ring_waiting(reader->ring, &reader->mark) &&
        prb_ring_each_from(reader->ring, &reader->mark, READ_BYTES_MAX, take, reader, &counts, &to,
                           NULL)) {
        prb_ring_mark_deinit(&reader->mark);
        reader->mark = to;
    }
    return reader->last;
}

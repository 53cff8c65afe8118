/*
 * TensorBoard's event files: the scalars of training_logs, a folder for each process.  A record is
 * its length, a checksum of that, an Event (tensorboard/compat/proto/event.proto), and a checksum of
 * it; checksums are CRC-32C, rotated (record_writer of TensorFlow).
 */
#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/new_file.h"
#include "base/protobuf.h"
#include "export/export.h"

#define POLYNOMIAL 0x82f63b78u /* CRC-32C, bits reversed */
#define ROTATED 0xa282ead8u
#define VERSION "brain.Event:2"

enum { EVENT_TIME = 1, EVENT_STEP, EVENT_VERSION, EVENT_SUMMARY = 5 };
enum { SUMMARY_VALUE = 1 };
enum { VALUE_TAG = 1, VALUE_SIMPLE };

/* A process's file. */
struct events {
    const struct prb_export_process *process;
    struct prb_buf bytes;
    double first; /* s since the epoch: of its first event; its name has it */
};

struct writing {
    struct events *files;
    size_t count, cap;
    const char *names[PRB_EXPORT_COLUMNS_MAX];
    size_t name_count;
    struct prb_buf event, part, value;
};

static void writing_deinit(struct writing *w)
{
    for (size_t i = 0; i < w->count; i++)
        prb_buf_deinit(&w->files[i].bytes);
    free(w->files);
    prb_buf_deinit(&w->event);
    prb_buf_deinit(&w->part);
    prb_buf_deinit(&w->value);
}
PRB_DEFINE_AUTO(writing, struct writing, writing_deinit)

/* ---- records ---- */

static uint32_t checksum(const char *data, size_t len)
{
    uint32_t crc = ~0u;
    for (size_t i = 0; i < len; i++) {
        crc ^= (unsigned char)data[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? POLYNOMIAL : 0);
    }
    crc = ~crc;
    return (crc >> 15 | crc << 17) + ROTATED;
}

static void put_little(struct prb_buf *out, uint64_t value, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        prb_buf_addc(out, (char)(value >> 8 * i));
}

static void put_record(struct prb_buf *out, struct prb_buf *event)
{
    size_t at = out->len;
    put_little(out, event->len, 8);
    if (prb_buf_ok(out))
        put_little(out, checksum(out->data + at, 8), 4);
    prb_buf_add(out, event->data, event->len);
    put_little(out, checksum(event->data ? event->data : "", event->len), 4);
    out->failed |= event->failed;
    event->len = 0;
}

/* ---- events ---- */

static struct events *file_of(struct writing *w, const struct prb_export_process *process,
                              double time)
{
    for (size_t i = 0; i < w->count; i++)
        if (w->files[i].process == process)
            return &w->files[i];
    if (!PRB_GROW(w->files, w->count, w->cap))
        return NULL;
    struct events *file = &w->files[w->count++];
    *file = (struct events){.process = process, .first = time};
    prb_proto_double(&w->event, EVENT_TIME, time);
    prb_proto_text(&w->event, EVENT_VERSION, VERSION);
    put_record(&file->bytes, &w->event);
    return file;
}

enum { TIME, STEP, VALUES };

static bool take(struct prb_export *export, struct prb_export_process *process,
                 const struct prb_value *row, void *context)
{
    struct writing *w = context;
    double time = prb_export_real(&row[TIME]);
    int64_t step = prb_export_integer(&row[STEP]);
    if (!(time > 0) || isinf(time)) {
        export->out->left_out++;
        return true;
    }
    struct events *file = file_of(w, process, time);
    if (!file)
        return !(export->failed = true);
    for (size_t i = 0; i < w->name_count; i++) {
        double value = prb_export_real(&row[VALUES + i]);
        if (isnan(value))
            continue;
        prb_proto_text(&w->value, VALUE_TAG, w->names[i]);
        prb_proto_float(&w->value, VALUE_SIMPLE, (float)value);
        prb_proto_message(&w->part, SUMMARY_VALUE, &w->value);
        export->out->values++;
    }
    if (!w->part.len)
        return true;
    prb_proto_double(&w->event, EVENT_TIME, time);
    if (step != INT64_MIN)
        prb_proto_number(&w->event, EVENT_STEP, (uint64_t)step);
    prb_proto_message(&w->event, EVENT_SUMMARY, &w->part);
    put_record(&file->bytes, &w->event);
    export->out->steps++;
    return true;
}

/* ---- files ---- */

static bool make_folder(const char *path, struct prb_error *err)
{
    return mkdir(path, 0777) == 0 || errno == EEXIST || prb_fail_sys(err, errno, "%s", path);
}

/* PATH/rank0/events.out.tfevents.SECONDS.probing: what TensorBoard looks for. */
static bool write_file(const struct events *file, const char *path, struct prb_error *err)
{
    char folder[4096], name[4096];
    PRB_AUTO(prb_new_file) struct prb_new_file out = {.fd = -1};
    int used = file->process->rank >= 0
                   ? snprintf(folder, sizeof folder, "%s/rank%d", path, file->process->rank)
                   : snprintf(folder, sizeof folder, "%s/%d", path, (int)file->process->pid);
    if (used >= (int)sizeof folder ||
        snprintf(name, sizeof name, "%s/events.out.tfevents.%lld.probing", folder,
                 (long long)file->first) >= (int)sizeof name)
        return prb_fail(err, PRB_USAGE, "%.100s...: the path is too long", path);
    if (!make_folder(folder, err))
        return false;
    if (!prb_new_file_begin(&out, name, 0666))
        return prb_fail_sys(err, errno, "%s", name);
    for (size_t at = 0; at < file->bytes.len;) {
        ssize_t n = write(out.fd, file->bytes.data + at, file->bytes.len - at);
        if (n < 0 && errno != EINTR)
            return prb_fail_sys(err, errno, "%s", name);
        at += n > 0 ? (size_t)n : 0;
    }
    return prb_new_file_end(&out) || prb_fail_sys(err, errno, "%s", name);
}

static bool write_tensorboard(struct prb_export *export, const char *path, struct prb_error *err)
{
    const char *columns[VALUES + 1 + PRB_EXPORT_COLUMNS_MAX] = {"time/timestamp", "step"};
    PRB_AUTO(writing) struct writing w = {0};
    w.name_count = prb_export_metrics(export, w.names);
    for (size_t i = 0; i < w.name_count; i++)
        columns[VALUES + i] = w.names[i];
    if (!prb_export_rows(export, PRB_EXPORT_LOGS, columns, false, take, &w, err))
        return false;
    if (!w.count) {
        prb_fail(err, PRB_NOT_FOUND, "nothing is logged: training_logs has no rows");
        return prb_error_remedy(err, "the program logs by probing.log(loss=...)");
    }
    if (!make_folder(path, err))
        return false;
    for (size_t i = 0; i < w.count; i++)
        if (!prb_buf_ok(&w.files[i].bytes) || !write_file(&w.files[i], path, err))
            return prb_buf_ok(&w.files[i].bytes) ? false : prb_nomem(err);
    export->out->processes = w.count;
    return true;
}

const struct prb_exporter prb_exporter_tensorboard = {
    .description = {"tensorboard", "tfevents", "what was logged, as event files for TensorBoard",
                    ".tfevents", true},
    .write_folder = write_tensorboard,
};

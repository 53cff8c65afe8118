/* The formats, the time that is exported, and files, which replace the old one only when they are
 * whole. */
#include "export/export.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "base/new_file.h"
#include "base/words.h"

#define STEPS 20
#define SECONDS 10.0 /* where nothing counts steps */

static const struct prb_export_format *const formats[] = {
#define FORMAT(name) &prb_exporter_##name.description,
#include "export/formats.inc"
#undef FORMAT
    NULL,
};

const struct prb_export_format *const *prb_export_formats(void) { return formats; }

static bool choice_at(size_t index, struct prb_words_choice *out)
{
    const struct prb_export_format *format = formats[index];
    if (format)
        *out = (struct prb_words_choice){format->name, format->aliases, format->suffixes};
    return format;
}

const struct prb_export_format *prb_export_format_find(const char *name)
{
    return formats[prb_words_choose(choice_at, name)];
}

const struct prb_export_format *prb_export_format_of_file(const char *path)
{
    return formats[prb_words_choose_for_file(choice_at, path)];
}

/* ---- which time ---- */

/* The last steps of each process: the first of them begins the time. */
struct last_steps {
    unsigned wanted;
    double seconds; /* instead: those that begin in the last so many; 0: by number */
    bool begins;    /* the row's time is the step's begin, else its end */
    double since, latest;
    struct {
        const struct prb_export_process *process;
        unsigned count;
    } *processes;
    size_t count, cap;
};

static unsigned *count_of(struct last_steps *last, const struct prb_export *export,
                          const struct prb_export_process *process)
{
    size_t index = (size_t)(process - export->processes);
    while (last->count <= index) {
        if (!PRB_GROW(last->processes, last->count, last->cap))
            return NULL;
        last->processes[last->count++].count = 0;
    }
    return &last->processes[index].count;
}

static bool take_last(struct prb_export *export, struct prb_export_process *process,
                      const struct prb_value *row, void *context)
{
    struct last_steps *last = context;
    double time = prb_export_real(&row[0]), duration = prb_export_real(&row[1]);
    unsigned *count = count_of(last, export, process);
    if (!count)
        return !(export->failed = true);
    if (time > last->latest)
        last->latest = time;
    if (!last->begins && !isnan(duration))
        time -= duration;
    bool counts = last->seconds > 0 ? time >= last->latest - last->seconds : *count < last->wanted;
    if (counts && time < last->since)
        last->since = time;
    (*count)++;
    return true;
}

/* Where the time begins, by the first of these tables that has rows. */
static bool find_begin(struct prb_export *export, struct prb_error *err)
{
    static const struct {
        const char *table, *time, *duration;
        bool begins, steps;
    } tables[] = {
        {"python.torch_step_timing", "timestamp", "step_duration_sec", false, true},
        {"python.steps", "time/timestamp", "previous_duration", true, true},
        {"python.training_logs", "time/timestamp", "step_duration_sec", true, true},
        {"python.spans", "time/timestamp", "duration", true, false},
        {"python.torch_trace", "timestamp", "duration", true, false},
        {"python.comm_collective", "timestamp", "duration_ms", true, false},
    };
    unsigned steps = export->options->steps ? export->options->steps : STEPS;
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        const char *columns[] = {tables[i].time, tables[i].duration, NULL};
        struct last_steps last = {.wanted = steps + tables[i].begins,
                                  .seconds = tables[i].steps ? export->options->seconds : 0,
                                  .begins = tables[i].begins,
                                  .since = INFINITY,
                                  .latest = -INFINITY};
        bool good = prb_export_rows(export, tables[i].table, columns, true, take_last, &last, err);
        free(last.processes);
        if (!good)
            return false;
        if (!isfinite(last.since))
            continue;
        export->since = last.since;
        if (tables[i].steps)
            export->until = last.latest; /* the job goes on meanwhile */
        else
            export->since =
                last.latest - (export->options->seconds > 0 ? export->options->seconds : SECONDS);
        return true;
    }
    prb_fail(err, PRB_NOT_FOUND, "nothing is recorded: no steps, no spans, no logs");
    return prb_error_remedy(err, "`config probing.torch.profiling=on` records PyTorch's steps of a "
                                 "live job; `profile -o FILE.pftrace` samples any");
}

/* ---- files ---- */

static bool flush(FILE *out, const char *path, struct prb_error *err)
{
    if (fflush(out) != 0 || ferror(out))
        return prb_fail_sys(err, errno ? errno : EIO, "%s", path);
    return true;
}

static bool write_to(const struct prb_exporter *exporter, struct prb_export *export, FILE *opened,
                     const char *path, struct prb_error *err)
{
    PRB_AUTO(file) FILE *out = opened;
    if (!out)
        return prb_fail_sys(err, errno, "%s", path);
    return exporter->write(export, out, err) && flush(out, path, err);
}

/* A pipe or a device is written to; a regular file is replaced once the new one is whole. */
static bool write_path(const struct prb_exporter *exporter, struct prb_export *export,
                       const char *path, struct prb_error *err)
{
    PRB_AUTO(prb_new_file) struct prb_new_file file = {.fd = -1};
    struct stat st;
    if (exporter->write_folder)
        return exporter->write_folder(export, path, err);
    if (strcmp(path, "-") == 0)
        return exporter->write(export, stdout, err) && flush(stdout, "standard output", err);
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
        FILE *special = prb_special_open(path, err);
        return special && write_to(exporter, export, special, path, err);
    }
    if (!prb_new_file_begin(&file, path, 0666))
        return prb_fail_sys(err, errno, "%s", path);
    int copy = fcntl(file.fd, F_DUPFD_CLOEXEC, 3);
    return write_to(exporter, export, copy < 0 ? NULL : fdopen(copy, "w"), path, err) &&
           (prb_new_file_end(&file) || prb_fail_sys(err, errno, "%s", path));
}

static void export_deinit(struct prb_export *export)
{
    free(export->columns);
    free(export->processes);
    prb_trace_deinit(&export->trace);
    prb_hash_map_deinit(&export->tracks);
    prb_arena_deinit(&export->arena);
}
PRB_DEFINE_AUTO(export, struct prb_export, export_deinit)

bool prb_export_write(struct prb_db *db, const struct prb_export_format *format,
                      const struct prb_export_options *options, const char *path,
                      struct prb_exported *out, struct prb_error *err)
{
    struct prb_exported counts = {0};
    PRB_AUTO(export)
    struct prb_export export = {.db = db, .options = options, .out = &counts, .until = INFINITY};
    /* Scalars are few: all of them, unless some are asked for. */
    bool all = format->folder && !options->steps && options->seconds <= 0;
    if (!prb_export_read_columns(&export, err) || (!all && !find_begin(&export, err)) ||
        !write_path((const struct prb_exporter *)format, &export, path, err))
        return false;
    counts.since = export.since;
    *out = counts;
    return true;
}

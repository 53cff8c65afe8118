/* Names of functions, threads and processes, the same in every format (format.h). */
#include <limits.h>
#include <string.h>
#include <time.h>

#include "base/json_text.h"
#include "base/utf8.h"
#include "profile/format/format.h"

const char *prb_label_file(const struct prb_profile_function *function,
                           const struct prb_profile_style *style)
{
    const char *file = style->full_filenames ? function->filename : function->short_filename;
    return file ? file : function->filename ? function->filename : "";
}

void prb_label_frame(struct prb_buf *out, const struct prb_profile *profile, uint32_t frame,
                     const struct prb_profile_style *style)
{
    const struct prb_profile_frame *at = &profile->frames[frame];
    const struct prb_profile_function *function = &profile->functions[at->function];
    const char *file = prb_label_file(function, style);
    int line = style->function ? function->first_line : at->line;
    prb_buf_adds(out, function->qualname ? function->qualname : "?");
    if (!*file)
        return;
    if (style->nolineno || line <= 0)
        prb_buf_addf(out, " (%s)", file);
    else
        prb_buf_addf(out, " (%s:%d)", file, line);
}

void prb_label_folded(struct prb_buf *out, const char *label)
{
    for (size_t left = strlen(label), n; left; label += n, left -= n) {
        n = prb_utf8_length(label, left);
        if (*label == ';')
            prb_buf_adds(out, ":");
        else if (n && prb_utf8_is_plain(label, n))
            prb_buf_add(out, label, n);
        else
            prb_buf_adds(out, strchr("\t\r\n", *label) ? " " : "?");
        n += !n;
    }
}

void prb_label_thread(struct prb_buf *out, const struct prb_profile_thread *thread)
{
    if (thread->name && thread->tid)
        prb_buf_addf(out, "%s (%d)", thread->name, (int)thread->tid);
    else if (thread->name)
        prb_buf_adds(out, thread->name);
    else if (thread->tid)
        prb_buf_addf(out, "thread %d", (int)thread->tid);
    else
        prb_buf_addf(out, "thread %#llx", (unsigned long long)thread->thread_id);
}

void prb_label_process(struct prb_buf *out, const struct prb_profile_process *process,
                       const struct prb_profile_style *style)
{
    if ((style->group_rank || style->together) && process->rank >= 0) {
        prb_buf_addf(out, "rank %d", process->rank);
        return;
    }
    prb_buf_addf(out, "process %d", (int)process->pid);
    if (process->rank >= 0)
        prb_buf_addf(out, " (rank %d)", process->rank);
    if (process->command)
        prb_buf_addf(out, ": %s", process->command);
}

static const char *const modes[] = {
    [PRB_PROFILE_ACTIVE] = "threads that run",
    [PRB_PROFILE_WALL] = "all threads",
    [PRB_PROFILE_CPU] = "CPU time",
    [PRB_PROFILE_GIL] = "threads with the GIL",
    [PRB_PROFILE_EXCEPTION] = "threads that handle an exception",
    [PRB_PROFILE_ALLOCATED] = "memory that was allocated",
    [PRB_PROFILE_LIVE] = "memory that lives",
};

/* "memory that lives, of 12.0 s: 45.3 MiB (one standard deviation 1.2) in 1200 blocks, estimated from
 * 230 samples". */
static void put_memory(struct prb_buf *out, const struct prb_profile *profile)
{
    uint64_t bytes = 0, blocks = 0;
    for (size_t i = 0; i < profile->weight_count; i++) {
        bytes += profile->weights[i].ns;
        blocks += profile->weights[i].samples;
    }
    prb_buf_addf(out, "%s, of %.1f s: %.1f MiB", modes[profile->mode], profile->seconds,
                 (double)bytes / 1048576);
    if (profile->mode == PRB_PROFILE_LIVE)
        prb_buf_addf(out, " (one standard deviation %.1f)", profile->error / 1048576);
    prb_buf_addf(out, " in %llu blocks, estimated from %llu samples", (unsigned long long)blocks,
                 (unsigned long long)profile->samples);
}

void prb_label_counts(struct prb_buf *out, const struct prb_profile *profile)
{
    if (prb_profile_is_of_memory(profile)) {
        put_memory(out, profile);
        return;
    }
    double looked = profile->process_count > 1 ? (double)profile->process_count : 1;
    double reached =
        profile->seconds > 0 ? (double)profile->samples / profile->seconds / looked : 0;
    prb_buf_addf(out, "%s, %.1f s at %.0f Hz (%.0f reached): %llu samples, %llu of threads; ",
                 modes[profile->mode], profile->seconds, profile->rate, reached,
                 (unsigned long long)profile->samples, (unsigned long long)profile->thread_samples);
    prb_buf_addf(out, "%llu dropped, %llu readings rejected, %llu skipped",
                 (unsigned long long)profile->dropped, (unsigned long long)profile->rejected,
                 (unsigned long long)profile->skipped);
    if (profile->failed)
        prb_buf_addf(out, ", %llu failed", (unsigned long long)profile->failed);
    if (profile->native)
        prb_buf_addf(out, ", %llu of two moments, no thread stopped over %.2f ms",
                     (unsigned long long)profile->moved, profile->longest_stop * 1e3);
    prb_buf_addf(out, "; late %.2f ms, at worst %.1f ms; sampling took %.1f %% of a core",
                 profile->late * 1e3, profile->latest * 1e3,
                 profile->seconds > 0 ? 100 * profile->cpu / profile->seconds : 0);
}

/* ", process 12 (rank 0)"; ", 4 processes (ranks 0 to 3)". */
static void put_who(struct prb_buf *out, const struct prb_profile *profile)
{
    int low = INT_MAX, high = -1;
    for (size_t i = 0; i < profile->process_count; i++) {
        int rank = profile->processes[i].rank;
        low = rank >= 0 && rank < low ? rank : low;
        high = rank > high ? rank : high;
    }
    if (profile->process_count > 1)
        prb_buf_addf(out, ", %zu processes", profile->process_count);
    else if (profile->process_count && profile->processes[0].pid)
        prb_buf_addf(out, ", process %d", (int)profile->processes[0].pid);
    if (high > low)
        prb_buf_addf(out, " (ranks %d to %d)", low, high);
    else if (high >= 0)
        prb_buf_addf(out, " (rank %d)", high);
}

void prb_label_title(struct prb_buf *out, const struct prb_profile *profile,
                     const struct prb_profile_style *style)
{
    if (style->title) {
        prb_buf_adds(out, style->title);
        return;
    }
    char when[32] = "";
    time_t start = (time_t)profile->start;
    struct tm parts;
    if (gmtime_r(&start, &parts))
        strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S UTC", &parts);
    const char *command = profile->process_count ? profile->processes[0].command : NULL;
    prb_buf_adds(out, command ? command : "profile");
    put_who(out, profile);
    prb_buf_addf(out, ", %s", when);
}

bool prb_profile_is_of_memory(const struct prb_profile *profile)
{
    return profile->mode == PRB_PROFILE_ALLOCATED || profile->mode == PRB_PROFILE_LIVE;
}

const char *prb_value_unit(const struct prb_profile *profile)
{
    return prb_profile_is_of_memory(profile)  ? "bytes"
           : profile->mode == PRB_PROFILE_CPU ? "nanoseconds"
                                              : "samples";
}

uint64_t prb_value_of(const struct prb_profile *profile, const struct prb_profile_weight *weight)
{
    return profile->mode == PRB_PROFILE_CPU || prb_profile_is_of_memory(profile) ? weight->ns
                                                                                 : weight->samples;
}

/* Escaped as UTF-16: some readers refuse the character itself. */
static void put_escaped(FILE *out, const char *character, size_t n)
{
    uint32_t code = prb_utf8_code(character, n);
    if (code > 0xffff)
        fprintf(out, "\\u%04x\\u%04x", 0xd800 + ((code - 0x10000) >> 10),
                0xdc00 + ((code - 0x10000) & 0x3ff));
    else
        fprintf(out, "\\u%04x", code);
}

void prb_put_json(FILE *out, const char *text)
{
    PRB_AUTO(prb_buf) struct prb_buf json = {0};
    if (!text) {
        fputs("null", out);
        return;
    }
    prb_json_add_text(&json, text, strlen(text));
    for (size_t i = 0, n; i < json.len; i += n) {
        const char *at = json.data + i;
        n = prb_utf8_length(at, json.len - i);
        /* "</script" and "]]>" would end the data of a page. */
        if (*at == '<' || *at == '>' || !prb_utf8_is_plain(at, n))
            put_escaped(out, at, n);
        else
            fwrite(at, 1, n, out);
    }
}

void prb_put_xml(FILE *out, const char *text)
{
    PRB_AUTO(prb_buf) struct prb_buf clean = {0};
    prb_utf8_add(&clean, text, strlen(text));
    for (size_t i = 0, n; i < clean.len; i += n) {
        static const struct {
            char character;
            const char *name;
        } entities[] = {{'<', "&lt;"}, {'>', "&gt;"}, {'&', "&amp;"}, {'"', "&quot;"}};
        const char *at = clean.data + i, *entity = NULL;
        n = prb_utf8_length(at, clean.len - i);
        for (size_t k = 0; k < sizeof entities / sizeof *entities; k++)
            if (entities[k].character == *at)
                entity = entities[k].name;
        if (entity)
            fputs(entity, out);
        else if (prb_utf8_is_plain(at, n) || *at == '\t' || *at == '\n')
            fwrite(at, 1, n, out);
        else
            putc('?', out);
    }
}

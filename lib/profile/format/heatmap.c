/*
 * A source file with the time of each of its lines: one HTML page.  A stack that has a line several
 * times counts once.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "profile/format/format.h"

#define LINES_MAX 1000000
#define LINE_SHOWN 400        /* bytes */
#define SOURCE_MAX (64 << 20) /* bytes */

struct heat {
    uint64_t self, total;
    uint32_t counted; /* number of the weight that was added last, and 1 */
};

struct mapping {
    const struct prb_profile *profile;
    const char *file; /* the functions' file name */
    struct heat *lines;
    int last;         /* the highest line number */
    uint32_t process; /* a process that has the file */
};

static bool ends_in(const char *path, const char *end)
{
    size_t n = strlen(path), m = strlen(end);
    return n >= m && strcmp(path + n - m, end) == 0 &&
           (n == m || path[n - m - 1] == '/' || *end == '/');
}

/* The file that was asked for, or the one with most of the innermost frames. */
static const char *choose(const struct prb_profile *profile, const char *wanted)
{
    const char *best = NULL;
    uint64_t most = 0;
    PRB_AUTO_FREE uint64_t *of_function = calloc(profile->function_count + 1, sizeof *of_function);
    for (size_t i = 0; wanted && i < profile->function_count; i++)
        if (profile->functions[i].filename && ends_in(profile->functions[i].filename, wanted))
            return profile->functions[i].filename;
    for (size_t i = 0; of_function && !wanted && i < profile->weight_count; i++) {
        const struct prb_profile_weight *weight = &profile->weights[i];
        if (weight->node)
            of_function[profile->frames[profile->nodes[weight->node].frame].function] +=
                prb_value_of(profile, weight);
    }
    for (size_t i = 0; of_function && i < profile->function_count; i++) {
        uint64_t sum = 0;
        const struct prb_profile_function *one = &profile->functions[i];
        if (one->kind != PRB_FRAME_PYTHON || !one->filename || !of_function[i])
            continue;
        for (size_t k = 0; k < profile->function_count; k++)
            if (profile->functions[k].filename == one->filename)
                sum += of_function[k];
        if (sum > most) {
            most = sum;
            best = one->filename;
        }
    }
    return best;
}

static int line_in(const struct mapping *map, uint32_t frame)
{
    const struct prb_profile_frame *at = &map->profile->frames[frame];
    return map->profile->functions[at->function].filename == map->file && at->line > 0 &&
                   at->line < LINES_MAX
               ? at->line
               : 0;
}

static bool add_up(struct mapping *map)
{
    const struct prb_profile *profile = map->profile;
    for (size_t i = 0; i < profile->frame_count; i++)
        if (line_in(map, (uint32_t)i) > map->last)
            map->last = line_in(map, (uint32_t)i);
    map->lines = calloc((size_t)map->last + 2, sizeof *map->lines);
    if (!map->lines)
        return false;
    for (uint32_t i = 0; i < profile->weight_count; i++) {
        const struct prb_profile_weight *weight = &profile->weights[i];
        for (uint32_t at = weight->node; at; at = profile->nodes[at].parent) {
            int line = line_in(map, profile->nodes[at].frame);
            if (!line)
                continue;
            struct heat *heat = &map->lines[line];
            map->process = profile->threads[weight->thread].process;
            if (at == weight->node)
                heat->self += prb_value_of(profile, weight);
            if (heat->counted != i + 1)
                heat->total += prb_value_of(profile, weight);
            heat->counted = i + 1;
        }
    }
    return true;
}

static void put_share(FILE *out, uint64_t value, uint64_t whole, const char *colour)
{
    double share = whole ? (double)value / (double)whole : 0;
    if (value)
        fprintf(out, "<td style=\"background:rgba(%s,%.3f)\">%.2f %%</td>", colour,
                0.08 + 0.85 * share, 100 * share);
    else
        fputs("<td></td>", out);
}

static void put_lines(FILE *out, const struct mapping *map, FILE *source, uint64_t whole)
{
    PRB_AUTO_FREE char *text = NULL;
    size_t cap = 0;
    static const struct heat none;
    for (int line = 1; line < LINES_MAX; line++) {
        ssize_t n = source ? getline(&text, &cap, source) : -1;
        if (n < 0 && line > map->last)
            break;
        const struct heat *heat = line <= map->last ? &map->lines[line] : &none;
        fprintf(out, "<tr id=\"L%d\">", line);
        put_share(out, heat->self, whole, "230,60,30");
        put_share(out, heat->total, whole, "250,170,40");
        fprintf(out, "<td class=\"n\">%d</td><td><pre>", line);
        if (n > 0) {
            text[n > LINE_SHOWN ? LINE_SHOWN : n] = '\0';
            text[strcspn(text, "\r\n")] = '\0';
            prb_put_xml(out, text);
        }
        fputs("</pre></td></tr>\n", out);
    }
}

/* The target chose the name: open it below the target's root, and only a regular file. */
static FILE *open_source(const struct mapping *map)
{
    struct stat st;
    PRB_AUTO_FD int fd = prb_profile_open_file(map->profile, map->process, map->file);
    if (fd < 0 || fstat(fd, &st) != 0)
        return NULL;
    if (st.st_size > SOURCE_MAX) {
        errno = EFBIG;
        return NULL;
    }
    FILE *file = fdopen(fd, "r");
    if (file)
        fd = -1;
    return file;
}

static bool write_heatmap(const struct prb_profile *profile, const struct prb_profile_style *style,
                          FILE *out, struct prb_error *err)
{
    struct mapping map = {.profile = profile, .file = choose(profile, style->source)};
    PRB_AUTO(prb_buf) struct prb_buf counts = {0};
    uint64_t whole = 0;
    if (!map.file)
        return prb_fail(err, PRB_NOT_FOUND,
                        style->source ? "no function of %s was seen"
                                      : "no Python function was seen",
                        style->source);
    PRB_AUTO_FREE struct heat *lines = add_up(&map) ? map.lines : NULL;
    if (!lines)
        return prb_nomem(err);
    for (size_t i = 0; i < profile->weight_count; i++)
        whole += prb_value_of(profile, &profile->weights[i]);
    prb_label_counts(&counts, profile);
    PRB_AUTO(file) FILE *source = open_source(&map);
    fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>", out);
    prb_put_xml(out, map.file);
    fputs("</title><style>body{font:13px sans-serif;margin:1em;background:#fbfaf7}"
          "table{border-collapse:collapse}td{padding:0 .6em;text-align:right;white-space:nowrap}"
          "td:last-child{text-align:left}pre{margin:0;font-size:12px}.n{color:#888}</style></head>"
          "<body><h1>",
          out);
    prb_put_xml(out, map.file);
    fputs("</h1><p>", out);
    prb_put_xml(out, counts.data ? counts.data : "");
    if (!source)
        fprintf(out, "<br>The file cannot be read here: %s.", strerror(errno));
    fputs(
        "</p><table><thead><tr><th>own</th><th>total</th><th></th><th></th></tr></thead><tbody>\n",
        out);
    put_lines(out, &map, source, whole);
    fputs("</tbody></table></body></html>\n", out);
    return true;
}

const struct prb_format prb_format_heatmap = {
    .description = {"heatmap", "html", "a source file with the time of each line, as a page",
                    ".html .htm", false},
    .write = write_heatmap,
};

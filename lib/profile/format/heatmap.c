/*
 * Source files with the time of each of their lines: one HTML page, the program's own files first.
 * A stack that has a line several times counts once.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "profile/format/format.h"

#define LINES_MAX 1000000
#define LINE_SHOWN 400        /* bytes */
#define SOURCE_MAX (64 << 20) /* bytes */
#define FILES_SHOWN 20
#define LINES_AROUND 10 /* a sampled line, of the files after the first */
#define HOT_LINES 5     /* of each file, that links lead to */

struct heat {
    uint64_t self, total;
    uint32_t counted; /* number of the weight that was added last, and 1 */
};

struct file {
    const char *name;  /* the functions' file name */
    uint32_t function; /* one of them */
    bool wanted, own;  /* asked for; neither the standard library nor an installed package */
    uint64_t self, total;
    uint32_t counted;
    uint32_t process; /* one that has the file */
    struct heat *lines;
    int last; /* the highest line number */
    int hot[HOT_LINES];
};

struct page {
    const struct prb_profile *profile;
    const struct prb_profile_style *style;
    struct file *files, **order; /* order: as they are shown */
    size_t count;
    uint32_t *file_of; /* by function: in files, or PRB_NO_ITEM */
    uint64_t whole;
};

static void page_deinit(struct page *page)
{
    for (size_t i = 0; i < page->count; i++)
        free(page->files[i].lines);
    free(page->files);
    free(page->order);
    free(page->file_of);
}
PRB_DEFINE_AUTO(page, struct page, page_deinit)

/* ---- which files ---- */

static bool ends_in(const char *path, const char *end)
{
    size_t n = strlen(path), m = strlen(end);
    return n >= m && strcmp(path + n - m, end) == 0 &&
           (n == m || path[n - m - 1] == '/' || *end == '/');
}

static bool is_installed(const char *path)
{
    static const char *const folders[] = {"/lib/python", "/lib64/python"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        const char *at = strstr(path, folders[i]);
        if (at && isdigit((unsigned char)at[strlen(folders[i])]))
            return true;
    }
    return *path == '<' || strstr(path, "/site-packages/") || strstr(path, "/dist-packages/");
}

static int by_name(const void *a, const void *b, void *functions_)
{
    const struct prb_profile_function *functions = functions_;
    uintptr_t x = (uintptr_t)functions[*(const uint32_t *)a].filename,
              y = (uintptr_t)functions[*(const uint32_t *)b].filename;
    return (x > y) - (x < y);
}

/* The texts of a profile are saved once: two functions of a file have the same one. */
static bool find_files(struct page *page)
{
    const struct prb_profile *profile = page->profile;
    const struct prb_profile_function *functions = profile->functions;
    const char *wanted = page->style->source;
    size_t count = profile->function_count;
    PRB_AUTO_FREE uint32_t *sorted = calloc(count + 1, sizeof *sorted);
    page->file_of = calloc(count + 1, sizeof *page->file_of);
    page->files = calloc(count + 1, sizeof *page->files);
    page->order = calloc(count + 1, sizeof *page->order);
    if (!sorted || !page->file_of || !page->files || !page->order)
        return false;
    for (size_t i = 0; i < count; i++)
        sorted[i] = (uint32_t)i;
    if (count)
        qsort_r(sorted, count, sizeof *sorted, by_name, (void *)functions);
    for (size_t i = 0; i < count; i++) {
        const struct prb_profile_function *one = &functions[sorted[i]];
        page->file_of[sorted[i]] = PRB_NO_ITEM;
        bool asked = one->filename && wanted && ends_in(one->filename, wanted);
        if (!one->filename || (one->kind != PRB_FRAME_PYTHON && !asked))
            continue;
        if (!page->count || page->files[page->count - 1].name != one->filename)
            page->files[page->count++] = (struct file){.name = one->filename,
                                                       .function = sorted[i],
                                                       .wanted = asked,
                                                       .own = !is_installed(one->filename)};
        page->file_of[sorted[i]] = (uint32_t)(page->count - 1);
    }
    return true;
}

/* ---- their heat ---- */

static struct file *file_at(const struct page *page, uint32_t node, int *line_out)
{
    const struct prb_profile_frame *frame =
        &page->profile->frames[page->profile->nodes[node].frame];
    uint32_t file = page->file_of[frame->function];
    *line_out = frame->line > 0 && frame->line < LINES_MAX ? frame->line : 0;
    return file == PRB_NO_ITEM ? NULL : &page->files[file];
}

static void add_files(struct page *page)
{
    const struct prb_profile *profile = page->profile;
    for (uint32_t i = 0; i < profile->weight_count; i++) {
        const struct prb_profile_weight *weight = &profile->weights[i];
        uint64_t value = prb_value_of(profile, weight);
        page->whole += value;
        for (uint32_t at = weight->node; at; at = profile->nodes[at].parent) {
            int line;
            struct file *file = file_at(page, at, &line);
            if (!file)
                continue;
            file->process = profile->threads[weight->thread].process;
            file->self += at == weight->node ? value : 0;
            file->total += file->counted != i + 1 ? value : 0;
            file->counted = i + 1;
            file->last = line > file->last ? line : file->last;
        }
    }
}

/* What was asked for, then the program's own files, each with what it called, then the others by
 * what they used themselves. */
static int by_interest(const void *a, const void *b)
{
    const struct file *x = *(struct file *const *)a, *y = *(struct file *const *)b;
    if (x->wanted != y->wanted)
        return x->wanted ? -1 : 1;
    if (x->own != y->own)
        return x->own ? -1 : 1;
    uint64_t left = x->own ? x->total : x->self, right = y->own ? y->total : y->self;
    if (left != right)
        return left > right ? -1 : 1;
    return strcmp(x->name, y->name);
}

static bool add_lines(struct page *page)
{
    const struct prb_profile *profile = page->profile;
    for (size_t i = 0; i < page->count && i < FILES_SHOWN; i++)
        if (!(page->order[i]->lines =
                  calloc((size_t)page->order[i]->last + 2, sizeof(struct heat))))
            return false;
    for (uint32_t i = 0; i < profile->weight_count; i++) {
        const struct prb_profile_weight *weight = &profile->weights[i];
        uint64_t value = prb_value_of(profile, weight);
        for (uint32_t at = weight->node; at; at = profile->nodes[at].parent) {
            int line;
            struct file *file = file_at(page, at, &line);
            if (!file || !file->lines || !line)
                continue;
            struct heat *heat = &file->lines[line];
            heat->self += at == weight->node ? value : 0;
            heat->total += heat->counted != i + 1 ? value : 0;
            heat->counted = i + 1;
        }
    }
    return true;
}

static bool hotter(const struct heat *a, const struct heat *b)
{
    return a->self != b->self ? a->self > b->self : a->total > b->total;
}

/* The hottest lines, by their own time first. */
static void find_hot(struct file *file)
{
    for (int line = 1; line <= file->last; line++) {
        int here = line;
        for (size_t i = 0; i < HOT_LINES && file->lines[line].total; i++)
            if (!file->hot[i] || hotter(&file->lines[here], &file->lines[file->hot[i]])) {
                int next = file->hot[i];
                file->hot[i] = here;
                if (!(here = next))
                    break;
            }
    }
}

/* ---- the page ---- */

static void put_share(FILE *out, uint64_t value, uint64_t whole, const char *colour)
{
    double share = whole ? (double)value / (double)whole : 0;
    if (value)
        fprintf(out, "<td style=\"background:rgba(%s,%.3f)\">%.2f %%</td>", colour,
                0.08 + 0.85 * share, 100 * share);
    else
        fputs("<td></td>", out);
}

/* L12 of the first file, F1L12 of the second. */
static void put_id(FILE *out, size_t number, int line)
{
    if (number)
        fprintf(out, "F%zu", number);
    fprintf(out, "L%d", line);
}

static bool near(const struct file *file, int line)
{
    for (int at = line - LINES_AROUND; at <= line + LINES_AROUND; at++)
        if (at > 0 && at <= file->last && file->lines[at].total)
            return true;
    return false;
}

/* A line's number; that of a hot one leads to the next hot one.  The page opens at the hottest of
 * the first file: it has the focus.  (The page has no script.) */
static void put_number(FILE *out, const struct file *file, size_t number, int line)
{
    size_t at = 0;
    while (at < HOT_LINES && file->hot[at] != line)
        at++;
    fputs("<td class=\"n\">", out);
    if (at < HOT_LINES) {
        fputs("<a title=\"to the next hot line\" href=\"#", out);
        put_id(out, number, file->hot[at + 1 < HOT_LINES && file->hot[at + 1] ? at + 1 : 0]);
        fprintf(out, number || at ? "\">%d</a>" : "\" autofocus>%d</a>", line);
    } else {
        fprintf(out, "%d", line);
    }
    fputs("</td>", out);
}

static void put_lines(FILE *out, const struct page *page, size_t number, FILE *source)
{
    PRB_AUTO_FREE char *text = NULL;
    size_t cap = 0;
    static const struct heat none;
    const struct file *file = page->order[number];
    bool gap = false;
    for (int line = 1; line < LINES_MAX; line++) {
        ssize_t n = source ? getline(&text, &cap, source) : -1;
        if (n < 0 && line > file->last)
            break;
        if (number && !near(file, line)) {
            gap = true;
            continue;
        }
        if (gap)
            fputs("<tr><td></td><td></td><td class=\"n\">…</td><td></td></tr>\n", out);
        gap = false;
        const struct heat *heat = line <= file->last ? &file->lines[line] : &none;
        fputs("<tr id=\"", out);
        put_id(out, number, line);
        fputs("\">", out);
        put_share(out, heat->self, page->whole, "230,60,30");
        put_share(out, heat->total, page->whole, "250,170,40");
        put_number(out, file, number, line);
        fputs("<td><pre>", out);
        if (n > 0) {
            text[n > LINE_SHOWN ? LINE_SHOWN : n] = '\0';
            text[strcspn(text, "\r\n")] = '\0';
            prb_put_xml(out, text);
        }
        fputs("</pre></td></tr>\n", out);
    }
}

/* The target chose the name: open it below the target's root, and only a regular file. */
static FILE *open_source(const struct page *page, const struct file *source)
{
    struct stat st;
    PRB_AUTO_FD int fd = prb_profile_open_file(page->profile, source->process, source->name);
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

static void put_index(FILE *out, const struct page *page)
{
    fputs("<nav><table><thead><tr><th>own</th><th>total</th><th>file</th></tr></thead><tbody>\n",
          out);
    for (size_t i = 0; i < page->count && i < FILES_SHOWN; i++) {
        const struct file *file = page->order[i];
        fputs("<tr>", out);
        put_share(out, file->self, page->whole, "230,60,30");
        put_share(out, file->total, page->whole, "250,170,40");
        fputs("<td><a href=\"#", out);
        put_id(out, i, file->hot[0] ? file->hot[0] : 1);
        fputs("\" title=\"", out);
        prb_put_xml(out, file->name);
        fputs("\">", out);
        prb_put_xml(out, prb_label_file(&page->profile->functions[file->function], page->style));
        fputs("</a></td></tr>\n", out);
    }
    fputs("</tbody></table>", out);
    if (page->count > FILES_SHOWN)
        fprintf(out, "<p>%zu more files: --source FILE opens one.</p>", page->count - FILES_SHOWN);
    fputs("</nav>\n", out);
}

static void put_file(FILE *out, const struct page *page, size_t number)
{
    const struct file *file = page->order[number];
    PRB_AUTO(file) FILE *source = open_source(page, file);
    int why = errno;
    fputs(number ? "<h2>" : "<h1>", out);
    prb_put_xml(out, file->name);
    fputs(number ? "</h2>" : "</h1>", out);
    if (!number) {
        PRB_AUTO(prb_buf) struct prb_buf counts = {0};
        prb_label_counts(&counts, page->profile);
        fputs("<p>", out);
        prb_put_xml(out, counts.data ? counts.data : "");
        fputs("</p>", out);
    }
    if (!source)
        fprintf(out, "<p>The file cannot be read here: %s.</p>", strerror(why));
    fputs("<p>hottest lines:", out);
    for (size_t i = 0; i < HOT_LINES && file->hot[i]; i++) {
        fputs(" <a href=\"#", out);
        put_id(out, number, file->hot[i]);
        fprintf(out, "\">%d</a>", file->hot[i]);
    }
    fputs(
        "</p><table><thead><tr><th>own</th><th>total</th><th></th><th></th></tr></thead><tbody>\n",
        out);
    put_lines(out, page, number, source);
    fputs("</tbody></table>\n", out);
}

static bool write_heatmap(const struct prb_profile *profile, const struct prb_profile_style *style,
                          FILE *out, struct prb_error *err)
{
    PRB_AUTO(page) struct page page = {.profile = profile, .style = style};
    if (!find_files(&page))
        return prb_nomem(err);
    add_files(&page);
    for (size_t i = 0; i < page.count; i++)
        page.order[i] = &page.files[i];
    if (page.count)
        qsort(page.order, page.count, sizeof(struct file *), by_interest);
    if (!page.count || (style->source && !page.order[0]->wanted))
        return prb_fail(err, PRB_NOT_FOUND,
                        style->source ? "no function of %s was seen"
                                      : "no Python function was seen",
                        style->source);
    if (!add_lines(&page))
        return prb_nomem(err);
    size_t shown = page.count < FILES_SHOWN ? page.count : FILES_SHOWN;
    for (size_t i = 0; i < shown; i++)
        find_hot(page.order[i]);
    fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>", out);
    prb_put_xml(out, page.order[0]->name);
    fputs("</title><style>body{font:13px sans-serif;margin:1em;background:#fbfaf7;display:grid;"
          "grid-template-columns:minmax(16em,24em) minmax(0,1fr);gap:1.5em}"
          "nav{position:sticky;top:1em;max-height:96vh;overflow:auto;align-self:start}"
          "h1{font-size:20px}h2{font-size:16px;margin-top:3em}"
          "table{border-collapse:collapse}td{padding:0 .6em;text-align:right;white-space:nowrap}"
          "td:last-child,th:last-child{text-align:left}pre{margin:0;font-size:12px}.n{color:#777}"
          "tr{scroll-margin:40vh}tr:target{outline:2px solid #36c}</style></head>"
          "<body>",
          out);
    put_index(out, &page);
    fputs("<main>", out);
    for (size_t i = 0; i < shown; i++)
        put_file(out, &page, i);
    fputs("</main>\n", out);
    fputs("</body></html>\n", out);
    return true;
}

const struct prb_format prb_format_heatmap = {
    .description = {"heatmap", "html", "source files with the time of each line, as a page",
                    ".html .htm", false},
    .write = write_heatmap,
};

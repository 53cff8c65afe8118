/*
 * Reads profiles in collapsed stacks, "outermost;…;innermost count" a line, ours and those of other
 * tools, where the whole text of a frame is the name of its function.  In ours alone, row by row, it
 * has a file and a line.
 */
#include "profile/collapsed.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define LINE_MAX_BYTES (4u << 20)
#define COUNT_MAX 1e15

static uint32_t frame_of(struct prb_profile_box *box, const char *label)
{
    const char *name = prb_profile_text(box, label);
    const struct prb_profile_function function = {
        .kind = PRB_FRAME_PYTHON, .name = name, .qualname = name};
    return prb_profile_frame(box, prb_profile_function(box, &function), 0);
}

/* "function (file.py:12)", "function (file.so)", "function"; the text is changed. */
static uint32_t frame_in_file(struct prb_profile_box *box, char *label)
{
    char *file = NULL, *end = label + strlen(label), *colon;
    long line = 0;
    for (char *at = label; end > label && end[-1] == ')' && (at = strstr(at, " (")); at += 2)
        file = at;
    if (!file || file == label)
        return frame_of(box, label);
    *file = end[-1] = '\0';
    file += 2;
    if ((colon = strrchr(file, ':')) && (line = strtol(colon + 1, &end, 10)) > 0 && !*end &&
        line <= INT_MAX)
        *colon = '\0';
    else
        line = 0;
    const char *name = prb_profile_text(box, label), *path = prb_profile_text(box, file);
    const struct prb_profile_function function = {.kind = PRB_FRAME_PYTHON,
                                                  .name = name,
                                                  .qualname = name,
                                                  .filename = path,
                                                  .short_filename = path};
    return prb_profile_frame(box, prb_profile_function(box, &function), (int)line);
}

/* The stack of the frames in text, which is changed. */
static uint32_t stack_of(struct prb_profile_box *box, char *text, bool files)
{
    uint32_t node = 0;
    for (char *at = text, *next; at; at = next) {
        next = strchr(at, ';');
        if (next)
            *next++ = '\0';
        uint32_t frame = files ? frame_in_file(box, at) : frame_of(box, at);
        node = prb_profile_node(box, node, frame);
    }
    return node;
}

/* False: the line has another form. */
static bool take_line(struct prb_profile_box *box, char *line, size_t len)
{
    while (len && isspace((unsigned char)line[len - 1]))
        line[--len] = '\0';
    if (!len || *line == '#') /* austin's metadata */
        return true;
    char *space = strrchr(line, ' '), *end = NULL;
    double count = space ? strtod(space + 1, &end) : -1;
    if (!space || end == space + 1 || *end || !(count >= 0) || count > COUNT_MAX || space == line ||
        strlen(line) != len)
        return false;
    *space = '\0';
    uint32_t weight = prb_profile_weight(box, 0, stack_of(box, line, false));
    if (weight == PRB_NO_ITEM)
        return false;
    box->weights[weight].samples += (uint64_t)count;
    box->profile.samples += (uint64_t)count;
    return true;
}

/* Its length, with the end of the line; more than LINE_MAX_BYTES: it is too long. */
static size_t next_line(FILE *file, char *line)
{
    size_t len = 0;
    for (int c; len <= LINE_MAX_BYTES && (c = getc_unlocked(file)) != EOF;) {
        line[len++] = (char)c;
        if (c == '\n')
            break;
    }
    line[len] = '\0';
    return len;
}

static bool read_lines(struct prb_profile_box *box, FILE *file, const char *path,
                       struct prb_error *err)
{
    PRB_AUTO_FREE char *line = malloc(LINE_MAX_BYTES + 2);
    size_t number = 0;
    if (!line)
        return prb_nomem(err);
    for (size_t n; (n = next_line(file, line)) > 0;) {
        number++;
        if (n > LINE_MAX_BYTES || !take_line(box, line, n))
            return prb_fail(err, PRB_CORRUPT, "%s: line %zu is not a stack with a count", path,
                            number);
        if (box->failed)
            return prb_nomem(err);
    }
    if (ferror(file))
        return prb_fail_sys(err, errno, "%s", path);
    return box->profile.weight_count || prb_fail(err, PRB_CORRUPT, "%s has no stack", path);
}

struct prb_profile *prb_profile_read_collapsed(const char *path, struct prb_error *err)
{
    PRB_AUTO(file) FILE *file = fopen(path, "re");
    if (!file)
        return PRB_NULL(prb_fail_sys(err, errno, "%s", path));
    struct prb_profile_box *box = prb_profile_new(err);
    PRB_AUTO(prb_profile) struct prb_profile *profile = box ? &box->profile : NULL;
    const struct prb_profile_process process = {.rank = -1};
    const struct prb_profile_thread thread = {0};
    if (!profile)
        return NULL;
    prb_profile_process(box, &process);
    prb_profile_thread(box, &thread);
    return read_lines(box, file, path, err) ? PRB_STEAL(profile) : NULL;
}

struct prb_profile *prb_profile_of_folded(enum prb_profile_mode mode, double rate, double start,
                                          double seconds, struct prb_error *err)
{
    struct prb_profile_box *box = prb_profile_new(err);
    if (!box)
        return NULL;
    box->profile.mode = mode;
    box->profile.rate = rate;
    box->profile.start = start;
    box->profile.seconds = seconds;
    return &box->profile;
}

static uint32_t process_of(struct prb_profile_box *box, const struct prb_folded *one)
{
    const struct prb_profile *profile = &box->profile;
    const struct prb_profile_process process = {
        .pid = one->pid, .rank = one->rank, .end = profile->seconds};
    for (uint32_t i = 0; i < profile->process_count; i++)
        if (profile->processes[i].pid == one->pid && profile->processes[i].rank == one->rank)
            return i;
    return prb_profile_process(box, &process);
}

static uint32_t thread_of(struct prb_profile_box *box, const struct prb_folded *one)
{
    const struct prb_profile *profile = &box->profile;
    const struct prb_profile_thread thread = {.process = process_of(box, one),
                                              .tid = one->tid,
                                              .name = prb_profile_text(box, one->thread)};
    const struct prb_profile_thread *last =
        profile->thread_count ? &profile->threads[profile->thread_count - 1] : NULL;
    if (last && last->process == thread.process && last->tid == thread.tid &&
        last->name == thread.name)
        return (uint32_t)profile->thread_count - 1;
    return prb_profile_thread(box, &thread);
}

bool prb_profile_add_folded(struct prb_profile *profile, const struct prb_folded *one,
                            struct prb_error *err)
{
    struct prb_profile_box *box = (struct prb_profile_box *)profile;
    PRB_AUTO_FREE char *text = strdup(one->stack);
    if (!text)
        return prb_nomem(err);
    uint32_t thread = thread_of(box, one);
    uint32_t weight = prb_profile_weight(box, thread, stack_of(box, text, true));
    if (box->failed || weight == PRB_NO_ITEM)
        return prb_nomem(err);
    box->weights[weight].samples += one->samples;
    box->weights[weight].ns += (uint64_t)((double)one->samples * 1e9 / profile->rate);
    box->threads[thread].samples += one->samples;
    profile->thread_samples += one->samples;
    return true;
}

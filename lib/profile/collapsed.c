/*
 * Reads profiles in collapsed stacks, "outermost;…;innermost count" a line, ours and those of other
 * tools.  The whole text of a frame is the name of its function.
 */
#include "profile/collapsed.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LINE_MAX_BYTES (4u << 20)
#define COUNT_MAX 1e15

/* The stack of the frames in text, which is changed. */
static uint32_t stack_of(struct prb_profile_box *box, char *text)
{
    uint32_t node = 0;
    for (char *at = text, *next; at; at = next) {
        next = strchr(at, ';');
        if (next)
            *next++ = '\0';
        const char *label = prb_profile_text(box, at);
        const struct prb_profile_function function = {
            .kind = PRB_FRAME_PYTHON, .name = label, .qualname = label};
        node = prb_profile_node(box, node,
                                prb_profile_frame(box, prb_profile_function(box, &function), 0));
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
    uint32_t weight = prb_profile_weight(box, 0, stack_of(box, line));
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

/* A skill's Markdown: the head, and the fenced blocks that are steps. */
#include <ctype.h>
#include <math.h>
#include <string.h>

#include "base/utf8.h"
#include "skill/skill.h"

/* A walk over the lines of a text. */
struct lines {
    const char *at, *end;
    const char *line; /* the one reached, without its end */
    size_t len;
    unsigned number; /* from 1 */
};

static bool next_line(struct lines *lines)
{
    if (lines->at == lines->end)
        return false;
    const char *stop = memchr(lines->at, '\n', (size_t)(lines->end - lines->at));
    lines->line = lines->at;
    lines->len = (size_t)((stop ? stop : lines->end) - lines->at);
    lines->at = stop ? stop + 1 : lines->end;
    if (lines->len && lines->line[lines->len - 1] == '\r')
        lines->len--;
    lines->number++;
    return true;
}

bool prb_skill_name_is_good(const char *name, size_t len)
{
    if (len == 0 || len > PRB_SKILL_NAME_MAX || !islower((unsigned char)*name))
        return false;
    for (size_t i = 0; i < len; i++)
        if (!islower((unsigned char)name[i]) && !isdigit((unsigned char)name[i]) &&
            name[i] != '-' && name[i] != '_')
            return false;
    return true;
}

static bool wrong(const struct lines *lines, struct prb_error *err, const char *what)
{
    return prb_fail(err, PRB_CORRUPT, "line %u: %s", lines->number, what);
}

/* ---- the head ---- */

static bool add_parameter(struct prb_skill_file *file, const char *word, size_t len)
{
    const char *equals = memchr(word, '=', len);
    char *end, number[32];
    if (!equals || file->parameter_count == PRB_SKILL_PARAMETERS_MAX ||
        !prb_skill_name_is_good(word, (size_t)(equals - word)))
        return false;
    snprintf(number, sizeof number, "%.*s", (int)(len - (size_t)(equals - word) - 1), equals + 1);
    double value = strtod(number, &end);
    struct prb_skill_parameter *parameter = &file->parameters[file->parameter_count];
    parameter->name = prb_arena_strndup(&file->arena, word, (size_t)(equals - word));
    parameter->value = value;
    if (!parameter->name || end == number || *end || !isfinite(value))
        return false;
    file->parameter_count++;
    return true;
}

static bool add_parameters(struct prb_skill_file *file, const char *text)
{
    for (text += strspn(text, " "); *text; text += strspn(text, " ")) {
        size_t len = strcspn(text, " ");
        if (!add_parameter(file, text, len))
            return false;
        text += len;
    }
    return true;
}

static bool take_key(struct prb_skill_file *file, const struct lines *lines, struct prb_error *err)
{
    const char *colon = memchr(lines->line, ':', lines->len);
    if (!colon)
        return true; /* what other readers of the head may know */
    size_t key = (size_t)(colon - lines->line);
    const char *value = colon + 1, *end = lines->line + lines->len;
    while (value < end && *value == ' ')
        value++;
    char *text = prb_arena_strndup(&file->arena, value, (size_t)(end - value));
    if (!text)
        return prb_nomem(err);
    if (key == 4 && memcmp(lines->line, "name", key) == 0) {
        file->skill.name = text;
        return prb_skill_name_is_good(text, strlen(text)) ||
               wrong(lines, err, "the name may have a-z, 0-9, - and _");
    }
    if (key == 11 && memcmp(lines->line, "description", key) == 0)
        file->skill.description = text;
    else if (key == 5 && memcmp(lines->line, "ranks", key) == 0)
        file->skill.ranks = strcmp(text, "true") == 0;
    else if (key == 10 && memcmp(lines->line, "parameters", key) == 0)
        return add_parameters(file, text) || wrong(lines, err, "parameters are NAME=NUMBER");
    return true;
}

static bool is_line(const struct lines *lines, const char *text)
{
    return lines->len == strlen(text) && memcmp(lines->line, text, lines->len) == 0;
}

static bool take_head(struct prb_skill_file *file, struct lines *lines, struct prb_error *err)
{
    if (!next_line(lines) || !is_line(lines, "---"))
        return prb_fail(err, PRB_CORRUPT, "line 1: it does not begin with a head (---)");
    while (next_line(lines)) {
        if (is_line(lines, "---"))
            return (file->skill.name && file->skill.description) ||
                   wrong(lines, err, "the head has no name or no description");
        if (!take_key(file, lines, err))
            return false;
    }
    return wrong(lines, err, "the head does not end (---)");
}

/* ---- blocks ---- */

/* "20x0.5" */
static bool take_looks(const char *text, unsigned *looks, double *seconds)
{
    int used = 0;
    return sscanf(text, "%ux%lf%n", looks, seconds, &used) == 2 && !text[used] && *looks >= 1 &&
           *looks <= PRB_SKILL_LOOKS_MAX && *seconds >= 0.05 &&
           *looks * *seconds <= PRB_SKILL_SECONDS_MAX;
}

static bool take_keep(struct prb_skill_step *step, char *words, struct prb_arena *arena)
{
    char *save, *name = strtok_r(words, " ", &save), *looks = strtok_r(NULL, " ", &save), *word;
    if (!name || !prb_skill_name_is_good(name, strlen(name)) || strchr(name, '-') ||
        strcmp(name, "since") == 0)
        return false;
    step->kind = PRB_STEP_KEEP;
    step->looks = 1;
    step->name = prb_arena_strdup(arena, name);
    if (looks && !take_looks(looks, &step->looks, &step->seconds))
        return false;
    while ((word = strtok_r(NULL, " ", &save))) {
        char *fewer = strcmp(word, "seen") == 0 ? strtok_r(NULL, " ", &save) : NULL;
        if (strcmp(word, "beside") == 0)
            step->beside = true;
        else if (!fewer || !take_looks(fewer, &step->seen_looks, &step->seen_seconds))
            return false;
    }
    return true;
}

/* What stands behind the fence: *ours: it is a step.  False: a step, and wrong. */
static bool take_fence(struct prb_skill_step *step, char *info, struct prb_arena *arena, bool *ours)
{
    char *end;
    info += strspn(info, " ");
    *ours = true;
    if (strcmp(info, "sql finding") == 0) {
        step->kind = PRB_STEP_FINDING;
    } else if (strncmp(info, "sql table ", 10) == 0) {
        step->kind = PRB_STEP_TABLE;
        step->name = prb_arena_strdup(arena, info + 10);
    } else if (strncmp(info, "sql keep ", 9) == 0) {
        return take_keep(step, info + 9, arena);
    } else if (strncmp(info, "wait ", 5) == 0) {
        step->kind = PRB_STEP_WAIT;
        step->seconds = strtod(info + 5, &end);
        return end != info + 5 && !*end && step->seconds > 0 &&
               step->seconds <= PRB_SKILL_SECONDS_MAX;
    } else {
        *ours = false;
    }
    return true;
}

static bool take_block(struct prb_skill_file *file, struct lines *lines, struct prb_error *err)
{
    struct prb_skill_step step = {.line = lines->number, .looks = 1};
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    bool ours, ended = false;
    char *info = prb_arena_strndup(&file->arena, lines->line + 3, lines->len - 3);
    if (!info)
        return prb_nomem(err);
    if (!take_fence(&step, info, &file->arena, &ours))
        return wrong(lines, err, "this block's first line is wrong");
    while (!ended && next_line(lines)) {
        ended = lines->len >= 3 && memcmp(lines->line, "```", 3) == 0;
        if (!ended) {
            prb_buf_add(&text, lines->line, lines->len);
            prb_buf_addc(&text, '\n');
        }
    }
    if (!ended)
        return wrong(lines, err, "a block does not end (```)");
    if (!ours)
        return true;
    if (file->step_count == PRB_SKILL_STEPS_MAX)
        return wrong(lines, err, "there are too many blocks");
    if (step.beside &&
        (!file->step_count || file->steps[file->step_count - 1].kind != PRB_STEP_KEEP))
        return wrong(lines, err, "beside: the block before it must be `sql keep`, too");
    step.sql = prb_arena_strndup(&file->arena, text.data ? text.data : "", text.len);
    if (!prb_buf_ok(&text) || !step.sql)
        return prb_nomem(err);
    file->steps[file->step_count++] = step;
    return true;
}

struct prb_skill_file *prb_skill_parse(const char *text, size_t len, const char *path,
                                       struct prb_error *err)
{
    PRB_AUTO(prb_skill_file) struct prb_skill_file *file = calloc(1, sizeof *file);
    if (!file)
        return PRB_NULL(prb_nomem(err));
    if (len > PRB_SKILL_FILE_MAX || memchr(text, '\0', len) || prb_utf8_prefix(text, len) != len)
        return PRB_NULL(prb_fail(err, PRB_CORRUPT, "it is too long, or not UTF-8"));
    file->skill.text = prb_arena_strndup(&file->arena, text, len);
    file->skill.path = path ? prb_arena_strdup(&file->arena, path) : NULL;
    if (!file->skill.text || (path && !file->skill.path))
        return PRB_NULL(prb_nomem(err));
    struct lines lines = {.at = file->skill.text, .end = file->skill.text + len};
    if (!take_head(file, &lines, err))
        return NULL;
    while (next_line(&lines))
        if (lines.len >= 3 && memcmp(lines.line, "```", 3) == 0 && !take_block(file, &lines, err))
            return NULL;
    return PRB_STEAL(file);
}

void prb_skill_file_free(struct prb_skill_file *file)
{
    prb_arena_deinit(&file->arena);
    free(file);
}

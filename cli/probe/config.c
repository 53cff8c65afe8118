/* probing config: the settings of a target's probe, one by one or all. */
#include <string.h>
#include <strings.h>

#include "cli/fleet/act.h"
#include "cli/print/out.h"
#include "cli/probe/config_command.h"
#include "cli/store/start.h"

#define TORCH "probing.torch.profiling"
#define EXPRS "probing.torch.exprs"
#define STEP "probing.torch.step"
#define STORE "probing.store"

enum { JSON, NAMES };

static const struct prb_option options[] = {
    [JSON] = {'j', "json", NULL, "JSON: the list as an array of objects", NULL},
    [NAMES] = {0, "names", NULL,
               "look again which modules and optimizers PyTorch has, for recording", NULL},
    {0},
};

/* As prb_control_config_list gives them, between tabs. */
static const char *const columns[] = {"KEY", "VALUE", "DEFAULT", "UNIT", "MEANING"};
#define COLUMN_COUNT (sizeof columns / sizeof *columns)

/* The cell, and on to the next; the last one has the rest. */
static const char *next_cell(const char **line, bool last, size_t *len_out)
{
    const char *cell = *line;
    *len_out = last ? strlen(cell) : strcspn(cell, "\t");
    *line = cell + *len_out + (cell[*len_out] == '\t');
    return cell;
}

static bool print_table(const struct prb_strings *list, struct prb_error *err)
{
    bool ok = true;
    PRB_AUTO(prb_grid) struct prb_grid *grid = prb_grid_new(columns, COLUMN_COUNT);
    for (size_t i = 0; grid && ok && i < list->count; i++) {
        const char *line = list->items[i];
        for (size_t c = 0; ok && c < COLUMN_COUNT; c++) {
            size_t len;
            const char *cell = next_cell(&line, c + 1 == COLUMN_COUNT, &len);
            ok = prb_grid_add(grid, cell, len, false);
        }
    }
    if (!grid || !ok)
        return prb_cli_fail(err, PRB_NOMEM, "", "out of memory");
    prb_grid_print(grid, stdout, prb_out_columns(), prb_out_is_colored());
    return true;
}

/* Words of text, in lines that fit, each indented. */
static void print_wrapped(const char *text, unsigned room)
{
    enum { INDENT = 4 };
    unsigned at = 0;
    while (*(text += strspn(text, " "))) {
        size_t len = strcspn(text, " ");
        unsigned width = prb_out_width(text, len);
        bool first = at == 0, breaks = !first && at + 1 + width > room;
        if (breaks)
            putchar('\n');
        prb_out_pad(stdout, first || breaks ? INDENT : 1);
        at = (first || breaks ? INDENT : at + 1) + width;
        prb_out_cut(stdout, text, len, 0);
        text += len;
    }
    putchar('\n');
}

/* Where the table is wider than the terminal: KEY = VALUE UNIT, the default where it is another,
 * and below what it means. */
static void print_narrow(const struct prb_strings *list, unsigned room)
{
    for (size_t i = 0; i < list->count; i++) {
        const char *line = list->items[i], *cells[COLUMN_COUNT];
        size_t len[COLUMN_COUNT];
        for (size_t c = 0; c < COLUMN_COUNT; c++)
            cells[c] = next_cell(&line, c + 1 == COLUMN_COUNT, &len[c]);
        prb_out_style(stdout, PRB_STYLE_TITLE);
        prb_out_cut(stdout, cells[0], len[0], 0);
        prb_out_style(stdout, PRB_STYLE_PLAIN);
        fputs(" = ", stdout);
        prb_out_cut(stdout, len[1] ? cells[1] : "(not set)", len[1] ? len[1] : 9, 0);
        if (len[1] && len[3] && cells[1][len[1] - 1] <= '9') { /* 256MiB has its unit */
            putchar(' ');
            prb_out_cut(stdout, cells[3], len[3], 0);
        }
        if (len[1] != len[2] || memcmp(cells[1], cells[2], len[1]) != 0) {
            fputs(" (default: ", stdout);
            prb_out_cut(stdout, cells[2], len[2], 0);
            putchar(')');
        }
        putchar('\n');
        print_wrapped(cells[4], room);
    }
}

static bool is_too_wide(const struct prb_strings *list, unsigned room)
{
    unsigned widest[COLUMN_COUNT] = {0}, all = 2 * (COLUMN_COUNT - 1);
    for (size_t i = 0; i < list->count; i++) {
        const char *line = list->items[i];
        for (size_t c = 0; c < COLUMN_COUNT; c++) {
            size_t len;
            const char *cell = next_cell(&line, c + 1 == COLUMN_COUNT, &len);
            unsigned width = prb_out_width(cell, len);
            widest[c] = width > widest[c] ? width : widest[c];
        }
    }
    for (size_t c = 0; c < COLUMN_COUNT; c++)
        all += widest[c];
    return room && all > room;
}

static void print_json(const struct prb_strings *list)
{
    static const char *const keys[] = {"key", "value", "default", "unit", "meaning"};
    fputs("[", stdout);
    for (size_t i = 0; i < list->count; i++) {
        const char *line = list->items[i];
        fputs(i ? ",\n {" : "{", stdout);
        for (size_t c = 0; c < COLUMN_COUNT; c++) {
            size_t len;
            const char *cell = next_cell(&line, c + 1 == COLUMN_COUNT, &len);
            printf("%s\"%s\": ", c ? ", " : "", keys[c]);
            prb_out_json_text(stdout, cell, len);
        }
        fputs("}", stdout);
    }
    fputs("]\n", stdout);
}

bool prb_config_list(struct prb_control *control, bool json, struct prb_error *err)
{
    PRB_AUTO(prb_strings) struct prb_strings list = {0};
    if (!(control ? prb_control_config_list(control, &list, err) : prb_config_defaults(&list, err)))
        return false;
    unsigned room = prb_out_columns();
    if (!json && !is_too_wide(&list, room))
        return print_table(&list, err);
    if (json)
        print_json(&list);
    else
        print_narrow(&list, room);
    return true;
}

/* What is watched, but not there (yet): a mistyped name would wait for ever. */
static void note_unknown(struct prb_control *control, const char *exprs)
{
    PRB_AUTO(prb_target)
    struct prb_target *target = prb_target_open_pid(prb_control_pid(control), NULL);
    PRB_AUTO_FREE char *unknown = target ? prb_watched_unknown(target, exprs, NULL) : NULL;
    char *rest = unknown;
    for (char *line; rest && (line = strsep(&rest, "\n"));)
        if (*line)
            prb_out_note(line);
}

/* A step that ends with a function's return, which is not there (yet). */
static void note_unknown_step(struct prb_control *control, const char *value)
{
    static const char *const others[] = {"auto", "data", "optimizer:", "module:", "label:"};
    PRB_AUTO_FREE char *item = NULL;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strncmp(value, others[i], strlen(others[i])) == 0 &&
            (i > 1 || strlen(value) == strlen(others[i])))
            return;
    if (*value && asprintf(&item, "step@%s", value) > 0)
        note_unknown(control, item);
}

/* Somebody turned it off by name: then variables alone do not turn it on. */
static void note_off(struct prb_control *control)
{
    PRB_AUTO_FREE char *value = NULL;
    if (prb_control_config_get(control, TORCH, &value, NULL) && strcasecmp(value, "off") == 0)
        prb_out_note(TORCH " is off: nothing is watched until it is on");
}

static void note(void *context, const char *line)
{
    (void)context;
    prb_out_note(line);
}

static void set_store(struct prb_control *control, const char *value)
{
    if (strcmp(value, "on") == 0)
        prb_start_collector(prb_control_pid(control));
    else
        prb_out_note("a collector that runs goes on, for all processes of its user");
}

bool prb_config_word(struct prb_control *control, const char *word, struct prb_error *err)
{
    const char *equals = strchr(word, '=');
    PRB_AUTO_FREE char *key = strndup(word, equals ? (size_t)(equals - word) : strlen(word));
    PRB_AUTO_FREE char *value = NULL;
    struct prb_error why;
    if (!key)
        return prb_cli_fail(err, PRB_NOMEM, "", "out of memory");
    if ((equals && !prb_control_config_set(control, key, equals + 1, err)) ||
        !prb_control_config_get(control, key, &value, err))
        return false;
    bool torch = strcasecmp(key, TORCH) == 0, exprs = strcasecmp(key, EXPRS) == 0;
    bool step = strcasecmp(key, STEP) == 0;
    if (equals && (torch || step) && !prb_torch_follow(control, false, note, NULL, err))
        return false;
    /* Variables are watched in a program without PyTorch, too. */
    if (equals && exprs && *value && !prb_torch_follow(control, false, note, NULL, &why))
        prb_out_note(why.text);
    if (equals && exprs && *value)
        note_off(control);
    if (equals && (exprs || torch) && *value)
        note_unknown(control, value);
    if (equals && step)
        note_unknown_step(control, value);
    if (equals && strcasecmp(key, STORE) == 0)
        set_store(control, value);
    if (equals) {
        prb_out_text(stdout, key);
        fputs(" = ", stdout);
    }
    prb_out_text(stdout, value);
    putchar('\n');
    return true;
}

static bool checked(const struct prb_run *run, bool *changes_out, struct prb_error *err)
{
    for (size_t i = 0; i < run->argument_count; i++) {
        if (!prb_config_check(run->arguments[i], err))
            return false;
        *changes_out = *changes_out || strchr(run->arguments[i], '=');
    }
    return true;
}

static bool print_default(const char *key, struct prb_error *err)
{
    PRB_AUTO(prb_strings) struct prb_strings list = {0};
    if (!prb_config_defaults(&list, err))
        return false;
    for (size_t i = 0; i < list.count; i++) {
        size_t len = strcspn(list.items[i], "\t");
        if (strncasecmp(list.items[i], key, len) != 0 || key[len])
            continue;
        const char *value = list.items[i] + len + 1;
        prb_out_cut(stdout, value, strcspn(value, "\t"), 0);
        break;
    }
    putchar('\n');
    return true;
}

/* To read what a probe would begin with, none is loaded.  Another user's process may have one that
 * cannot be seen: that is refused. */
static bool print_defaults(const struct prb_run *run, pid_t pid, struct prb_error *err)
{
    char note[120];
    if (run->options[NAMES].count)
        return prb_cli_fail(err, PRB_NOT_FOUND, "", "process %d has no probe: nothing is recorded",
                            (int)pid);
    PRB_AUTO(prb_control) struct prb_control *control = prb_control_open(pid, err);
    if (!control && err && err->code == PRB_PERMISSION)
        return false;
    bool ok = run->argument_count > 0 || prb_config_list(NULL, run->options[JSON].count, err);
    for (size_t i = 0; ok && i < run->argument_count; i++)
        ok = print_default(run->arguments[i], err);
    snprintf(note, sizeof note, "process %d has no probe: these are the defaults", (int)pid);
    if (ok)
        prb_out_note(note);
    return ok;
}

/* Of all ranks.  --names is the probe's own. */
static bool of_job(const struct prb_run *run, bool changes, struct prb_error *err)
{
    json_t *words = json_array();
    for (size_t i = 0; i < run->argument_count; i++)
        json_array_append_new(words, json_string(run->arguments[i]));
    struct prb_job_act act = {
        .kind = changes ? "configure" : "settings",
        .question = changes ? "Change this" : NULL,
        .args = json_pack("{s:o}", "words", words),
        .json = run->options[JSON].count,
    };
    return prb_job_act(run, &act, err);
}

static bool run_config(const struct prb_run *run, struct prb_error *err)
{
    pid_t pid = 0;
    bool ok = true, changes = false;
    const char *socket;
    if (run->options[JSON].count && run->argument_count && !prb_run_job(run))
        return prb_usage(run, err, "--json is for the list");
    if (run->options[NAMES].count && (run->argument_count || run->options[JSON].count))
        return prb_usage(run, err, "--names is alone");
    if (!checked(run, &changes, err))
        return false;
    if (prb_run_job(run) && !run->options[NAMES].count)
        return of_job(run, changes, err);
    if (!changes && !prb_run_process(run, &pid, &socket, err))
        return false;
    if (!changes && !socket && !prb_control_seen(pid))
        return prb_process_runs(pid)
                   ? print_defaults(run, pid, err)
                   : prb_cli_fail(err, PRB_NOT_FOUND, "", "there is no process %d", (int)pid);
    PRB_AUTO(prb_control) struct prb_control *control = prb_run_control(run, true, &pid, err);
    if (!control)
        return false;
    if (run->options[NAMES].count)
        return prb_torch_follow(control, true, note, NULL, err);
    if (run->argument_count == 0)
        return prb_config_list(control, run->options[JSON].count, err);
    for (size_t i = 0; ok && i < run->argument_count; i++)
        ok = prb_config_word(control, run->arguments[i], err);
    return ok;
}

const struct prb_command prb_command_config = {
    .name = "config",
    .aliases = "cfg c",
    .summary = "show and change the settings of the probe",
    .arguments = "[KEY[=VALUE]]...",
    .arguments_max = PRB_WORDS_MAX,
    .target = PRB_USES_TARGET,
    .description =
        "Without an argument, all settings with their values, defaults, units and meanings; with "
        "KEY its value; with KEY=VALUE it is changed from now on, and shown as it was understood "
        "(1GB, 7d). With --names nothing is changed: where PyTorch is recorded, its modules and "
        "optimizers get their names, as setting probing.torch.profiling has it. Unknown keys and "
        "wrong values are refused before anything is loaded; without a "
        "probe, KEY and the list are the defaults, and none is loaded for them. A probe that "
        "starts takes its "
        "settings from `inject -D` and from variables: PROBING_MAX_MEMORY is probing.max_memory. "
        "With -t @JOB it asks all ranks of the job; equal answers are printed once. To change a "
        "setting there, agents need `attach --allow control`.",
    .options = options,
    .examples = "probing 12345 config\n"
                "probing 12345 config probing.max_memory=1GB probing.sample_rate=0.05\n"
                "probing -t @ config probing.torch.profiling=on\n",
    .run = run_config,
};

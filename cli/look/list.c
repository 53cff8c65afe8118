/* probing list: the Python processes of this machine, flat, as a tree, or as JSON. */
#include <limits.h>
#include <pwd.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "cli/fleet/job.h"
#include "cli/print/out.h"
#include "cli/serve/servers.h"
#include "fleet/objects.h"
#include "format/format.h"
#include "inject/control.h"

#define DEPTH_MAX 64    /* of the tree as drawn */
#define COMMAND_MAX 300 /* bytes of a command line without -v */

enum { TREE, JSON, BELOW };

static const struct prb_option options[] = {
    [TREE] = {'t', "tree", NULL, "children below their parents", NULL},
    [JSON] = {'j', "json", NULL, "JSON, an array of objects", NULL},
    [BELOW] = {0, "below", "PID", "only this process and what it started; several with commas",
               NULL},
    {0},
};

PRB_DEFINE_AUTO_PTR(prb_process_list, struct prb_process_list, prb_process_list_free)

/* What a line shows. */
struct view {
    const struct prb_process_list *list;
    const char *const *hosts; /* of a job: of each process; else NULL */
    struct prb_grid *grid;
    bool verbose, ranks, probes;
    double now;
    bool *shown; /* tree: by index */
};

static bool is_child(const struct view *view, size_t child, size_t of)
{
    const struct prb_process *items = view->list->items;
    return items[child].ppid == items[of].pid && items[child].pid != items[of].pid &&
           (!view->hosts || strcmp(view->hosts[child], view->hosts[of]) == 0);
}

static bool has_parent(const struct view *view, size_t index)
{
    for (size_t i = 0; i < view->list->count; i++)
        if (is_child(view, index, i))
            return true;
    return false;
}

static bool has_probe(const struct view *view, const struct prb_process *one)
{
    return one->has_probe && (view->hosts || prb_control_seen(one->pid));
}

static bool add_started(struct view *view, double started)
{
    char text[40] = "";
    time_t whole = (time_t)started;
    struct tm parts;
    if (started > 0 && localtime_r(&whole, &parts))
        strftime(text, sizeof text, view->now - started < 20 * 3600 ? "%H:%M:%S" : "%Y-%m-%d",
                 &parts);
    return prb_grid_adds(view->grid, text);
}

static bool add_owner(struct view *view, const struct prb_process *one)
{
    const struct passwd *user = getpwuid(one->uid);
    return user ? prb_grid_adds(view->grid, user->pw_name)
                : prb_grid_addf(view->grid, "%u", (unsigned)one->uid);
}

static bool add_rank(struct view *view, const struct prb_process *one)
{
    if (one->rank < 0)
        return prb_grid_adds(view->grid, "");
    if (one->world_size < 0)
        return prb_grid_addf(view->grid, "%d", one->rank);
    return prb_grid_addf(view->grid, "%d/%d", one->rank, one->world_size);
}

static bool add_command(struct view *view, const struct prb_process *one, const char *branch)
{
    PRB_AUTO_FREE char *text = NULL;
    char brief[COMMAND_MAX + 8];
    const char *command = one->command && *one->command ? one->command : one->name;
    if (!view->verbose && prb_out_columns() > 0) { /* a pipe gets it whole */
        prb_process_short_command(one, COMMAND_MAX, brief, sizeof brief);
        command = brief;
    }
    if (asprintf(&text, "%s%s", branch, command ? command : "") < 0)
        return false;
    return prb_grid_adds(view->grid, text);
}

static bool add_process(struct view *view, const struct prb_process *one, const char *branch)
{
    char rss[16];
    double age = view->now - one->started;
    prb_out_bytes(rss, sizeof rss, (double)one->rss);
    bool ok = prb_grid_addf(view->grid, "%d", (int)one->pid);
    if (view->verbose)
        ok = ok && prb_grid_addf(view->grid, "%d", (int)one->ppid) && add_owner(view, one);
    if (view->hosts)
        ok = ok && prb_grid_adds(view->grid, view->hosts[one - view->list->items]);
    if (view->ranks)
        ok = ok && add_rank(view, one);
    ok = ok && prb_grid_adds(view->grid, one->python);
    ok = ok && prb_grid_addf(view->grid, "%.0f%%", age > 0 ? 100 * one->cpu / age : 0);
    ok = ok && prb_grid_add(view->grid, rss, strlen(rss), true);
    ok = ok && prb_grid_addf(view->grid, "%d", one->threads) && add_started(view, one->started);
    if (view->probes)
        ok = ok && prb_grid_adds(view->grid, has_probe(view, one) ? "yes" : "");
    if (view->verbose)
        ok = ok && prb_grid_adds(view->grid, one->executable);
    return ok && add_command(view, one, branch);
}

/* one and what descends from it; indent: the lines of the ancestors, drawn on by children. */
static bool add_branch(struct view *view, size_t index, const char *indent, const char *branch,
                       unsigned depth)
{
    const struct prb_process_list *list = view->list;
    PRB_AUTO_FREE char *text = NULL;
    size_t last = list->count;
    view->shown[index] = true;
    if (asprintf(&text, "%s%s", indent, branch) < 0 ||
        !add_process(view, &list->items[index], text))
        return false;
    if (depth == DEPTH_MAX)
        return true;
    for (size_t i = 0; i < list->count; i++)
        if (!view->shown[i] && is_child(view, i, index))
            last = i;
    const char *line = !*branch ? "" : strncmp(branch, "└", strlen("└")) == 0 ? "   " : "│  ";
    PRB_AUTO_FREE char *deeper = NULL;
    if (asprintf(&deeper, "%s%s", indent, line) < 0)
        return false;
    for (size_t i = 0; i < list->count; i++)
        if (!view->shown[i] && is_child(view, i, index) &&
            !add_branch(view, i, deeper, i == last ? "└─ " : "├─ ", depth + 1))
            return false;
    return true;
}

static bool fill(struct view *view, bool tree)
{
    const struct prb_process_list *list = view->list;
    for (size_t i = 0; i < list->count; i++) {
        if (!tree && !add_process(view, &list->items[i], ""))
            return false;
        if (tree && !has_parent(view, i) && !add_branch(view, i, "", "", 0))
            return false;
    }
    /* A process that a moving parent left out of every branch still shows. */
    for (size_t i = 0; tree && i < list->count; i++)
        if (!view->shown[i] && !add_branch(view, i, "", "", 0))
            return false;
    return true;
}

static struct prb_grid *new_grid(const struct view *view)
{
    const char *names[13];
    size_t count = 0;
    names[count++] = "PID";
    if (view->verbose)
        names[count++] = "PARENT", names[count++] = "USER";
    if (view->hosts)
        names[count++] = "HOST";
    if (view->ranks)
        names[count++] = "RANK";
    names[count++] = "PYTHON";
    names[count++] = "CPU";
    names[count++] = "RSS";
    names[count++] = "THREADS";
    names[count++] = "STARTED";
    if (view->probes)
        names[count++] = "PROBE";
    if (view->verbose)
        names[count++] = "EXECUTABLE";
    names[count++] = "COMMAND";
    return prb_grid_new(names, count);
}

static bool print_text(const struct prb_run *run, const struct prb_process_list *list,
                       const char *const *hosts, struct prb_error *err)
{
    PRB_AUTO_FREE bool *shown = calloc(list->count + 1, sizeof *shown);
    struct view view = {
        .list = list,
        .hosts = hosts,
        .verbose = run->verbose,
        .now = prb_clock_epoch_s(),
        .shown = shown,
    };
    for (size_t i = 0; i < list->count; i++) {
        view.ranks = view.ranks || list->items[i].rank >= 0;
        view.probes = view.probes || run->verbose || has_probe(&view, &list->items[i]);
    }
    if (list->count == 0) {
        prb_out_note("no Python process is visible to this user");
        return true;
    }
    PRB_AUTO(prb_grid) struct prb_grid *grid = view.grid = new_grid(&view);
    if (!shown || !grid || !fill(&view, run->options[TREE].count))
        return prb_cli_fail(err, PRB_NOMEM, "", "out of memory");
    prb_grid_print(grid, stdout, prb_out_columns(), prb_out_is_colored());
    return true;
}

/* Leave the processes of "12,34" and what descends from them. */
static bool keep_below(struct prb_process_list *list, const struct prb_run *run,
                       struct prb_error *err)
{
    PRB_AUTO_FREE bool *chosen = calloc(2 * list->count + 1, sizeof *chosen);
    bool *kept = chosen + list->count;
    size_t count = 0;
    if (!chosen)
        return prb_cli_fail(err, PRB_NOMEM, "", "out of memory");
    for (const char *at = run->options[BELOW].text;; at++) {
        char *end;
        long pid = strtol(at, &end, 10);
        if (*at < '1' || *at > '9' || pid > INT_MAX || (*end && *end != ','))
            return prb_usage(run, err, "--below takes process ids, not \"%s\"",
                             run->options[BELOW].text);
        prb_process_choose(list, (pid_t)pid, false, true, chosen);
        for (size_t i = 0; i < list->count; i++)
            kept[i] = kept[i] || chosen[i];
        at = end;
        if (!*at)
            break;
    }
    for (size_t i = 0; i < list->count; i++)
        if (kept[i])
            list->items[count++] = list->items[i];
    list->count = count;
    return true;
}

/* ---- the ranks of a job ---- */

/* The texts stay the object's. */
static struct prb_process process_of(const json_t *one, int rank)
{
#define NUMBER(name) json_integer_value(json_object_get(one, name))
#define TEXT(name) json_string_value(json_object_get(one, name))
    const json_t *world = json_object_get(one, "world_size");
    return (struct prb_process){
        .pid = (pid_t)NUMBER("pid"),
        .ppid = (pid_t)NUMBER("ppid"),
        .uid = (uid_t)NUMBER("uid"),
        .name = TEXT("name"),
        .command = TEXT("command"),
        .python = TEXT("python"),
        .executable = TEXT("executable"),
        .started = json_number_value(json_object_get(one, "started")),
        .cpu = json_number_value(json_object_get(one, "cpu")),
        .rss = NUMBER("rss"),
        .threads = (int)NUMBER("threads"),
        .rank = rank,
        .world_size = json_is_integer(world) ? (int)NUMBER("world_size") : -1,
        .has_probe = json_is_true(json_object_get(one, "has_probe")),
    };
#undef NUMBER
#undef TEXT
}

static bool print_objects(const struct prb_run *run, const struct prb_rank_objects *objects,
                          struct prb_error *err)
{
    size_t count = 0;
    for (size_t i = 0; i < objects->count; i++)
        count += json_array_size(objects->items[i].list);
    PRB_AUTO_FREE struct prb_process *items = calloc(count + 1, sizeof *items);
    PRB_AUTO_FREE const char **hosts = calloc(count + 1, sizeof *hosts);
    struct prb_process_list list = {items, 0};
    if (!items || !hosts)
        return prb_cli_fail(err, PRB_NOMEM, "", "out of memory");
    for (size_t i = 0; i < objects->count; i++) {
        const struct prb_rank_object *of = &objects->items[i];
        for (size_t k = 0; k < json_array_size(of->list); k++) {
            hosts[list.count] = of->host;
            items[list.count++] = process_of(json_array_get(of->list, k), of->rank);
        }
    }
    return print_text(run, &list, hosts, err);
}

static bool of_job(const struct prb_run *run, struct prb_error *err)
{
    PRB_AUTO(prb_fleet) struct prb_fleet *fleet = prb_run_open_job(run, err);
    PRB_AUTO(prb_coverage) struct prb_coverage coverage = {0};
    PRB_AUTO(prb_rank_objects) struct prb_rank_objects objects = {0};
    const char *args = run->options[TREE].count ? "{\"children\": true}" : "{}";
    if (!fleet || !prb_fleet_ask(fleet, "list", args, &objects, &coverage, err) ||
        !prb_run_covered(run, &coverage, err))
        return false;
    prb_rank_objects_sort(&objects);
    if (run->options[JSON].count) {
        fputs("{\"rows\": ", stdout);
        prb_rank_objects_json(&objects, stdout);
        fputs(",\n\"coverage\": ", stdout);
        prb_coverage_json(&coverage, stdout);
        fputs("}\n", stdout);
        return true;
    }
    if (objects.count && !print_objects(run, &objects, err))
        return false;
    prb_out_coverage(&coverage);
    return true;
}

static bool run_list(const struct prb_run *run, struct prb_error *err)
{
    if (prb_run_job(run))
        return of_job(run, err);
    PRB_AUTO(prb_process_list) struct prb_process_list *list = prb_process_list(err);
    if (!list || (run->options[BELOW].count && !keep_below(list, run, err)))
        return false;
    if (!run->options[JSON].count) {
        if (!run->options[BELOW].count)
            prb_servers_note();
        return print_text(run, list, NULL, err);
    }
    prb_process_list_json(list, prb_control_seen, stdout);
    return true;
}

const struct prb_command prb_command_list = {
    .name = "list",
    .aliases = "ls l ps",
    .summary = "list the Python processes",
    .arguments = "",
    .target = PRB_USES_JOB_IF_GIVEN,
    .description = "Lists every process that has a CPython inside and that you may see: its rank "
                   "and the number of ranks when its "
                   "environment says (RANK, WORLD_SIZE and their likes), the version of Python, "
                   "CPU time as a share of its "
                   "life, resident memory, threads, start, whether a probe listens "
                   "in it (when one does anywhere), command. -v adds parent, user and "
                   "executable. A note says where servers of yours are.\n\n"
                   "With -t @JOB: the ranks of a job with their hosts; with --tree also what they "
                   "started.",
    .options = options,
    .examples = "probing list --tree\n"
                "probing -t @ list  # the ranks of the job\n",
    .run = run_list,
};

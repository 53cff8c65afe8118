/*
 * A plugin of Probing: the table plugin.limits, what the process may use at most (ulimit).
 *
 *     cc -shared -fPIC -o limits.so limits.c
 *     PROBING_PLUGINS=$PWD/limits.so probing PID query "SELECT * FROM plugin.limits"
 *
 * It includes probing_plugin.h alone, and works of a core or snapshot, too, if that has the text.
 */
#include <probing_plugin.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct probing_host *host;

static const struct probing_column columns[] = {
    {"name", PROBING_TEXT, "", "what is limited, as the kernel calls it"},
    {"soft", PROBING_INTEGER, "", "the limit in force; NULL: unlimited"},
    {"hard", PROBING_INTEGER, "", "what the process may raise it to; NULL: unlimited"},
    {"unit", PROBING_TEXT, "", "of both; NULL: none"},
    {NULL, PROBING_TEXT, NULL, NULL},
};

static void add_limit(struct probing_rows *rows, const char *word)
{
    if (strcmp(word, "unlimited") == 0)
        host->null(rows);
    else
        host->integer(rows, strtoll(word, NULL, 10));
}

/* proc_pid_limits(5): a heading, then "Max open files     1024     524288     files". */
static int fill(struct probing_rows *rows, char *error, size_t cap)
{
    char text[8192];
    if (host->text(rows, "limits", text, sizeof text) < 0) {
        snprintf(error, cap, "the process shows no limits");
        return -1;
    }
    char *line = strchr(text, '\n');
    for (line = line ? line + 1 : text + strlen(text); *line;
         line = line + strcspn(line, "\n") + 1) {
        char name[26] = "", soft[32], hard[32], unit[32];
        int found = sscanf(line, "%25c %31s %31s %31[a-z]", name, soft, hard, unit);
        if (found < 3)
            break;
        name[25] = '\0';
        while (*name && name[strlen(name) - 1] == ' ')
            name[strlen(name) - 1] = '\0';
        host->begin(rows);
        host->string(rows, name);
        add_limit(rows, soft);
        add_limit(rows, hard);
        host->string(rows, found > 3 ? unit : NULL);
        if (!strchr(line, '\n'))
            break;
    }
    return 0;
}

static const struct probing_table limits = {
    .size = sizeof limits,
    .schema = "plugin",
    .name = "limits",
    .doc = "what the process may use at most",
    .columns = columns,
    .needs_target = 1,
    .fill = fill,
};
static const struct probing_table *const tables[] = {&limits, NULL};
static const struct probing_plugin plugin = {
    .version = PROBING_PLUGIN_VERSION, .size = sizeof plugin, .name = "limits", .tables = tables};

const struct probing_plugin *probing_plugin_v1(const struct probing_host *given)
{
    if (given->version != PROBING_PLUGIN_VERSION || given->size < sizeof *given)
        return NULL;
    host = given;
    return &plugin;
}

/* The Python processes of a machine as JSON (format.h). */
#include <inttypes.h>
#include <string.h>

#include "format/format.h"

static void add_text(FILE *out, const char *key, const char *text)
{
    fprintf(out, ", \"%s\": ", key);
    prb_out_json_text(out, text, text ? strlen(text) : 0);
}

static void add_number(FILE *out, const char *key, int number)
{
    if (number < 0)
        fprintf(out, ", \"%s\": null", key);
    else
        fprintf(out, ", \"%s\": %d", key, number);
}

void prb_process_list_json(const struct prb_process_list *list, bool (*has_probe)(pid_t pid),
                           FILE *out)
{
    fputc('[', out);
    for (size_t i = 0; i < list->count; i++) {
        const struct prb_process *one = &list->items[i];
        fprintf(out, "%s{\"pid\": %d, \"ppid\": %d, \"uid\": %u", i ? ",\n " : "", (int)one->pid,
                (int)one->ppid, (unsigned)one->uid);
        add_text(out, "name", one->name);
        add_text(out, "command", one->command);
        add_text(out, "python", one->python);
        add_text(out, "executable", one->executable);
        fprintf(out, ", \"started\": %.2f, \"cpu\": %.2f, \"rss\": %" PRId64 ", \"threads\": %d",
                one->started, one->cpu, one->rss, one->threads);
        add_number(out, "rank", one->rank);
        add_number(out, "local_rank", one->local_rank);
        add_number(out, "world_size", one->world_size);
        fprintf(out, ", \"has_probe\": %s}", has_probe(one->pid) ? "true" : "false");
    }
    fputs("]\n", out);
}

/* probing cluster up, down. */
#include <stdio.h>
#include <string.h>

#include "cli/cluster/cluster.h"
#include "cli/print/out.h"

static bool print_configuration(const struct prb_cluster_up_options *options, struct prb_error *err)
{
    PRB_AUTO_FREE char *text = prb_cluster_configuration(options, err);
    if (text)
        fputs(text, stdout);
    return text != NULL;
}

/* As a shell takes it back. */
static void print_word(const char *text)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "/._-+=:,@%";
    if (text[strspn(text, plain)] == '\0') {
        fputs(text, stdout);
        return;
    }
    putchar('\'');
    for (; *text; text++)
        if (*text == '\'')
            fputs("'\\''", stdout);
        else
            putchar(*text);
    putchar('\'');
}

bool prb_cli_cluster_up(const struct prb_run *run, struct prb_error *err)
{
    struct prb_cluster_bus bus;
    const struct prb_cluster_up_options options = {
        .listen = run->options[PRB_CLUSTER_LISTEN].text,
        .store = run->options[PRB_CLUSTER_STORE].text,
    };
    if (run->options[PRB_CLUSTER_PRINT].count)
        return print_configuration(&options, err);
    if (!prb_cluster_up(&options, &bus, err))
        return false;
    printf("the bus %s on %s, port %d; its files are in ", bus.already ? "runs already" : "runs",
           bus.host, bus.port);
    prb_out_text(stdout, bus.folder);
    puts("\nthose that ask need look (or control, eval); where no home is shared, copy agent to "
         "the other hosts and join each by");
    fputs("probing cluster attach --bus ", stdout);
    char agent[sizeof bus.folder + 8];
    snprintf(agent, sizeof agent, "%s/agent", bus.folder);
    print_word(agent);
    putchar('\n');
    return true;
}

bool prb_cli_cluster_down(const struct prb_run *run, struct prb_error *err)
{
    struct prb_cluster_bus bus;
    bool was_running;
    (void)run;
    if (!prb_cluster_down(&bus, &was_running, err))
        return false;
    puts(was_running ? "the bus has ended" : "no bus of yours runs");
    return true;
}

/*
 * Turns recording of PyTorch on and off in a process that has a probe.  toggle PID TURNS: again and again; prints
 * JSON.  toggle PID: as each line of standard input says, which is answered with a line.  Each time
 * it waits until the hooks are in, or out; for a line it also tells the probe about the modules, as
 * `probing config` does, whose addresses must not change.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "inject/control.h"

PRB_DEFINE_AUTO_PTR(prb_target, struct prb_target, prb_target_close)

#define KEY "probing.torch.profiling"
#define WAIT_S 30.0
#define PAUSE_NS 20000

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static bool turn(struct prb_control *control, const char *value, struct prb_error *err)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    bool on = strcmp(value, "off") != 0, is = !on;
    char state[1200] = "";
    int64_t steps;
    if (!prb_control_config_set(control, KEY, value, err))
        return false;
    for (double began = now(); is != on && now() - began < WAIT_S; nanosleep(&pause, NULL)) {
        if (!prb_control_torch(control, NULL, state, sizeof state, &steps, err))
            return false;
        is = on ? strncmp(state, "on", 2) == 0 : *state;
    }
    if (is != on)
        snprintf(err->text, sizeof err->text, "after \"%s\" recording is \"%.200s\"", value, state);
    return is == on;
}

static bool turns(struct prb_control *control, long count, struct prb_error *err)
{
    double began = now();
    long done = 0;
    while (done < count && turn(control, "rate=1", err) && turn(control, "off", err))
        done++;
    printf("{\"turns\": %ld, \"ms\": %.3f}\n", done, 1e3 * (now() - began));
    return done == count;
}

static bool follow_lines(struct prb_control *control, pid_t pid, struct prb_error *err)
{
    PRB_AUTO(prb_target) struct prb_target *target = prb_target_open_pid(pid, err);
    PRB_AUTO_FREE char *plan = target ? prb_torch_plan(target, err) : NULL;
    char line[256], state[1200];
    int64_t steps;
    while (plan && fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = '\0';
        if (!turn(control, line, err) ||
            (strcmp(line, "off") != 0 &&
             !prb_control_torch(control, plan, state, sizeof state, &steps, err)))
            return false;
        puts(line);
        fflush(stdout);
    }
    return plan;
}

int main(int argc, char **argv)
{
    struct prb_error err = {0};
    if (argc < 2 || argc > 3)
        return 2;
    pid_t pid = atoi(argv[1]);
    struct prb_control *control = prb_control_open(pid, &err);
    bool done = control && (argc == 3 ? turns(control, atol(argv[2]), &err)
                                      : follow_lines(control, pid, &err));
    if (!done)
        fprintf(stderr, "toggle: %s\n", err.text);
    prb_control_close(control);
    return !done;
}

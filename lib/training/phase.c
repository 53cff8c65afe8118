/* Rules and their order: see phase.h. */
#include "training/phase.h"

#include <string.h>

static const struct rule {
    enum prb_phase phase;
    const char *file, *functions;
} rules[] = {
#define RULE(phase, file, functions) {PRB_PHASE_##phase, file, functions},
#include "training/phases.def"
#undef RULE
};

const char *prb_phase_name(enum prb_phase phase)
{
    static const char *const names[] = {
        [PRB_PHASE_OTHER] = "other",
        [PRB_PHASE_DATA] = "data",
        [PRB_PHASE_FORWARD] = "forward",
        [PRB_PHASE_BACKWARD] = "backward",
        [PRB_PHASE_OPTIMIZER] = "optimizer",
        [PRB_PHASE_ZERO_GRAD] = "zero_grad",
        [PRB_PHASE_COMMUNICATION] = "communication",
        [PRB_PHASE_CHECKPOINT] = "checkpoint",
    };
    return names[phase];
}

const char *prb_phase_activity_name(enum prb_phase_activity activity)
{
    static const char *const names[] = {
        [PRB_ACTIVITY_COMMUNICATION] = "communication",
        [PRB_ACTIVITY_RECOMPUTE] = "recompute",
        [PRB_ACTIVITY_WAIT] = "wait",
    };
    return activity == PRB_ACTIVITY_NONE ? NULL : names[activity];
}

/* Whether a path ends in this file, or lies below this folder. */
static bool is_in(const char *path, const char *file)
{
    size_t len = strlen(file), whole = strlen(path);
    if (!len)
        return true;
    if (file[len - 1] != '/')
        return whole >= len && strcmp(path + whole - len, file) == 0 &&
               (whole == len || path[whole - len - 1] == '/');
    for (const char *at = strstr(path, file); at; at = strstr(at + 1, file))
        if (at == path || at[-1] == '/')
            return true;
    return false;
}

/* Whether it is one of the words, or there are none. */
static bool is_among(const char *words, const char *name)
{
    size_t len = strlen(name);
    for (const char *at = words; *at; at += strspn(at, " ")) {
        size_t word = strcspn(at, " ");
        if (word == len && memcmp(at, name, len) == 0)
            return true;
        at += word;
    }
    return !*words;
}

enum prb_phase prb_phase_of_function(const char *filename, const char *name)
{
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (is_among(rules[i].functions, name) && is_in(filename, rules[i].file))
            return rules[i].phase;
    return PRB_PHASE_OTHER;
}

static bool begins(enum prb_phase now, enum prb_phase function)
{
    return now == PRB_PHASE_OTHER ||
           (now == PRB_PHASE_OPTIMIZER &&
            (function == PRB_PHASE_FORWARD || function == PRB_PHASE_BACKWARD ||
             function == PRB_PHASE_DATA));
}

void prb_phase_enter(struct prb_phase_state *state, enum prb_phase function)
{
    if (function == PRB_PHASE_OTHER)
        return;
    if (function == PRB_PHASE_CLOSURE)
        state->phase = state->phase == PRB_PHASE_OPTIMIZER ? PRB_PHASE_OTHER : state->phase;
    else if (function == PRB_PHASE_WAIT)
        state->activity = PRB_ACTIVITY_WAIT;
    else if (begins(state->phase, function))
        *state = (struct prb_phase_state){function, PRB_ACTIVITY_NONE};
    else if (function == PRB_PHASE_COMMUNICATION && state->phase != PRB_PHASE_COMMUNICATION)
        state->activity = PRB_ACTIVITY_COMMUNICATION;
    else if (function == PRB_PHASE_FORWARD && state->phase == PRB_PHASE_BACKWARD)
        state->activity = PRB_ACTIVITY_RECOMPUTE;
}

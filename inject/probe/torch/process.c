/* Whose rows these are, for who reads them when the process has ended. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/rank_variables.h"
#include "inject/probe/socket_path.h"
#include "inject/probe/torch/torch.h"

#define ENVIRONMENT_MAX (1 << 20)
#define ROLE_MAX 200

static int number_of(const char *environment, size_t len, const char *const *names)
{
    for (; *names; names++) {
        char *end;
        const char *text = prb_socket_path_variable(environment, len, *names);
        long value = strtol(text, &end, 10);
        if (end != text && !*end && value >= 0 && value <= INT_MAX)
            return (int)value;
    }
    return -1;
}

void prb_torch_record_process(void)
{
    static const char *const ranks[] = {PRB_RANK_VARIABLES, NULL};
    static const char *const sizes[] = {PRB_WORLD_SIZE_VARIABLES, NULL};
    PRB_AUTO_FREE char *text = malloc(ENVIRONMENT_MAX);
    long got = text ? prb_socket_path_self("environ", text, ENVIRONMENT_MAX) : -1;
    size_t len = got > 0 ? (size_t)got : 0;
    int rank = len ? number_of(text, len, ranks) : -1,
        size = len ? number_of(text, len, sizes) : -1;
    const char *role = len ? prb_socket_path_variable(text, len, "ROLE_NAME") : "";
    int64_t job = rank < 0 ? -1 : prb_trace_word((uint64_t)rank, size < 0 ? 0 : (uint64_t)size);
    size_t role_len = strnlen(role, ROLE_MAX);
    prb_torch_record_name(PRB_TRACE_KIND_PROCESS, getpid(), role_len ? role : NULL, role_len, NULL,
                          job);
}

/*
 * What a tool tells: lines of names, of optimizers, of the anchor, of the program's own counter.
 * The answer says how far recording is.  Lines that cannot be parsed are left out: they only name.
 *
 *   module ADDRESS ROOT NAME      optimizer ADDRESS NUMBER CLASS
 *   anchor ADDRESS                offset NUMBER COUNTER            (addresses in hexadecimal)
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inject/probe/server/request.h"
#include "inject/probe/torch/ending.h"
#include "inject/probe/torch/torch.h"

#define LINE_LONGEST 4096

/* A number and the blank behind it. */
static bool take_number(char **at, int base, int64_t *out)
{
    char *end;
    *out = base == 16 ? (int64_t)strtoull(*at, &end, base) : strtoll(*at, &end, base);
    if (end == *at || (*end && *end != ' '))
        return false;
    *at = end + (*end == ' ');
    return true;
}

static char *behind(char *line, const char *word)
{
    size_t len = strlen(word);
    return strncmp(line, word, len) == 0 ? line + len : NULL;
}

static void tell_line(char *line)
{
    char *at;
    int64_t address, number;
    if ((at = behind(line, "module ")) && take_number(&at, 16, &address) &&
        take_number(&at, 16, &number)) {
        prb_torch_record_name(PRB_TRACE_KIND_MODULE, address, at, strlen(at), NULL, number);
        prb_torch_ending_module((uintptr_t)address, at);
    } else if ((at = behind(line, "optimizer ")) && take_number(&at, 16, &address) &&
               take_number(&at, 10, &number)) {
        prb_torch_record_name(PRB_TRACE_KIND_OPTIMIZER, address, NULL, 0, at, number);
        prb_torch_ending_optimizer((uintptr_t)address, at, number);
    } else if ((at = behind(line, "anchor ")) && take_number(&at, 16, &address)) {
        prb_torch_anchor((uintptr_t)address, address == 0);
        prb_torch_ending_told();
    } else if ((at = behind(line, "offset ")) && take_number(&at, 10, &number)) {
        prb_torch_set_offset(number, at);
    }
}

static void tell(const char *text, size_t len)
{
    char line[LINE_LONGEST];
    while (len) {
        const char *end = memchr(text, '\n', len);
        size_t here = end ? (size_t)(end - text) : len;
        if (here < sizeof line && !memchr(text, '\0', here)) {
            memcpy(line, text, here);
            line[here] = '\0';
            tell_line(line);
        }
        here += end != NULL;
        text += here;
        len -= here;
    }
}

static void begin(struct prb_request *request, const struct prb_message *message)
{
    PRB_AUTO(prb_buf) struct prb_buf fields = {0};
    const char *text;
    size_t len;
    char state[PRB_TORCH_STATE_MAX];
    if (atomic_load(&prb_torch.on) && prb_message_text(message, PRB_FLD_VALUE, &text, &len))
        tell(text, len);
    prb_torch_state(state, sizeof state);
    prb_fields_text(&fields, PRB_FLD_TEXT, state, strlen(state));
    prb_fields_number(&fields, PRB_FLD_COUNT, (uint64_t)prb_torch_steps_ended());
    prb_request_end(request, &fields);
}

const struct prb_request_kind prb_request_torch = {
    .type = PRB_MSG_TORCH, .name = "torch", .begin = begin};

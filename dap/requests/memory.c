/* readMemory, writeMemory and disassemble. */
#include <string.h>

#include "dap/client/sources.h"
#include "dap/requests/stack.h"
#include "dap/requests/variables.h"

#define READ_AT_ONCE (4 << 20) /* bytes of an answer; the client asks for the rest */

static bool take_range(const json_t *arguments, const char **reference_out, json_int_t *offset_out,
                       struct prb_error *err)
{
    if (!prb_dap_get_string(arguments, "memoryReference", reference_out, err) ||
        !prb_dap_get_integer(arguments, "offset", offset_out, err))
        return false;
    return *reference_out || prb_fail(err, PRB_USAGE, "memoryReference is missing");
}

static bool handle_read(struct prb_dap_session *session, json_t *arguments, json_t **body_out,
                        struct prb_error *err)
{
    const char *reference = NULL;
    json_int_t offset = 0, count = 0;
    if (!take_range(arguments, &reference, &offset, err) ||
        !prb_dap_get_integer(arguments, "count", &count, err))
        return false;
    if (count < 0)
        return prb_fail(err, PRB_USAGE, "count must be at least 0");
    json_t *wanted = json_pack("{s:s, s:I, s:I}", "memoryReference", reference, "offset", offset,
                               "count", count < READ_AT_ONCE ? count : (json_int_t)READ_AT_ONCE);
    *body_out = prb_dap_ask(session, "read_memory", wanted, 0, err);
    json_decref(wanted);
    return *body_out != NULL;
}

const struct prb_dap_request prb_dap_read_memory = {
    .command = "readMemory",
    .capabilities = "supportsReadMemoryRequest",
    .method = "read_memory",
    .when = PRB_DAP_ATTACHED,
    .handle = handle_read,
};

static bool handle_write(struct prb_dap_session *session, json_t *arguments, json_t **body_out,
                         struct prb_error *err)
{
    const char *reference = NULL, *data = NULL;
    json_int_t offset = 0;
    if (!take_range(arguments, &reference, &offset, err) ||
        !prb_dap_get_string(arguments, "data", &data, err))
        return false;
    if (!data)
        return prb_fail(err, PRB_USAGE, "writeMemory needs data");
    json_t *answer = prb_dap_ask(session, "write_memory", arguments, 0, err);
    if (!answer)
        return false;
    json_int_t written = json_integer_value(json_object_get(answer, "bytesWritten"));
    if (session->client.memory && written)
        prb_dap_event(session, "memory",
                      json_pack("{s:s, s:I, s:I}", "memoryReference", reference, "offset", offset,
                                "count", written));
    prb_dap_invalidate(session);
    *body_out = answer;
    return true;
}

const struct prb_dap_request prb_dap_write_memory = {
    .command = "writeMemory",
    .capabilities = "supportsWriteMemoryRequest",
    .method = "write_memory",
    .setting = "allowWriteMemory",
    .when = PRB_DAP_ATTACHED,
    .handle = handle_write,
};

/* The code of a frame, by the number that stackTrace gave, or an address from an earlier answer. */
static json_t *code_wanted(const json_t *arguments, const char *reference, struct prb_error *err)
{
    static const char *const numbers[] = {"offset", "instructionOffset", "instructionCount"};
    json_t *wanted = json_object();
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        json_int_t number = 0;
        if (!prb_dap_get_integer(arguments, numbers[i], &number, err)) {
            json_decref(wanted);
            return NULL;
        }
        json_object_set_new(wanted, numbers[i], json_integer(number));
    }
    if (strncmp(reference, PRB_DAP_FRAME_ADDRESS, sizeof PRB_DAP_FRAME_ADDRESS - 1) == 0)
        json_object_set_new(
            wanted, "frameId",
            json_integer(strtoll(reference + sizeof PRB_DAP_FRAME_ADDRESS - 1, NULL, 10)));
    else
        json_object_set_new(wanted, "memoryReference", json_string(reference));
    return wanted;
}

static bool handle_disassemble(struct prb_dap_session *session, json_t *arguments,
                               json_t **body_out, struct prb_error *err)
{
    const char *reference = NULL;
    json_int_t offset = 0;
    json_t *one;
    size_t i;
    if (!take_range(arguments, &reference, &offset, err))
        return false;
    json_t *wanted = code_wanted(arguments, reference, err);
    json_t *answer = wanted ? prb_dap_ask(session, "disassemble", wanted, 0, err) : NULL;
    json_decref(wanted);
    json_array_foreach(json_object_get(answer, "instructions"), i, one)
    {
        json_t *place = json_object_get(one, "location");
        const char *path = json_string_value(json_object_get(place, "path"));
        json_t *source = path ? prb_dap_source_json(session, path, 0, true) : NULL;
        if (source)
            json_object_set_new(one, "location", source);
        const json_t *line = json_object_get(one, "line");
        if (json_is_integer(line))
            json_object_set_new(one, "line",
                                json_integer(prb_dap_line_out(session, json_integer_value(line))));
    }
    *body_out = answer;
    return answer != NULL;
}

const struct prb_dap_request prb_dap_disassemble = {
    .command = "disassemble",
    .capabilities = "supportsDisassembleRequest",
    .method = "disassemble",
    .when = PRB_DAP_STOPPED,
    .handle = handle_disassemble,
};

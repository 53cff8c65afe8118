/* Blocks are tried whole at each line, as the REPL of the command line does. */
#include "serve/text/text_python.h"

#include <string.h>

#include "base/error.h"
#include "inject/inject.h"

#define BLOCK_MAX (1u << 20)

PRB_DEFINE_AUTO(prb_eval_result, struct prb_eval_result, prb_eval_result_free)

static void leave(struct prb_text_python *python)
{
    if (python->control)
        prb_control_close(python->control);
    python->control = NULL;
    python->pid = 0;
    prb_buf_deinit(&python->block);
    python->block = (struct prb_buf){0};
}

void prb_text_python_deinit(struct prb_text_python *python) { leave(python); }

static bool reach(struct prb_text_python *python, pid_t pid, struct prb_error *err)
{
    struct prb_inject_report report;
    if (python->control && python->pid == pid)
        return true;
    leave(python);
    python->control = prb_ensure_probe(pid, &report, err);
    python->pid = pid;
    return python->control != NULL;
}

static bool add(struct prb_buf *block, const char *line, struct prb_error *err)
{
    if (block->len + strlen(line) > BLOCK_MAX)
        return prb_fail(err, PRB_USAGE, "the block is longer than %u bytes", BLOCK_MAX);
    if (block->len)
        prb_buf_addc(block, '\n');
    prb_buf_adds(block, line);
    return prb_buf_ok(block) || prb_nomem(err);
}

bool prb_text_python_line(struct prb_text_python *python, const struct prb_text_line *line,
                          struct prb_error *err)
{
    PRB_AUTO(prb_eval_result) struct prb_eval_result result = {0};
    if (!reach(python, line->pid, err) || !add(&python->block, line->text, err)) {
        prb_buf_deinit(&python->block);
        python->block = (struct prb_buf){0};
        return false;
    }
    const struct prb_eval_options options = {.mode = PRB_EVAL_SINGLE,
                                             .code = python->block.data,
                                             .code_len = python->block.len,
                                             .output = line->output,
                                             .cancelled = line->cancelled,
                                             .context = line->context};
    bool ok = prb_control_eval(python->control, &options, &result, err);
    if (ok && result.incomplete)
        return true;
    prb_buf_deinit(&python->block);
    python->block = (struct prb_buf){0};
    if (!ok) {
        prb_explain_gil(line->pid, err);
        if (err->code == PRB_GONE)
            leave(python);
        return false;
    }
    size_t len = result.text && (result.raised || !result.none) ? strlen(result.text) : 0;
    if (len && line->output(line->context, result.raised ? 2 : 1, result.text, len) &&
        result.text[len - 1] != '\n')
        line->output(line->context, 1, "\n", 1);
    return true;
}

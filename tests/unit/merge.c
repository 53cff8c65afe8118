/* native/merge: synthetic native stacks and Python runs, each interpreter's anchor, and what is
 * left out. */
#include "unit.h"

#include <stdio.h>

#include "native/unwinder.h"

#define STACK 0x10000 /* where the synthetic stacks begin */
#define SPAN 0x100    /* bytes of one native frame, unless told */
#define FRAMES 32

static struct prb_map first_map = {.path = ""};
static struct prb_module interpreter = {.path = "/usr/lib/libpython.so", .first = &first_map};
static struct prb_module other = {.path = "/usr/lib/other.so", .start = 1, .first = &first_map};

struct scene {
    struct prb_unwinder u;
    struct prb_py py;
    struct prb_native_frame native[FRAMES];
    struct prb_native_stack stack;
    uint8_t bytes[SPAN * FRAMES];
    struct prb_thread_copy copy;
    struct prb_raw_frame python[2][FRAMES];
    struct prb_raw_thread threads[2];
    struct prb_merged_row *rows;
    size_t count;
    bool sure;
};

static int setup(void **state)
{
    struct scene *scene = calloc(1, sizeof *scene);
    scene->py.module = &interpreter;
    scene->py.layout.trait[PRB_TRAIT_anchor] = PRB_anchor_SHIM_ADDRESS;
    scene->stack.frames = scene->native;
    scene->copy = (struct prb_thread_copy){
        .stack_start = STACK, .stack = scene->bytes, .stack_len = sizeof scene->bytes};
    for (int t = 0; t < 2; t++)
        scene->threads[t].frames = scene->python[t];
    *state = scene;
    return 0;
}

static int teardown(void **state)
{
    struct scene *scene = *state;
    prb_arena_deinit(&scene->u.arena);
    free(scene);
    return 0;
}

/* Push a native frame further out. */
static void native(struct scene *scene, struct prb_module *module, const char *symbol)
{
    prb_addr sp = STACK + SPAN * scene->stack.count;
    scene->native[scene->stack.count++] = (struct prb_native_frame){
        .pc = 0x400000, .sp = sp, .cfa = sp + SPAN, .module = module, .symbol = symbol};
}

/* An address within native frame i; a word put there. */
static prb_addr in_frame(size_t i) { return STACK + SPAN * i + 0x40; }
static void spill(struct scene *scene, size_t i, uint64_t word)
{
    memcpy(scene->bytes + SPAN * i + 0x38, &word, sizeof word);
}

/* Push a Python frame further out, whose code is told by a letter. */
static void python(struct scene *scene, int t, char letter, bool entry, prb_addr anchor)
{
    struct prb_raw_thread *thread = &scene->threads[t];
    thread->frames[thread->frame_count++] =
        (struct prb_raw_frame){.frame = 0x7000 + (prb_addr)letter * 0x10,
                               .code = (prb_addr)letter,
                               .entry = entry,
                               .anchor = anchor};
}

/* "[sleep] a b [map]": Python frames by letter, native ones by symbol. */
static void expect(struct scene *scene, size_t threads, bool sure, const char *wanted)
{
    const struct prb_raw_thread *list[] = {&scene->threads[0], &scene->threads[1]};
    struct prb_error err;
    assert_ok(prb_merge(&scene->u, &scene->py, &scene->copy, &scene->stack, list, threads,
                        &scene->rows, &scene->count, &scene->sure, &err),
              err);
    char text[1024] = "";
    for (size_t i = 0; i < scene->count; i++) {
        const struct prb_merged_row *row = &scene->rows[i];
        size_t len = strlen(text);
        if (row->python)
            snprintf(text + len, sizeof text - len, "%s%c", i ? " " : "", (char)row->python->code);
        else
            snprintf(text + len, sizeof text - len, "%s[%s]", i ? " " : "",
                     row->native->symbol ? row->native->symbol : "?");
    }
    assert_string_equal(text, wanted);
    assert_int_equal(scene->sure, sure);
}

static void callbacks_by_shim(void **state)
{
    struct scene *scene = *state;
    native(scene, &other, "nanosleep");
    native(scene, &interpreter, "time_sleep");
    native(scene, &interpreter, "_PyEval_EvalFrameDefault");
    native(scene, &interpreter, "_PyEval_Vector");
    native(scene, &interpreter, "map_next");
    native(scene, &interpreter, "_PyEval_EvalFrameDefault.cold");
    native(scene, &interpreter, "PyEval_EvalCode");
    native(scene, &interpreter, "Py_BytesMain");
    native(scene, &other, "__libc_start_main");
    python(scene, 0, 'a', false, 0);
    python(scene, 0, 'b', true, in_frame(2));
    python(scene, 0, 'c', true, in_frame(5));
    expect(scene, 1, true, "[nanosleep] [time_sleep] a b [map_next] c [__libc_start_main]");
}

/* Another module's function of the same name is no machinery of the interpreter. */
static void only_the_interpreter_has_machinery(void **state)
{
    struct scene *scene = *state;
    native(scene, &other, "PyEval_EvalCode");
    native(scene, &interpreter, "_PyEval_EvalFrameDefault");
    native(scene, &other, "main");
    python(scene, 0, 'a', true, in_frame(1));
    expect(scene, 1, true, "[PyEval_EvalCode] a [main]");
}

static void tail_calls(void **state)
{
    struct scene *scene = *state;
    native(scene, &interpreter, "long_add");
    native(scene, &interpreter, "_TAIL_CALL_BINARY_OP.llvm.123");
    native(scene, &interpreter, "_PyEval_EvalFrameDefault");
    native(scene, &interpreter, "_start");
    python(scene, 0, 'a', true, in_frame(2));
    expect(scene, 1, true, "[long_add] a");
}

/* Without any symbol: where the thread is remains, what lies between Python frames does not. */
static void stripped(void **state)
{
    struct scene *scene = *state;
    native(scene, &interpreter, NULL);
    native(scene, &interpreter, NULL);
    native(scene, &interpreter, NULL);
    native(scene, &other, NULL);
    native(scene, &interpreter, NULL);
    python(scene, 0, 'a', true, in_frame(1));
    python(scene, 0, 'b', true, in_frame(4));
    expect(scene, 1, true, "[?] a [?] b");
}

/* Up to 3.9: a callee of the evaluator saves a register that holds the same frame. */
static void frame_pointers(void **state)
{
    struct scene *scene = *state;
    scene->py.layout.trait[PRB_TRAIT_anchor] = PRB_anchor_FRAME_POINTER;
    python(scene, 0, 'a', true, 0);
    python(scene, 0, 'b', true, 0);
    for (int i = 0; i < 2; i++)
        scene->python[0][i].anchor = scene->python[0][i].frame;
    native(scene, &interpreter, "builtin_id");
    native(scene, &interpreter, "_PyEval_EvalFrameDefault");
    native(scene, &interpreter, "function_code_fastcall");
    native(scene, &interpreter, "_PyEval_EvalFrameDefault");
    spill(scene, 0, scene->python[0][0].frame);
    spill(scene, 1, scene->python[0][0].frame);
    spill(scene, 2, scene->python[0][1].frame);
    spill(scene, 3, scene->python[0][1].frame);
    expect(scene, 1, true, "[builtin_id] a b");
}

static void frame_pointers_stripped(void **state)
{
    struct scene *scene = *state;
    scene->py.layout.trait[PRB_TRAIT_anchor] = PRB_anchor_FRAME_POINTER;
    python(scene, 0, 'a', true, 0);
    python(scene, 0, 'b', true, 0);
    for (int i = 0; i < 2; i++)
        scene->python[0][i].anchor = scene->python[0][i].frame;
    for (int i = 0; i < 4; i++)
        native(scene, &interpreter, NULL);
    scene->native[0].cfa =
        scene->native[0].sp + 0x40; /* a small one that carries the pointer along */
    scene->native[2].cfa = scene->native[2].sp + 0x40;
    for (size_t i = 0; i < 4; i++)
        spill(scene, i, scene->python[0][i / 2].frame);
    expect(scene, 1, true, "[?] a b");
}

/* The innermost frame has not been spilled yet: the one evaluator that is left is its own. */
static void counted_between_neighbours(void **state)
{
    struct scene *scene = *state;
    native(scene, &interpreter, "_PyEval_EvalFrameDefault");
    native(scene, &other, "callback");
    native(scene, &interpreter, "_PyEval_EvalFrameDefault");
    python(scene, 0, 'a', true, 0);
    python(scene, 0, 'b', true, in_frame(2));
    expect(scene, 1, true, "a [callback] b");
}

static void two_interpreters(void **state)
{
    struct scene *scene = *state;
    native(scene, &interpreter, "_PyEval_EvalFrameDefault");
    native(scene, &interpreter, "interp_exec");
    native(scene, &interpreter, "_PyEval_EvalFrameDefault");
    python(scene, 0, 'm', true, in_frame(2));
    python(scene, 1, 's', true, in_frame(0));
    expect(scene, 2, true, "[interp_exec] m");
    assert_ptr_equal(scene->rows[1].thread, &scene->threads[0]);
}

/* The evaluator of a frame that was not pushed yet, or is popped already. */
static void call_that_begins(void **state)
{
    struct scene *scene = *state;
    native(scene, &interpreter, "_PyEval_EvalFrameDefault");
    native(scene, &interpreter, "_PyEval_EvalFrameDefault");
    python(scene, 0, 'a', true, in_frame(1));
    expect(scene, 1, true, "a");
}

/* A greenlet's stack goes on in frames of another one, which was switched out: its evaluator shows
 * as what it is. */
static void greenlet(void **state)
{
    struct scene *scene = *state;
    native(scene, &interpreter, "_PyEval_EvalFrameDefault");
    native(scene, &other, "g_switchstack");
    native(scene, &interpreter, "_PyEval_EvalFrameDefault");
    python(scene, 0, 'g', true, in_frame(0));
    expect(scene, 1, true, "g [g_switchstack] [_PyEval_EvalFrameDefault]");
}

static void machine_code(void **state)
{
    struct scene *scene = *state;
    native(scene, NULL, "jit");
    native(scene, NULL, "jit");
    native(scene, &interpreter, "_PyEval_EvalFrameDefault");
    native(scene, NULL, "numba");
    native(scene, &other, "dispatcher");
    native(scene, &interpreter, "_PyEval_EvalFrameDefault");
    python(scene, 0, 'a', true, in_frame(2));
    python(scene, 0, 'b', true, in_frame(5));
    expect(scene, 1, true, "a [numba] [dispatcher] b");
}

static void unsure_keeps_all(void **state)
{
    struct scene *scene = *state;
    native(scene, &interpreter, "_PyEval_EvalFrameDefault");
    native(scene, &interpreter, "Py_RunMain");
    python(scene, 0, 'a', true, 0x999999);
    python(scene, 0, 'b', true, in_frame(0));
    expect(scene, 1, false, "[_PyEval_EvalFrameDefault] [Py_RunMain] a b");
}

static void wrong_order_is_unsure(void **state)
{
    struct scene *scene = *state;
    native(scene, &interpreter, "_PyEval_EvalFrameDefault");
    native(scene, &interpreter, "_PyEval_EvalFrameDefault");
    python(scene, 0, 'a', true, in_frame(1));
    python(scene, 0, 'b', true, in_frame(0));
    expect(scene, 1, false, "[_PyEval_EvalFrameDefault] [_PyEval_EvalFrameDefault] a b");
}

static void one_frame_for_two_runs_is_unsure(void **state)
{
    struct scene *scene = *state;
    native(scene, &interpreter, "_PyEval_EvalFrameDefault");
    python(scene, 0, 'a', true, in_frame(0));
    python(scene, 0, 'b', true, in_frame(0) + 8);
    expect(scene, 1, false, "[_PyEval_EvalFrameDefault] a b");
}

/* The unwinder stopped early: the Python frames beyond are known to be further out. */
static void broken_native(void **state)
{
    struct scene *scene = *state;
    native(scene, &other, "kernel");
    native(scene, &interpreter, "_PyEval_EvalFrameDefault");
    native(scene, &other, "lost");
    scene->native[2].cfa = 0;
    scene->stack.broken = "no unwind information";
    python(scene, 0, 'a', true, in_frame(1));
    python(scene, 0, 'b', true, in_frame(3));
    python(scene, 0, 'c', true, in_frame(6));
    expect(scene, 1, true, "[kernel] a [lost] b c");
}

static void no_python_keeps_all(void **state)
{
    struct scene *scene = *state;
    native(scene, &interpreter, "Py_RunMain");
    native(scene, &interpreter, "_start");
    expect(scene, 1, true, "[Py_RunMain] [_start]");
    expect(scene, 0, true, "[Py_RunMain] [_start]");
}

static void glue_names(void **state)
{
    (void)state;
    assert_true(prb_is_call_machinery("_PyObject_VectorcallTstate.lto_priv.3"));
    assert_true(prb_is_call_machinery("slot_tp_call"));
    assert_true(prb_is_call_machinery("main"));
    assert_false(prb_is_call_machinery("mainloop"));
    assert_false(prb_is_call_machinery("take_gil"));
    assert_false(prb_is_call_machinery("PyEval_RestoreThread"));
    assert_true(prb_symbol_is("_PyEval_EvalFrameDefault.cold", "_PyEval_EvalFrameDefault"));
    assert_false(prb_symbol_is("_PyEval_EvalFrameDefaulty", "_PyEval_EvalFrameDefault"));
    assert_string_equal(prb_evaluator_symbol(0), "_PyEval_EvalFrameDefault");
    assert_null(prb_evaluator_symbol(2));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(callbacks_by_shim),
        TEST(only_the_interpreter_has_machinery),
        TEST(tail_calls),
        TEST(stripped),
        TEST(frame_pointers),
        TEST(frame_pointers_stripped),
        TEST(counted_between_neighbours),
        TEST(two_interpreters),
        TEST(call_that_begins),
        TEST(greenlet),
        TEST(machine_code),
        TEST(unsure_keeps_all),
        TEST(wrong_order_is_unsure),
        TEST(one_frame_for_two_runs_is_unsure),
        TEST(broken_native),
        TEST(no_python_keeps_all),
        cmocka_unit_test(glue_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

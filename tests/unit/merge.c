/*
 * native/merge: synthetic native stacks and Python frames, where each frame lands, and what is left
 * out.
 *
 * Each scene is a test.  To add one: an entry in `scenes`.
 */
#include "unit.h"

#include <stdio.h>

#include "native/unwinder.h"

#define STACK 0x10000 /* where the synthetic stacks begin */
#define SPAN 0x100    /* bytes of a native frame, unless the scene says otherwise */
#define NATIVE_MAX 12
#define PYTHON_MAX 4

static struct prb_map first_map = {.path = ""};
static struct prb_module libpython = {.path = "/usr/lib/libpython.so", .first = &first_map};
static struct prb_module other = {.path = "/usr/lib/other.so", .start = 1, .first = &first_map};

#define EVAL "_PyEval_EvalFrameDefault"
#define INSIDE(i) (STACK + SPAN * (i) + 0x40) /* an address in native frame i */
#define FRAME(name) (0x7000 + (name) * 0x10)  /* the address of a Python frame */

struct native {
    struct prb_module *module; /* NULL: machine code without a file */
    const char *symbol;        /* NULL: stripped */
    char saves;                /* the Python frame whose address lies in this frame, or 0 */
    unsigned bytes;            /* 0: SPAN */
};

struct python {
    char name;
    prb_addr anchor; /* 0: none */
    bool inlined;    /* runs in the evaluator of the next frame */
};

/* Frames stand innermost first.  In `merged`, Python frames are letters and native ones stand in
 * brackets. */
struct scene {
    const char *name;
    bool frame_pointer; /* the anchor is the address of the Python frame: up to 3.9 */
    struct native native[NATIVE_MAX];
    const char *broken; /* why the native walk ended early, or NULL */
    struct python python[PYTHON_MAX];
    struct python subinterpreter[PYTHON_MAX]; /* what the thread runs in another interpreter */
    bool no_thread;                           /* not a thread of Python */
    bool unsure;
    const char *merged;
};

static const struct scene scenes[] = {
    {
        .name = "callbacks_by_shim",
        .native = {{&other, "nanosleep"},
                   {&libpython, "time_sleep"},
                   {&libpython, EVAL},
                   {&libpython, "_PyEval_Vector"},
                   {&libpython, "map_next"},
                   {&libpython, EVAL ".cold"},
                   {&libpython, "PyEval_EvalCode"},
                   {&libpython, "Py_BytesMain"},
                   {&other, "__libc_start_main"}},
        .python = {{'a', .inlined = true}, {'b', INSIDE(2)}, {'c', INSIDE(5)}},
        .merged = "[nanosleep] [time_sleep] a b [map_next] c [__libc_start_main]",
    },
    {
        /* Another module's function of the same name is shown. */
        .name = "only_the_interpreter_has_machinery",
        .native = {{&other, "PyEval_EvalCode"}, {&libpython, EVAL}, {&other, "main"}},
        .python = {{'a', INSIDE(1)}},
        .merged = "[PyEval_EvalCode] a [main]",
    },
    {
        .name = "tail_calls",
        .native = {{&libpython, "long_add"},
                   {&libpython, "_TAIL_CALL_BINARY_OP.llvm.123"},
                   {&libpython, EVAL},
                   {&libpython, "_start"}},
        .python = {{'a', INSIDE(2)}},
        .merged = "[long_add] a",
    },
    {
        /* Without symbols: the innermost frame stays, the interpreter's between Python frames do
         * not. */
        .name = "stripped",
        .native = {{&libpython}, {&libpython}, {&libpython}, {&other}, {&libpython}},
        .python = {{'a', INSIDE(1)}, {'b', INSIDE(4)}},
        .merged = "[?] a [?] b",
    },
    {
        /* A function that the evaluator calls saves a register with the same address. */
        .name = "frame_pointers",
        .frame_pointer = true,
        .native = {{&libpython, "builtin_id", .saves = 'a'},
                   {&libpython, EVAL, .saves = 'a'},
                   {&libpython, "function_code_fastcall", .saves = 'b'},
                   {&libpython, EVAL, .saves = 'b'}},
        .python = {{'a', FRAME('a')}, {'b', FRAME('b')}},
        .merged = "[builtin_id] a b",
    },
    {
        /* Small frames only pass the pointer on. */
        .name = "frame_pointers_stripped",
        .frame_pointer = true,
        .native = {{&libpython, .saves = 'a', .bytes = 0x40},
                   {&libpython, .saves = 'a'},
                   {&libpython, .saves = 'b', .bytes = 0x40},
                   {&libpython, .saves = 'b'}},
        .python = {{'a', FRAME('a')}, {'b', FRAME('b')}},
        .merged = "[?] a b",
    },
    {
        /* The innermost frame has no anchor yet: the one evaluator that is left is its own. */
        .name = "counted_between_neighbours",
        .native = {{&libpython, EVAL}, {&other, "callback"}, {&libpython, EVAL}},
        .python = {{'a'}, {'b', INSIDE(2)}},
        .merged = "a [callback] b",
    },
    {
        /* The frames of the subinterpreter only occupy their place. */
        .name = "two_interpreters",
        .native = {{&libpython, EVAL}, {&libpython, "interp_exec"}, {&libpython, EVAL}},
        .python = {{'m', INSIDE(2)}},
        .subinterpreter = {{'s', INSIDE(0)}},
        .merged = "[interp_exec] m",
    },
    {
        /* The evaluator of a frame that was not pushed yet, or is popped already. */
        .name = "call_that_begins",
        .native = {{&libpython, EVAL}, {&libpython, EVAL}},
        .python = {{'a', INSIDE(1)}},
        .merged = "a",
    },
    {
        /* A greenlet's stack goes on in frames of another one, which was switched out: its
         * evaluator is shown as a native frame. */
        .name = "greenlet",
        .native = {{&libpython, EVAL}, {&other, "g_switchstack"}, {&libpython, EVAL}},
        .python = {{'g', INSIDE(0)}},
        .merged = "g [g_switchstack] [" EVAL "]",
    },
    {
        .name = "machine_code",
        .native = {{NULL, "jit"},
                   {NULL, "jit"},
                   {&libpython, EVAL},
                   {NULL, "numba"},
                   {&other, "dispatcher"},
                   {&libpython, EVAL}},
        .python = {{'a', INSIDE(2)}, {'b', INSIDE(5)}},
        .merged = "a [numba] [dispatcher] b",
    },
    {
        .name = "unsure_keeps_all",
        .native = {{&libpython, EVAL}, {&libpython, "Py_RunMain"}},
        .python = {{'a', 0x999999}, {'b', INSIDE(0)}},
        .unsure = true,
        .merged = "[" EVAL "] [Py_RunMain] a b",
    },
    {
        .name = "wrong_order_is_unsure",
        .native = {{&libpython, EVAL}, {&libpython, EVAL}},
        .python = {{'a', INSIDE(1)}, {'b', INSIDE(0)}},
        .unsure = true,
        .merged = "[" EVAL "] [" EVAL "] a b",
    },
    {
        .name = "one_evaluator_for_two_runs_is_unsure",
        .native = {{&libpython, EVAL}},
        .python = {{'a', INSIDE(0)}, {'b', INSIDE(0) + 8}},
        .unsure = true,
        .merged = "[" EVAL "] a b",
    },
    {
        /* The unwinder stopped early: the Python frames beyond are known to be further out. */
        .name = "broken_native",
        .native = {{&other, "kernel"}, {&libpython, EVAL}, {&other, "lost"}},
        .broken = "no unwind information",
        .python = {{'a', INSIDE(1)}, {'b', INSIDE(3)}, {'c', INSIDE(6)}},
        .merged = "[kernel] a [lost] b c",
    },
    {
        .name = "no_python_frame_keeps_all",
        .native = {{&libpython, "Py_RunMain"}, {&libpython, "_start"}},
        .merged = "[Py_RunMain] [_start]",
    },
    {
        .name = "no_python_thread_keeps_all",
        .native = {{&libpython, "Py_RunMain"}, {&libpython, "_start"}},
        .no_thread = true,
        .merged = "[Py_RunMain] [_start]",
    },
};

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* What prb_merge() reads. */
struct stage {
    struct prb_unwinder unwinder;
    struct prb_py py;
    struct prb_native_frame native[NATIVE_MAX];
    struct prb_native_stack stack;
    uint8_t bytes[SPAN * NATIVE_MAX];
    struct prb_thread_copy copy;
    struct prb_raw_frame python[2][PYTHON_MAX];
    struct prb_raw_thread threads[2];
};

static void set_native(struct stage *stage, const struct scene *scene)
{
    for (size_t i = 0; i < NATIVE_MAX; i++) {
        const struct native *from = &scene->native[i];
        if (!from->module && !from->symbol)
            break;
        prb_addr sp = STACK + SPAN * i;
        stage->native[i] = (struct prb_native_frame){.pc = 0x400000,
                                                     .sp = sp,
                                                     .cfa = sp + (from->bytes ? from->bytes : SPAN),
                                                     .module = from->module,
                                                     .symbol = from->symbol};
        uint64_t frame = FRAME((uint64_t)from->saves);
        if (from->saves)
            memcpy(stage->bytes + SPAN * i + 0x38, &frame, sizeof frame);
        stage->stack.count++;
    }
    if (scene->broken)
        stage->native[stage->stack.count - 1].cfa = 0;
    stage->stack.broken = scene->broken;
    stage->stack.frames = stage->native;
    stage->copy = (struct prb_thread_copy){
        .stack_start = STACK, .stack = stage->bytes, .stack_len = sizeof stage->bytes};
}

static void set_python(struct stage *stage, int t, const struct python *python)
{
    struct prb_raw_thread *thread = &stage->threads[t];
    thread->frames = stage->python[t];
    for (; thread->frame_count < PYTHON_MAX && python->name; python++)
        thread->frames[thread->frame_count++] =
            (struct prb_raw_frame){.frame = FRAME((prb_addr)python->name),
                                   .code = (prb_addr)python->name,
                                   .entry = !python->inlined,
                                   .anchor = python->anchor};
}

static void run_scene(void **state)
{
    const struct scene *scene = *state;
    struct stage stage = {.py.module = &libpython};
    stage.py.layout.trait[PRB_TRAIT_anchor] =
        scene->frame_pointer ? PRB_anchor_FRAME_POINTER : PRB_anchor_SHIM_ADDRESS;
    set_native(&stage, scene);
    set_python(&stage, 0, scene->python);
    set_python(&stage, 1, scene->subinterpreter);

    const struct prb_raw_thread *threads[] = {&stage.threads[0], &stage.threads[1]};
    size_t thread_count = scene->no_thread ? 0 : scene->subinterpreter[0].name ? 2 : 1;
    struct prb_merged_row *rows;
    size_t count;
    bool sure;
    struct prb_error err;
    assert_ok(prb_merge(&stage.unwinder, &stage.py, &stage.copy, &stage.stack, threads,
                        thread_count, &rows, &count, &sure, &err),
              err);
    char text[1024] = "";
    for (size_t i = 0; i < count; i++) {
        const char *between = i ? " " : "";
        size_t len = strlen(text);
        if (rows[i].python) {
            snprintf(text + len, sizeof text - len, "%s%c", between, (char)rows[i].python->code);
            assert_ptr_equal(rows[i].thread, threads[0]);
        } else {
            snprintf(text + len, sizeof text - len, "%s[%s]", between,
                     rows[i].native->symbol ? rows[i].native->symbol : "?");
        }
    }
    prb_arena_deinit(&stage.unwinder.arena);
    assert_string_equal(text, scene->merged);
    assert_int_equal(sure, !scene->unsure);
}

static void machinery_names(void **state)
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

int main(void)
{
    struct CMUnitTest tests[COUNT(scenes) + 1] = {cmocka_unit_test(machinery_names)};
    for (size_t i = 0; i < COUNT(scenes); i++)
        tests[i + 1] = (struct CMUnitTest){
            .name = scenes[i].name, .test_func = run_scene, .initial_state = (void *)&scenes[i]};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

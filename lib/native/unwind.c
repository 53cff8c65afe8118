/*
 * The walk: libunwind's remote accessors over the copied stack and the target's memory
 * (libunwind(3), "remote unwinding").
 *
 * Where libunwind has nothing to go by (code without unwind information: assembler kernels, machine
 * code made at run time; a register that /proc does not have) the caller is searched for among the
 * stack's words (scan.c).
 */
#include <string.h>

#include "native/step.h"

/* ---- accessors ---- */

/* What unw_proc_info_t's unwind_info begins with in every release of libunwind. */
struct rules {
    unw_word_t initial_start, initial_end, start, end;
};

static void note_rules(struct prb_unwinder *u, const unw_proc_info_t *proc)
{
    const struct rules *rules = proc->unwind_info;
    u->unknown_rules = 0;
    if (!rules || proc->unwind_info_size < (int)sizeof *rules)
        return;
    prb_unwind_rules_note(u, rules->initial_start, rules->initial_end);
    prb_unwind_rules_note(u, rules->start, rules->end);
}

static int find_proc_info(unw_addr_space_t space, unw_word_t ip, unw_proc_info_t *proc,
                          int need_info, void *arg)
{
    struct prb_unwinder *u = arg;
    const struct prb_unwind_table *table = prb_unwind_table(u, ip);
    int found = -UNW_ENOINFO;
    if (table) {
        unw_dyn_info_t info = {.start_ip = table->start,
                               .end_ip = table->end,
                               .format = UNW_INFO_FORMAT_REMOTE_TABLE,
                               .u.rti = {.segbase = table->header,
                                         .table_data = table->entries,
                                         .table_len = table->count}};
        found = u->lib->UNW_OBJ(dwarf_search_unwind_table)(space, ip, &info, proc, need_info, arg);
    }
    if (found < 0)
        u->missing = true;
    else if (need_info)
        note_rules(u, proc);
    return found;
}

static void put_unwind_info(unw_addr_space_t space, unw_proc_info_t *proc, void *arg)
{
    (void)space, (void)proc, (void)arg; /* libunwind's own pool */
}

static int no_dynamic_list(unw_addr_space_t space, unw_word_t *list, void *arg)
{
    (void)space, (void)list, (void)arg;
    return -UNW_ENOINFO;
}

/* A return address without its signature, any other word as it is: the rules that say which words are signed are not
 * known to libunwind before 1.8. */
static uint64_t unsigned_word(struct prb_unwinder *u, uint64_t word)
{
    uint64_t code = word & u->arch->code_mask;
    if (code == word)
        return word;
    const struct prb_pc *pc = prb_unwinder_pc(u, code);
    return pc->after_call || pc->signal_return ? code : word;
}

static int access_mem(unw_addr_space_t space, unw_word_t addr, unw_word_t *value, int write,
                      void *arg)
{
    (void)space;
    struct prb_unwinder *u = arg;
    uint64_t word;
    if (write || u->reads++ > PRB_STEP_READS_MAX || !prb_unwinder_word(u, addr, &word))
        return -UNW_EINVAL;
    *value = unsigned_word(u, word);
    prb_unwind_rules_hide(u, addr, value);
    return 0;
}

static int access_reg(unw_addr_space_t space, unw_regnum_t number, unw_word_t *value, int write,
                      void *arg)
{
    (void)space;
    struct prb_unwinder *u = arg;
    if (write)
        return -UNW_EREADONLYREG;
    for (unsigned i = 0; i < u->arch->register_count; i++)
        if (u->arch->registers[i].unwind == number && prb_register_known(&u->registers, i)) {
            *value = unsigned_word(u, u->registers.value[i]);
            return 0;
        }
    u->lacking = true;
    return -UNW_EBADREG;
}

static int access_fpreg(unw_addr_space_t space, unw_regnum_t number, unw_fpreg_t *value, int write,
                        void *arg)
{
    (void)space, (void)number, (void)value, (void)write, (void)arg;
    return -UNW_EBADREG;
}

static int no_resume(unw_addr_space_t space, unw_cursor_t *cursor, void *arg)
{
    (void)space, (void)cursor, (void)arg;
    return -UNW_EINVAL;
}

static int no_name(unw_addr_space_t space, unw_word_t addr, char *name, size_t len,
                   unw_word_t *offset, void *arg)
{
    (void)space, (void)addr, (void)name, (void)len, (void)offset, (void)arg;
    return -UNW_ENOINFO;
}

#define REGISTER_STATES 1024 /* program counters whose unwind rules libunwind caches */

/* libunwind 1.7 and 1.8 have more members than the header of 1.6 and the same soname, and look at them: whichever is
 * loaded finds that those are not given. */
static union {
    unw_accessors_t known;
    void (*all[PRB_ACCESSORS_MAX])(void);
} accessors = {.known = {
                   .find_proc_info = find_proc_info,
                   .put_unwind_info = put_unwind_info,
                   .get_dyn_info_list_addr = no_dynamic_list,
                   .access_mem = access_mem,
                   .access_reg = access_reg,
                   .access_fpreg = access_fpreg,
                   .resume = no_resume,
                   .get_proc_name = no_name,
               }};
_Static_assert(sizeof accessors.known < sizeof accessors, "room for the members of later versions");

struct prb_unwinder *prb_unwinder_new(struct prb_modules *modules, struct prb_mem *mem,
                                      struct prb_error *err)
{
    PRB_AUTO(prb_unwinder) struct prb_unwinder *u = calloc(1, sizeof *u);
    if (!u)
        return PRB_NULL(prb_nomem(err));
    u->modules = modules;
    u->mem = mem;
    u->arch = prb_arch_host();
    u->lib = prb_libunwind(err);
    if (!u->lib)
        return NULL;
    u->space = u->lib->unw_create_addr_space(&accessors.known, 0);
    if (!u->space || !prb_unwind_tables_follow(u, false))
        return PRB_NULL(prb_nomem(err));
    u->lib->unw_set_caching_policy(u->space, UNW_CACHE_GLOBAL);
    u->lib->unw_set_cache_size(u->space, REGISTER_STATES, 0);
    return PRB_STEAL(u);
}

void prb_unwinder_forget_memory(struct prb_unwinder *u)
{
    prb_unwinder_pages_forget(u, false);
    prb_arena_deinit(&u->arena);
    u->arena = (struct prb_arena){0};
}

uint64_t prb_unwinder_code(const struct prb_unwinder *u) { return u->code; }

void prb_unwinder_forget_all(struct prb_unwinder *u)
{
    uint64_t code = u->code;
    prb_unwinder_forget_memory(u);
    /* Without memory for it the old modules serve on. */
    prb_unwind_tables_follow(u, true);
    prb_unwinder_pages_forget(u, true);
    if (u->code != code)
        u->lib->unw_flush_cache(u->space, 0, 0);
}

void prb_unwinder_free(struct prb_unwinder *u)
{
    if (!u)
        return;
    if (u->space)
        u->lib->unw_destroy_addr_space(u->space);
    prb_unwinder_pages_free(u);
    prb_arena_deinit(&u->arena);
    prb_modules_deinit(&u->own);
    prb_stops_deinit(&u->stops);
    free(u->tables);
    free(u);
}

/* ---- the walk ---- */

struct walk {
    struct prb_unwinder *u;
    unw_cursor_t cursor;
    struct prb_native_frame *frames;
    size_t count, cap;
    bool suffices;
    const char *broken;
};

static void free_frames(struct walk *walk) { free(walk->frames); }
PRB_DEFINE_AUTO(walk, struct walk, free_frames)

static const char *const step_texts[] = {
    [PRB_STEP_LACKING] = "registers of this frame are not known",
    [PRB_STEP_MISSING] = "no unwind information for the code at",
    [PRB_STEP_BAD] = "unwind information leads nowhere for the code at",
};

/* The walk cannot go on from frame by the tables: guess.  False: it ends here. */
static bool go_by_scan(struct walk *walk, struct prb_native_frame *frame, enum prb_step why,
                       unw_cursor_t *before, struct prb_native_frame *next)
{
    struct prb_unwinder *u = walk->u;
    struct prb_registers registers;
    if (why == PRB_STEP_LACKING)
        walk->suffices = false;
    if (prb_scan_for_caller(u, before, frame->sp, &registers) &&
        prb_unwind_start(u, &registers, true, &walk->cursor)) {
        *next = (struct prb_native_frame){.pc = registers.value[u->arch->pc],
                                          .sp = registers.value[u->arch->sp],
                                          .returning = true,
                                          .guessed = true};
        return true;
    }
    walk->broken =
        prb_arena_printf(&u->arena, "%s 0x%llx", step_texts[why], (unsigned long long)frame->pc);
    return false;
}

static bool walk_on(struct walk *walk, struct prb_native_frame *frame,
                    struct prb_native_frame *next)
{
    struct prb_unwinder *u = walk->u;
    unw_cursor_t before = walk->cursor;
    const struct prb_pc *pc = prb_unwinder_pc(u, frame->pc);
    frame->signal = pc->signal_return;
    *next = (struct prb_native_frame){.returning = !frame->signal};
    enum prb_step step = PRB_STEP_MISSING;
    if (pc->executable || frame->returning)
        step = prb_unwind_step(u, &walk->cursor, frame->sp, frame->signal, &next->pc, &next->sp);
    if (step == PRB_STEP_END)
        return false;
    if (step != PRB_STEP_FRAME && !go_by_scan(walk, frame, step, &before, next))
        return false;
    frame->cfa = next->sp;
    return true;
}

void prb_unwinder_limit(struct prb_unwinder *u, size_t frames_max) { u->frames_max = frames_max; }

static bool walk_all(struct walk *walk, struct prb_native_frame frame, struct prb_error *err)
{
    for (;;) {
        if (walk->count >= (walk->u->frames_max ? walk->u->frames_max : PRB_NATIVE_FRAMES_MAX)) {
            walk->broken = "more native frames than are followed";
            return true;
        }
        if (!PRB_GROW(walk->frames, walk->count, walk->cap))
            return prb_nomem(err);
        struct prb_native_frame *here = &walk->frames[walk->count++], next;
        *here = frame;
        here->module = prb_modules_find(walk->u->modules, frame.pc - frame.returning);
        if (!walk_on(walk, here, &next))
            return true;
        /* The walk does not move: only a leaf function may, on an architecture with the return
         * address in a register. */
        if (next.sp == here->sp && next.pc == here->pc) {
            walk->broken = "the stack leads back to itself";
            return true;
        }
        frame = next;
    }
}

bool prb_unwind(struct prb_unwinder *u, const struct prb_thread_copy *copy,
                struct prb_native_stack *out, bool *suffices_out, struct prb_error *err)
{
    const struct prb_arch *arch = u->arch;
    PRB_AUTO(walk) struct walk walk = {.u = u, .suffices = true};
    if (!prb_register_known(&copy->registers, arch->sp) ||
        !prb_register_known(&copy->registers, arch->pc))
        return prb_fail(err, PRB_UNSUPPORTED, "no registers of this thread were saved");
    u->copy = copy;
    if (!prb_unwind_start(u, &copy->registers, false, &walk.cursor))
        return prb_fail(err, PRB_INTERNAL, "libunwind refuses the registers");
    struct prb_native_frame innermost = {.pc = copy->registers.value[arch->pc],
                                         .sp = copy->registers.value[arch->sp]};
    bool walked = walk_all(&walk, innermost, err);
    u->copy = NULL;
    if (!walked)
        return false;
    struct prb_native_stack stack = {.count = walk.count, .broken = walk.broken};
    stack.frames = prb_arena_alloc(&u->arena, walk.count * sizeof *stack.frames);
    if (!stack.frames)
        return prb_nomem(err);
    memcpy(stack.frames, walk.frames, walk.count * sizeof *stack.frames);
    *out = stack;
    *suffices_out = walk.suffices;
    return true;
}

/* What lies outside of all frames is not asked for again, and of many threads it would be much. */
static void keep_frames_only(struct prb_thread_copy *copy, const struct prb_native_stack *stack)
{
    prb_addr end = copy->stack_start, limit = copy->stack_start + copy->stack_len;
    for (size_t i = 0; i < stack->count; i++) {
        const struct prb_native_frame *frame = &stack->frames[i];
        prb_addr last = frame->cfa > frame->sp ? frame->cfa : frame->sp;
        if (last > end && last < limit)
            end = last;
        else if (last >= limit && frame->sp < limit && frame->sp >= copy->stack_start)
            return;
    }
    size_t len = (size_t)(end - copy->stack_start);
    uint8_t *less = len ? realloc(copy->stack, len) : NULL;
    if (less) {
        copy->stack = less;
        copy->stack_len = len;
    }
}

bool prb_thread_unwind(struct prb_unwinder *u, struct prb_proc *proc, pid_t tid, bool may_stop,
                       prb_during_stop_fn *during_stop, void *context,
                       struct prb_thread_copy *copy_out, struct prb_native_stack *stack_out,
                       struct prb_error *err)
{
    PRB_AUTO(prb_thread_copy) struct prb_thread_copy copy = {0};
    PRB_AUTO(prb_thread_copy) struct prb_thread_copy better = {0};
    bool suffices;
    if (!prb_thread_copy_take(proc, u->mem, tid, may_stop ? PRB_STOP_RUNNING : PRB_STOP_NEVER,
                              during_stop, context, &u->stops, &copy, err) ||
        !prb_unwind(u, &copy, stack_out, &suffices, err))
        return false;
    struct prb_native_stack again;
    if (!suffices && may_stop && prb_proc_live(proc) && copy.stopped == 0 &&
        prb_thread_copy_take(proc, u->mem, tid, PRB_STOP_USEFUL, during_stop, context, &u->stops,
                             &better, NULL) &&
        better.stopped > 0 && prb_unwind(u, &better, &again, &suffices, NULL)) {
        keep_frames_only(&better, &again);
        *stack_out = again;
        *copy_out = better;
        better.stack = NULL;
        return true;
    }
    keep_frames_only(&copy, stack_out);
    *copy_out = copy;
    copy.stack = NULL;
    return true;
}

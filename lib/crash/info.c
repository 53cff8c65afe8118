/* What a crash dump says of the crash itself: the lines of a text in the snapshot, which
 * inspect/crash.c reads. */
#include <ctype.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>

#include "base/file.h"
#include "crash/crash.h"

#define FRAME_BYTES 65536 /* between a stack's end and the pointer into it, at its overflow */
#define FRAMES_TOLD 64    /* of the stack that tells equal crashes */

static const struct {
    enum prb_crash_kind kind;
    const char *name;
} kinds[] = {{PRB_CRASH_SIGNAL, "signal"},
             {PRB_CRASH_EXCEPTION, "exception"},
             {PRB_CRASH_ASKED, "asked"},
             {PRB_CRASH_MEMORY, "memory"}};

static const char *kind_name(uint32_t kind)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].kind == kind)
            return kinds[i].name;
    return "?";
}

/* sigaction(2), si_code */
static const struct {
    int signal, code;
    const char *text;
} codes[] = {
    {SIGSEGV, SEGV_MAPERR, "nothing is mapped there"},
    {SIGSEGV, SEGV_ACCERR, "what is mapped there may not be used so"},
    {SIGBUS, BUS_ADRALN, "not aligned"},
    {SIGBUS, BUS_ADRERR, "beyond the end of the mapped file"},
    {SIGBUS, BUS_OBJERR, "hardware error"},
    {SIGBUS, BUS_MCEERR_AR, "memory failed"},
    {SIGFPE, FPE_INTDIV, "integer division by zero"},
    {SIGFPE, FPE_INTOVF, "integer overflow"},
    {SIGFPE, FPE_FLTDIV, "division by zero"},
    {SIGILL, ILL_ILLOPC, "illegal instruction"},
    {SIGILL, ILL_ILLOPN, "illegal operand"},
    {SIGTRAP, TRAP_BRKPT, "a trap of the program's own"},
    {SIGTRAP, SI_KERNEL, "a trap of the program's own"}, /* int3 */
};

static void add_line(struct prb_buf *out, const char *key, const char *value)
{
    if (!value)
        return;
    prb_buf_addf(out, "%s ", key);
    for (; *value; value++)
        prb_buf_addc(out, iscntrl((unsigned char)*value) ? ' ' : *value);
    prb_buf_addc(out, '\n');
}

/* A fault near the stack pointer: a frame of that many bytes did not fit. */
static bool is_at_stack_end(const struct prb_crash_facts *facts)
{
    prb_addr sp = facts->stack_pointer, address = facts->record->address;
    return facts->record->signal == SIGSEGV && sp > FRAME_BYTES && address >= sp - FRAME_BYTES &&
           address < sp + FRAME_BYTES;
}

void prb_crash_title(const struct prb_crash_facts *facts, struct prb_buf *out)
{
    const struct prb_crash_record *record = facts->record;
    const struct prb_exceptions *exceptions = facts->exceptions;
    const char *name = prb_crash_signal_name(record->signal);
    if (record->kind == PRB_CRASH_EXCEPTION && exceptions && exceptions->count) {
        const struct prb_exception *first = &exceptions->items[0];
        prb_buf_addf(out, "%s%s%s", first->type, *first->message ? ": " : "", first->message);
        return;
    }
    if (record->kind == PRB_CRASH_MEMORY || record->kind == PRB_CRASH_EXCEPTION) {
        prb_buf_adds(out, record->reason);
        return;
    }
    prb_buf_adds(out, name ? name : "a signal");
    if (record->code <= 0 && record->sender && record->sender != record->pid)
        prb_buf_addf(out, " from process %d", (int)record->sender);
    if (record->code > 0) {
        for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
            if (codes[i].signal == record->signal && codes[i].code == record->code)
                prb_buf_addf(out, ", %s", codes[i].text);
        prb_buf_addf(out, ", address 0x%" PRIx64, record->address);
        if (is_at_stack_end(facts))
            prb_buf_adds(out, " at the end of the stack");
    }
}

/* ---- where ---- */

static const char *file_name(const char *path) { return path ? prb_base_name(path) : "?"; }

static const struct prb_frame *first_of(const struct prb_thread *thread, enum prb_frame_kind kind)
{
    for (size_t i = 0; thread && i < thread->frame_count; i++)
        if (thread->frames[i].kind == kind)
            return &thread->frames[i];
    return NULL;
}

static const struct prb_frame *raised_at(const struct prb_crash_facts *facts)
{
    const struct prb_exceptions *exceptions = facts->exceptions;
    if (facts->record->kind != PRB_CRASH_EXCEPTION || !exceptions || !exceptions->count ||
        !exceptions->items[0].frame_count)
        return NULL;
    return &exceptions->items[0].frames[exceptions->items[0].frame_count - 1];
}

static void add_place(const struct prb_crash_facts *facts, struct prb_buf *out)
{
    PRB_AUTO(prb_buf) struct prb_buf place = {0};
    const struct prb_frame *raised = raised_at(facts);
    const struct prb_frame *python = raised ? raised : first_of(facts->thread, PRB_FRAME_PYTHON);
    const struct prb_frame *native = raised ? NULL : first_of(facts->thread, PRB_FRAME_NATIVE);
    if (python) {
        prb_buf_addf(&place, "%s (%s:%d)", python->qualname ? python->qualname : python->name,
                     file_name(python->filename), python->line);
        add_line(out, "function", python->qualname ? python->qualname : python->name);
        add_line(out, "file", python->filename);
        prb_buf_addf(out, "line %d\n", python->line);
    }
    if (native && native->name)
        prb_buf_addf(&place, "%sin %s", python ? " " : "", native->name);
    if (native)
        add_line(out, "native", native->name);
    if (place.len)
        add_line(out, "place", place.data);
}

/* FNV-1a over what equal crashes have in common: no addresses, no numbers of lines in libraries. */
static void mix(uint64_t *hash, const char *text)
{
    for (; text && *text; text++)
        *hash = (*hash ^ (uint8_t)*text) * UINT64_C(0x100000001b3);
    *hash = (*hash ^ 0xff) * UINT64_C(0x100000001b3);
}

static void mix_frame(uint64_t *hash, const struct prb_frame *frame)
{
    char line[16];
    snprintf(line, sizeof line, "%d", frame->line);
    mix(hash,
        frame->kind == PRB_FRAME_NATIVE && strncmp(frame->name, "0x", 2) == 0 ? "?" : frame->name);
    if (frame->kind != PRB_FRAME_PYTHON)
        return;
    mix(hash, file_name(frame->filename));
    mix(hash, line);
}

static uint64_t group_of(const struct prb_crash_facts *facts)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    const struct prb_exceptions *exceptions = facts->exceptions;
    bool raised = raised_at(facts) != NULL;
    mix(&hash, kind_name(facts->record->kind));
    mix(&hash, prb_crash_signal_name(facts->record->signal));
    if (raised) {
        const struct prb_exception *first = &exceptions->items[0];
        mix(&hash, first->type);
        for (size_t i = 0; i < first->frame_count && i < FRAMES_TOLD; i++)
            mix_frame(&hash, &first->frames[i]);
    }
    for (size_t i = 0;
         !raised && facts->thread && i < facts->thread->frame_count && i < FRAMES_TOLD; i++)
        mix_frame(&hash, &facts->thread->frames[i]);
    return hash;
}

void prb_crash_info(const struct prb_crash_facts *facts, struct prb_buf *out)
{
    const struct prb_crash_record *record = facts->record;
    PRB_AUTO(prb_buf) struct prb_buf title = {0};
    prb_crash_title(facts, &title);
    add_line(out, "kind", kind_name(record->kind));
    add_line(out, "title", title.data);
    prb_buf_addf(out, "time %.6f\npid %d\ntid %d\nsignal %d\ncode %d\n", (double)record->time / 1e9,
                 (int)record->pid, (int)record->tid, (int)record->signal, (int)record->code);
    add_line(out, "signal_name", prb_crash_signal_name(record->signal));
    if (record->code > 0 && record->signal)
        prb_buf_addf(out, "address %" PRIu64 "\n", record->address);
    if (record->reason[0])
        add_line(out, "reason", record->reason);
    if (facts->thread)
        add_line(out, "thread", facts->thread->name);
    if (facts->exceptions && facts->exceptions->count && record->kind == PRB_CRASH_EXCEPTION) {
        add_line(out, "exception", facts->exceptions->items[0].type);
        add_line(out, "message", facts->exceptions->items[0].message);
    }
    prb_buf_addf(out, "rank %d\nlocal_rank %d\nworld_size %d\n", facts->ranks.rank,
                 facts->ranks.local_rank, facts->ranks.world_size);
    add_place(facts, out);
    prb_buf_addf(out, "group %016" PRIx64 "\n", group_of(facts));
}

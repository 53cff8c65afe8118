/*
 * Sampling a synthetic interpreter of every layout: right, then with every single read failing,
 * then with a memory that ends, then with chains that loop or lead nowhere.  What cannot be read is
 * said; what is said is right.
 */
#include "unit.h"

#include "stack_image.h"

#define VERSIONS (sizeof image_versions / sizeof *image_versions)
#define FOR_EACH_VERSION(i) for (size_t i = 0; i < VERSIONS; i++)

/* Of a frame that was given out: the code's names and position, or that they cannot be read. */
static void check_code(struct stack_image *s, size_t k, bool must)
{
    struct prb_error err = {0};
    struct prb_py *py = &s->f.image.py;
    const struct prb_code_object *code = prb_code_get(py, s->codes[k], false, &err);
    if (!code) {
        assert_false(must);
        assert_int_not_equal(err.code, PRB_OK);
        return;
    }
    assert_string_equal(code->name, stack_names[k]);
    assert_string_equal(code->filename, "/some/file.py");
    if (PRB_HAS(&py->layout, code, qualname) && must)
        assert_string_equal(code->qualname, "Class.method");
    struct prb_position position = prb_code_position(py, code, STACK_INSTRUCTION);
    assert_int_equal(position.line, STACK_LINE);
    if (PRB_IS(&py->layout, line_table, LOCATIONS)) {
        assert_int_equal(position.column, STACK_COLUMN);
        assert_int_equal(position.end_column, STACK_END_COLUMN);
    }
}

/* Rows are the first of the true ones; fewer only when the thread says that it is broken. */
static void check_thread(struct stack_image *s, const struct prb_raw_thread *thread, bool must)
{
    size_t i = thread->tstate == s->threads[1];
    assert_int_equal(thread->tstate, s->threads[i]);
    assert_true(thread->frame_count <= STACK_FRAMES);
    assert_true(thread->frame_count == STACK_FRAMES || thread->broken.why);
    if (must) {
        assert_int_equal(thread->thread_id, 1000 + i);
        assert_false(thread->broken.why || thread->unstable);
    }
    for (size_t k = 0; k < thread->frame_count; k++) {
        assert_int_equal(thread->frames[k].frame, s->frames[i][k]);
        assert_int_equal(thread->frames[k].code, s->codes[k]);
        assert_int_equal(thread->frames[k].instruction, STACK_INSTRUCTION);
        check_code(s, k, must);
    }
    if (thread->frame_count == STACK_FRAMES && !thread->broken.why)
        assert_true(thread->frames[STACK_FRAMES - 1].entry);
    struct prb_error err = {0};
    if (thread->broken.why)
        prb_broken_error(&thread->broken, &err);
    assert_int_equal(err.code, thread->broken.why ? PRB_FAULT : PRB_OK);
}

static void check_all(struct stack_image *s, bool must)
{
    struct prb_error err = {0};
    PRB_AUTO(prb_sampler) struct prb_sampler *sampler = prb_sampler_new(&s->f.image.py, NULL, &err);
    assert_non_null(sampler);
    const struct prb_raw_stacks *stacks = prb_sampler_take(sampler, 0, &err);
    if (!stacks) {
        assert_false(must);
        assert_int_not_equal(err.code, PRB_OK);
        return;
    }
    assert_true(stacks->thread_count <= STACK_THREADS);
    assert_true(stacks->thread_count == STACK_THREADS || !stacks->whole);
    for (size_t i = 0; i < stacks->thread_count; i++)
        check_thread(s, &stacks->threads[i], must);
    if (must) {
        assert_int_equal(stacks->thread_count, STACK_THREADS);
        assert_int_equal(stacks->interpreter_count, 1);
        if (!PRB_IS(&s->f.image.py.layout, gil, NONE))
            assert_int_equal(stacks->interpreters[0].gil_holder, s->threads[0]);
    }
}

static void test_whole(void **state)
{
    (void)state;
    FOR_EACH_VERSION(version)
    {
        struct stack_image s;
        stack_image_init(&s, version);
        check_all(&s, true);
        stack_image_deinit(&s);
    }
}

/* Every read fails once; then every read from there on. */
static void test_cut(void **state)
{
    (void)state;
    FOR_EACH_VERSION(version)
    {
        for (int forever = 0; forever < 2; forever++) {
            unsigned long reads = 1;
            for (unsigned long n = 1; n <= reads && n < 2000; n++) {
                struct stack_image s;
                stack_image_init(&s, version);
                s.f.image.fail_from = n;
                s.f.image.fail_until = forever ? (unsigned long)-1 : n + 1;
                check_all(&s, false);
                if (s.f.image.reads > reads && !forever)
                    reads = s.f.image.reads;
                if (forever && n == 1)
                    reads = 200;
                stack_image_deinit(&s);
            }
            assert_true(reads > 10);
        }
    }
}

/* One damaged word of a stack image: where, and what it becomes. */
struct damage {
    prb_addr at;
    uint64_t value;
};

static struct damage damage_of(struct stack_image *s, int kind)
{
    struct image *image = &s->f.image;
    prb_addr previous = s->frames[0][1] + OFF(image, frame, previous);
    prb_addr code = s->frames[0][1] + OFF(image, frame, code);
    switch (kind) {
    case 0: /* a frame that calls itself */
        return (struct damage){previous, s->frames[0][1]};
    case 1: /* two that call each other */
        return (struct damage){previous, s->frames[0][0]};
    case 2: /* nowhere */
        return (struct damage){previous, 0x10};
    case 3: /* at the end of the address space */
        return (struct damage){previous, UINT64_MAX - 3};
    case 4: /* no code object */
        return (struct damage){code, s->runtime};
    case 5: /* code that cannot be read */
        return (struct damage){code, UINT64_MAX - 15};
    case 6: /* a thread list that loops */
        return (struct damage){s->threads[0] + OFF(image, thread, next), s->threads[1]};
    case 7: /* that leads nowhere */
        return (struct damage){s->threads[0] + OFF(image, thread, next), UINT64_MAX - 1};
    case 8: /* an interpreter list that loops */
        return (struct damage){s->interp + OFF(image, interp, next), s->interp};
    default: /* a thread of another interpreter */
        return (struct damage){s->threads[0] + OFF(image, thread, interp), s->runtime};
    }
}

static void look(struct stack_image *s)
{
    struct prb_error err = {0};
    PRB_AUTO(prb_sampler) struct prb_sampler *sampler = prb_sampler_new(&s->f.image.py, NULL, &err);
    assert_non_null(sampler);
    prb_sampler_want_anchors(sampler, true);
    for (int again = 0; again < 2; again++) {
        const struct prb_raw_stacks *stacks = prb_sampler_take(sampler, 3, &err);
        if (!stacks) {
            assert_int_not_equal(err.code, PRB_OK);
            continue;
        }
        bool complete = stacks->whole && stacks->thread_count == STACK_THREADS;
        for (size_t i = 0; i < stacks->thread_count; i++) {
            const struct prb_raw_thread *thread = &stacks->threads[i];
            complete &= !thread->broken.why && thread->frame_count == STACK_FRAMES;
            for (size_t k = 0; k < thread->frame_count && k < 8; k++)
                complete &=
                    prb_code_get(&s->f.image.py, thread->frames[k].code, true, NULL) != NULL;
        }
        assert_false(complete); /* something must have been said */
    }
}

static void test_damage(void **state)
{
    (void)state;
    FOR_EACH_VERSION(version)
    {
        for (int kind = 0; kind < 10; kind++) {
            struct stack_image s;
            stack_image_init(&s, version);
            struct damage damage = damage_of(&s, kind);
            image_word(&s.f.image, damage.at, damage.value);
            look(&s);
            stack_image_deinit(&s);
        }
    }
}

/* The newest thread state was freed and is another thread's that is not yet in the list, so it has
 * no next one; from the second time that it is read the list is as it should be. */
static void link_again(struct image *image, prb_addr addr, size_t len)
{
    struct stack_image *s = (struct stack_image *)image;
    static unsigned long seen;
    prb_addr newest = s->threads[STACK_THREADS - 1];
    if (image->reads == 1)
        seen = 0;
    if (newest >= addr && newest < addr + len && ++seen == 2)
        PUT(image, s->interp, interp, threads_head, s->threads[0]);
}

static void test_torn_list(void **state)
{
    (void)state;
    FOR_EACH_VERSION(version)
    {
        struct stack_image s;
        struct prb_error err = {0};
        stack_image_init(&s, version);
        PUT(&s.f.image, s.threads[STACK_THREADS - 1], thread, next, 0);
        s.f.image.before_read = link_again;
        PRB_AUTO(prb_sampler)
        struct prb_sampler *sampler = prb_sampler_new(&s.f.image.py, NULL, &err);
        assert_non_null(sampler);
        const struct prb_raw_stacks *stacks = prb_sampler_take(sampler, 0, &err);
        assert_non_null(stacks);
        assert_true(stacks->whole);
        assert_int_equal(stacks->thread_count, STACK_THREADS - 1);
        assert_int_equal(stacks->threads[0].tstate, s.threads[0]);
        stack_image_deinit(&s);
    }
}

/* A generator that yields has no caller until it goes on, here when its frame was read some times. */
static const unsigned yielding = 5;

static void go_on(struct image *image, prb_addr addr, size_t len)
{
    struct stack_image *s = (struct stack_image *)image;
    static unsigned seen;
    prb_addr frame = s->frames[0][0];
    if (image->reads == 1)
        seen = 0;
    if (frame >= addr && frame < addr + len && ++seen == yielding)
        PUT(image, frame, frame, previous, s->frames[0][1]);
}

static void test_yielding_generator(void **state)
{
    (void)state;
    FOR_EACH_VERSION(version)
    {
        struct stack_image s;
        struct prb_error err = {0};
        stack_image_init(&s, version);
        struct image *image = &s.f.image;
        const struct prb_layout *layout = &image->py.layout;
        PUT(image, s.frames[0][0], frame, previous, 0);
        if (PRB_HAS(layout, frame, owner)) {
            uint8_t owner = (uint8_t)PRB_NUM(layout, owner_generator);
            image_write(image, s.frames[0][0] + OFF(image, frame, owner), &owner, 1);
        } else {
            PUT(image, s.codes[0], code, flags, 0x20);
        }
        image->before_read = go_on;
        PRB_AUTO(prb_sampler) struct prb_sampler *sampler = prb_sampler_new(&image->py, NULL, &err);
        assert_non_null(sampler);
        const struct prb_raw_stacks *stacks = prb_sampler_take(sampler, 0, &err);
        assert_non_null(stacks);
        const struct prb_raw_thread *thread = &stacks->threads[STACK_THREADS - 1];
        assert_int_equal(thread->tstate, s.threads[0]);
        assert_int_equal(thread->frame_count, STACK_FRAMES);
        assert_false(thread->unstable);
        stack_image_deinit(&s);
    }
}

/* The function that a thread's innermost frame runs, as the sampler says. */
static prb_addr innermost(struct prb_sampler *sampler, size_t from_newest)
{
    struct prb_error err = {0};
    const struct prb_raw_stacks *stacks = prb_sampler_take(sampler, 0, &err);
    assert_non_null(stacks);
    assert_int_equal(stacks->thread_count, STACK_THREADS);
    return stacks->threads[from_newest].frames[0].code;
}

/* Who did not have the GIL is not read again; who had it is. */
static void test_unmoved(void **state)
{
    (void)state;
    FOR_EACH_VERSION(version)
    {
        struct stack_image s;
        struct prb_error err = {0};
        stack_image_init(&s, version);
        struct image *image = &s.f.image;
        const struct prb_layout *layout = &image->py.layout;
        bool counts = PRB_HAS(layout, gil, switch_number) && !PRB_HAS(layout, gil, enabled);
        PUT(image, s.gil, gil, switch_number, 5);
        PRB_AUTO(prb_sampler) struct prb_sampler *sampler = prb_sampler_new(&image->py, NULL, &err);
        assert_non_null(sampler);
        for (int warm = 0; warm < 3; warm++)
            assert_int_equal(innermost(sampler, 0), s.codes[0]);
        prb_addr rests = s.frames[1][0] + OFF(image, frame, code);
        prb_addr runs = s.frames[0][0] + OFF(image, frame, code);
        image_word(image, rests, s.codes[1]);
        image_word(image, runs, s.codes[1]); /* the last holder of the GIL */
        assert_int_equal(innermost(sampler, 0), s.codes[counts ? 0 : 1]);
        assert_int_equal(innermost(sampler, 1), s.codes[1]);
        PUT(image, s.gil, gil, switch_number, 7); /* there and back */
        assert_int_equal(innermost(sampler, 0), s.codes[1]);
        assert_int_equal(innermost(sampler, 0), s.codes[1]);
        /* A count that does not count is not believed, from then on. */
        PUT(image, s.gil, gil, last_holder, s.threads[1]);
        assert_int_equal(innermost(sampler, 0), s.codes[1]);
        PUT(image, s.gil, gil, last_holder, s.threads[0]);
        assert_int_equal(innermost(sampler, 0), s.codes[1]);
        image_word(image, rests, s.codes[2]);
        assert_int_equal(innermost(sampler, 0), s.codes[2]);
        stack_image_deinit(&s);
    }
}

/* Where the holder of the GIL stands, one call tells, and whether what is read along is the same. */
static void test_still(void **state)
{
    (void)state;
    FOR_EACH_VERSION(version)
    {
        struct stack_image s;
        struct prb_error err = {0};
        stack_image_init(&s, version);
        struct image *image = &s.f.image;
        const struct prb_layout *layout = &image->py.layout;
        bool counts = PRB_HAS(layout, gil, switch_number) && !PRB_HAS(layout, gil, enabled);
        PUT(image, s.gil, gil, switch_number, 5);
        PRB_AUTO(prb_view) struct prb_view *along = prb_view_new(image->py.mem, 4096, &err);
        PRB_AUTO(prb_sampler) struct prb_sampler *sampler = prb_sampler_new(&image->py, NULL, &err);
        assert_non_null(along);
        assert_non_null(sampler);
        prb_sampler_read_along(sampler, along);
        prb_addr runs = s.frames[0][0] + OFF(image, frame, code);
        uint64_t word = 0;
        PUT(image, s.codes[0], code, firstlineno, 7);
        assert_true(prb_view_u64(along, s.codes[0] + OFF(image, code, firstlineno), &word));
        for (int warm = 0; warm < 5; warm++)
            assert_int_equal(innermost(sampler, 0), s.codes[0]);
        uint64_t calls = image->py.mem->calls;
        innermost(sampler, 0);
        assert_int_equal(prb_sampler_last(sampler)->still, counts);
        if (counts)
            assert_int_equal(image->py.mem->calls - calls, 1);
        PUT(image, s.codes[0], code, firstlineno, 8);
        innermost(sampler, 0);
        assert_false(prb_sampler_last(sampler)->still);
        innermost(sampler, 0);
        assert_int_equal(prb_sampler_last(sampler)->still, counts);
        image_word(image, runs, s.codes[1]);
        assert_int_equal(innermost(sampler, 1), s.codes[1]);
        assert_false(prb_sampler_last(sampler)->still);
        stack_image_deinit(&s);
    }
}

/* Reused memory: the same addresses hold another function now. */
static void test_reused_code(void **state)
{
    (void)state;
    FOR_EACH_VERSION(version)
    {
        struct stack_image s;
        stack_image_init(&s, version);
        struct image *image = &s.f.image;
        check_all(&s, true);
        PUT(image, s.codes[0], code, name, ascii(&s.f, "another"));
        prb_codes_new_reading(&image->py);
        const struct prb_code_object *code = prb_code_get(&image->py, s.codes[0], false, NULL);
        assert_non_null(code);
        assert_string_equal(code->name, "another");
        stack_image_deinit(&s);
    }
}

/* Names of variables that become more once they were counted: no more are taken than counted. */
static struct {
    prb_addr size; /* of the tuple of names; 0: it is left alone */
    int looks;
} growing;

static void grow_names(struct image *image, prb_addr addr, size_t len)
{
    enum { MORE = 200 };
    if (growing.size && addr <= growing.size && growing.size < addr + len && growing.looks++ == 1)
        image_word(image, growing.size, MORE);
}

static void test_growing_names(void **state)
{
    (void)state;
    FOR_EACH_VERSION(version)
    {
        static const uint8_t kinds[] = {0x20, 0x20};
        struct stack_image s;
        stack_image_init(&s, version);
        struct image *image = &s.f.image;
        const uint64_t items[] = {ascii(&s.f, "a"), ascii(&s.f, "b")};
        prb_addr names = new_tuple(&s.f, items, 2), none = new_tuple(&s.f, NULL, 0);
        PUT(image, s.codes[0], code, localsplusnames, names);
        PUT(image, s.codes[0], code, localspluskinds, stack_bytes(&s, kinds, sizeof kinds));
        PUT(image, s.codes[0], code, varnames, names);
        PUT(image, s.codes[0], code, cellvars, none);
        PUT(image, s.codes[0], code, freevars, none);
        growing.size = names + OFF(image, tuple, size);
        growing.looks = 0;
        image->before_read = grow_names;
        const struct prb_code_object *code = prb_code_get(&image->py, s.codes[0], true, NULL);
        assert_non_null(code);
        assert_in_range(growing.looks, 2, 1000);
        assert_int_equal(code->variable_count, 2);
        assert_string_equal(code->variables[1], "b");
        assert_int_equal(code->variable_kinds[1] & ~PRB_VARIABLE_ARG, PRB_VARIABLE_LOCAL);
        stack_image_deinit(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_torn_list),
        cmocka_unit_test(test_yielding_generator),
        cmocka_unit_test(test_unmoved),
        cmocka_unit_test(test_still),
        cmocka_unit_test(test_reused_code),
        cmocka_unit_test(test_growing_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

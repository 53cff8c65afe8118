/*
 * What versions mean: the traits by version, the numbers from the headers' own names and bit
 * fields.
 */
static int lowest_bit(const void *bytes, size_t len)
{
    const unsigned char *at = bytes;
    for (size_t i = 0; i < 8 * len; i++)
        if (at[i / 8] >> (i % 8) & 1)
            return (int)i;
    return -1;
}

/* The lowest bit of a member that is a bit field, within the struct it stands in. */
#define BIT_FIELD(name, struct_type, outer, member)                                                \
    do {                                                                                           \
        struct_type of;                                                                            \
        memset(&of, 0, sizeof of);                                                                 \
        of.outer.member = ~0;                                                                      \
        NUMBER_IS(name, lowest_bit(&of.outer, sizeof of.outer));                                   \
    } while (0)

static int bit_of(unsigned long mask) { return lowest_bit(&mask, sizeof mask); }

static void traits_by_version(void)
{
#if PY_MINOR_VERSION <= 10
    TRAIT_IS(frame_chain, FRAME_OBJECTS);
    TRAIT_IS(entry, EVERY_FRAME);
    TRAIT_IS(variables, NAME_TUPLES);
    TRAIT_IS(instance, DICT_OFFSET);
    TRAIT_IS(generator, FRAME_OBJECT);
#else
    TRAIT_IS(variables, LOCALSPLUS);
    TRAIT_IS(generator, EMBEDDED);
    TRAIT_IS(line_table, LOCATIONS);
    TRAIT_IS(dict_keys, INDEX_BY_LOG2);
#endif
#if PY_MINOR_VERSION <= 5
    TRAIT_IS(line_table, LNOTAB_UNSIGNED);
    TRAIT_IS(dict_keys, HASH_TABLE);
#elif PY_MINOR_VERSION <= 9
    TRAIT_IS(line_table, LNOTAB);
    TRAIT_IS(dict_keys, INDEX_BY_SIZE);
#elif PY_MINOR_VERSION == 10
    TRAIT_IS(line_table, LINES);
    TRAIT_IS(dict_keys, INDEX_BY_SIZE);
#endif
#if PY_MINOR_VERSION <= 9
    TRAIT_IS(anchor, FRAME_POINTER);
    TRAIT_IS(instr, LASTI_BYTES);
#elif PY_MINOR_VERSION == 10
    TRAIT_IS(anchor, CFRAMES);
    TRAIT_IS(instr, LASTI_UNITS);
#elif PY_MINOR_VERSION == 11
    TRAIT_IS(anchor, CFRAMES);
    TRAIT_IS(instr, PREV_INSTR);
    TRAIT_IS(entry, IS_ENTRY);
    TRAIT_IS(instance, VALUES_AND_DICT);
#elif PY_MINOR_VERSION == 12
    TRAIT_IS(anchor, SHIM_ADDRESS);
    TRAIT_IS(instr, PREV_INSTR);
    TRAIT_IS(entry, SHIM);
    TRAIT_IS(instance, DICT_OR_VALUES);
#else
    TRAIT_IS(anchor, SHIM_ADDRESS);
    TRAIT_IS(instr, INSTR_PTR);
    TRAIT_IS(entry, SHIM);
    TRAIT_IS(instance, INLINE_VALUES);
    TRAIT_IS(frame_chain, CURRENT_FRAME);
#endif
#if PY_MINOR_VERSION == 11 || PY_MINOR_VERSION == 12
    TRAIT_IS(frame_chain, CFRAME);
#endif
#if PY_MINOR_VERSION <= 9 || PY_MINOR_VERSION >= 14
    TRAIT_IS(stack_top, ADDRESS);
#elif PY_MINOR_VERSION == 10
    TRAIT_IS(stack_top, VALUES);
#else
    TRAIT_IS(stack_top, LOCALSPLUS);
#endif
#if PY_MINOR_VERSION <= 8
    TRAIT_IS(evaluator, FRAME);
#else
    TRAIT_IS(evaluator, THREAD_AND_FRAME);
#endif
#if PY_MINOR_VERSION <= 11
    TRAIT_IS(int_size, SIGNED_SIZE);
#else
    TRAIT_IS(int_size, TAG);
#endif
#if PY_MINOR_VERSION <= 13
    TRAIT_IS(reference, POINTER);
#else
    TRAIT_IS(reference, TAGGED);
#endif
#if PY_MINOR_VERSION <= 6
    TRAIT_IS(gil, STATIC);
#elif PY_MINOR_VERSION <= 11
    TRAIT_IS(gil, RUNTIME);
#elif FREE_THREADED
    TRAIT_IS(gil, NONE);
#else
    TRAIT_IS(gil, INTERPRETER);
#endif
}

static void frame_numbers(void)
{
#if PY_MINOR_VERSION >= 11
    NUMBER_IS(owner_thread, FRAME_OWNED_BY_THREAD);
    NUMBER_IS(owner_generator, FRAME_OWNED_BY_GENERATOR);
    NUMBER_IS(owner_frame_object, FRAME_OWNED_BY_FRAME_OBJECT);
#endif
#if PY_MINOR_VERSION == 12 || PY_MINOR_VERSION == 13
    NUMBER_IS(owner_interpreter, FRAME_OWNED_BY_CSTACK);
#elif PY_MINOR_VERSION >= 14
    NUMBER_IS(owner_interpreter, FRAME_OWNED_BY_INTERPRETER);
#if PY_MINOR_VERSION == 14
    NUMBER_IS(owner_cstack, FRAME_OWNED_BY_CSTACK);
#endif
    NUMBER_IS(reference_mask, 3);
    NUMBER_IS(reference_integer, Py_INT_TAG);
#if PY_MINOR_VERSION >= 15
    NUMBER_IS(reference_invalid, Py_TAG_INVALID);
#endif
#endif
#if PY_MINOR_VERSION >= 10
    NUMBER_IS(frame_created, FRAME_CREATED);
    NUMBER_IS(frame_executing, FRAME_EXECUTING);
#if PY_MINOR_VERSION == 10
    NUMBER_IS(frame_suspended, FRAME_SUSPENDED);
    NUMBER_IS(frame_completed, FRAME_RETURNED);
#elif PY_MINOR_VERSION <= 12
    NUMBER_IS(frame_suspended, FRAME_SUSPENDED);
    NUMBER_IS(frame_completed, FRAME_COMPLETED);
#elif PY_MINOR_VERSION <= 14
    NUMBER_IS(frame_suspended, FRAME_SUSPENDED_YIELD_FROM);
    NUMBER_IS(frame_completed, FRAME_COMPLETED);
#else
    NUMBER_IS(frame_suspended, FRAME_SUSPENDED_YIELD_FROM_LOCKED);
    NUMBER_IS(frame_completed, FRAME_CLEARED);
#endif
#endif
}

/* _PyGen_yf, Objects/genobject.c; 3.15 has a word above what is awaited (SEND, bytecodes.c). */
static void await_numbers(void)
{
#if PY_MINOR_VERSION >= 15
    NUMBER_IS(await_depth, 2);
#else
    NUMBER_IS(await_depth, 1);
#endif
#if PY_MINOR_VERSION >= 13
    NUMBER_IS(frame_awaiting, FRAME_SUSPENDED_YIELD_FROM);
#elif PY_MINOR_VERSION >= 11
    NUMBER_IS(resume_opcode, RESUME);
    NUMBER_IS(resume_awaiting, 2);
#if PY_MINOR_VERSION == 11
    NUMBER_IS(resume_opcode_other, RESUME_QUICK);
#else
    NUMBER_IS(resume_opcode_other, INSTRUMENTED_RESUME);
#endif
#else
    NUMBER_IS(yield_from_opcode, YIELD_FROM);
#endif
}

static void code_numbers(void)
{
#if PY_MINOR_VERSION >= 11
    NUMBER_IS(fast_local_bit, bit_of(CO_FAST_LOCAL));
    NUMBER_IS(fast_cell_bit, bit_of(CO_FAST_CELL));
    NUMBER_IS(fast_free_bit, bit_of(CO_FAST_FREE));
    NUMBER_IS(flag_managed_dict_bit, bit_of(Py_TPFLAGS_MANAGED_DICT));
#endif
#if PY_MINOR_VERSION >= 12
    NUMBER_IS(fast_hidden_bit, bit_of(CO_FAST_HIDDEN));
#endif
#if PY_MINOR_VERSION >= 13
    NUMBER_IS(flag_inline_values_bit, bit_of(Py_TPFLAGS_INLINE_VALUES));
#endif
#if PY_MINOR_VERSION >= 14
    NUMBER_IS(fast_arg_pos_bit, bit_of(CO_FAST_ARG_POS));
    NUMBER_IS(fast_arg_kw_bit, bit_of(CO_FAST_ARG_KW));
    NUMBER_IS(fast_arg_var_bit, bit_of(CO_FAST_ARG_VAR));
#endif
    NUMBER_IS(member_object_ex, T_OBJECT_EX);
}

static void traits_and_numbers(void)
{
    traits_by_version();
    frame_numbers();
    code_numbers();
    await_numbers();
#if PY_MINOR_VERSION >= 12
    BIT_FIELD(status_active_bit, PyThreadState, _status, active);
    BIT_FIELD(status_cleared_bit, PyThreadState, _status, cleared);
#endif
#if PY_MINOR_VERSION >= 13
    NUMBER_IS(thread_attached, _Py_THREAD_ATTACHED);
#endif
    BIT_FIELD(str_kind_bit, PyASCIIObject, state, kind);
    BIT_FIELD(str_compact_bit, PyASCIIObject, state, compact);
    BIT_FIELD(str_ascii_bit, PyASCIIObject, state, ascii);
#if PY_MINOR_VERSION <= 11
    BIT_FIELD(str_ready_bit, PyASCIIObject, state, ready);
#endif
#if FREE_THREADED && PY_MINOR_VERSION >= 14
    NUMBER_IS(str_interned_bits, 8);
#else
    NUMBER_IS(str_interned_bits, 2);
#endif
}

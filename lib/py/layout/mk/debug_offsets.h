/*
 * Which of our fields the interpreter's own table (pycore_debug_offsets.h, 3.13+) gives, and where
 * in the table. Prints DEBUG(struct, field, size, place): place and size are positions in the table
 * of the field's offset and of the size of the struct it must lie in (0: the table has none).
 * DEBUG_SUM adds the words of two places, DEBUG_DIFFERENCE subtracts the second: fields whose
 * struct is embedded at the other place.
 */
#define POSITION(member) offsetof(_Py_DebugOffsets, member)
#define GIVES(struct_, field, size, place)                                                         \
    do {                                                                                           \
        if (mk_has(F_##struct_##_##field))                                                         \
            printf("DEBUG(%s, %s, %zu, %zu)\n", #struct_, #field, size, POSITION(place));          \
    } while (0)
#define GIVES_TWO(macro, struct_, field, size, first, second)                                      \
    do {                                                                                           \
        if (mk_has(F_##struct_##_##field))                                                         \
            printf("%s(%s, %s, %zu, %zu, %zu)\n", #macro, #struct_, #field, size, POSITION(first), \
                   POSITION(second));                                                              \
    } while (0)

static void debug_state(void)
{
    size_t runtime = POSITION(runtime_state.size);
    GIVES(runtime, size, runtime, runtime_state.size);
    GIVES(runtime, finalizing, runtime, runtime_state.finalizing);
    GIVES(runtime, interpreters_head, runtime, runtime_state.interpreters_head);
    size_t interp = POSITION(interpreter_state.size);
    GIVES(interp, size, interp, interpreter_state.size);
    GIVES(interp, id, interp, interpreter_state.id);
    GIVES(interp, next, interp, interpreter_state.next);
    GIVES(interp, threads_head, interp, interpreter_state.threads_head);
    GIVES(interp, modules, interp, interpreter_state.imports_modules);
    GIVES(interp, sysdict, interp, interpreter_state.sysdict);
    GIVES(interp, builtins, interp, interpreter_state.builtins);
    GIVES(interp, gil, interp, interpreter_state.ceval_gil);
    GIVES_TWO(DEBUG_SUM, interp, gc_collecting, interp, interpreter_state.gc, gc.collecting);
    GIVES_TWO(DEBUG_DIFFERENCE, gil, locked, (size_t)0, interpreter_state.gil_runtime_state_locked,
              interpreter_state.gil_runtime_state);
    GIVES_TWO(DEBUG_DIFFERENCE, gil, last_holder, (size_t)0,
              interpreter_state.gil_runtime_state_holder, interpreter_state.gil_runtime_state);
    /* Unlike its neighbours this one counts from the lock's own start. */
    GIVES(gil, enabled, (size_t)0, interpreter_state.gil_runtime_state_enabled);
    size_t thread = POSITION(thread_state.size);
    GIVES(thread, size, thread, thread_state.size);
    GIVES(thread, prev, thread, thread_state.prev);
    GIVES(thread, next, thread, thread_state.next);
    GIVES(thread, interp, thread, thread_state.interp);
    GIVES(thread, frame, thread, thread_state.current_frame);
    GIVES(thread, thread_id, thread, thread_state.thread_id);
    GIVES(thread, native_thread_id, thread, thread_state.native_thread_id);
    GIVES(thread, datastack_chunk, thread, thread_state.datastack_chunk);
    GIVES(thread, status, thread, thread_state.status);
#if PY_MINOR_VERSION >= 14
    GIVES(interp, threads_main, interp, interpreter_state.threads_main);
    GIVES(interp, code_object_generation, interp, interpreter_state.code_object_generation);
#endif
#if PY_MINOR_VERSION >= 15
    GIVES_TWO(DEBUG_SUM, interp, gc_frame, interp, interpreter_state.gc, gc.frame);
    GIVES(thread, base_frame, thread, thread_state.base_frame);
    GIVES(thread, holds_gil, thread, thread_state.holds_gil);
    GIVES(thread, gil_requested, thread, thread_state.gil_requested);
    GIVES(thread, current_exception, thread, thread_state.current_exception);
    GIVES(exc_stack_item, exc_value, (size_t)0, err_stackitem.exc_value);
#endif
}

static void debug_frames(void)
{
    size_t frame = POSITION(interpreter_frame.size);
    GIVES(frame, size, frame, interpreter_frame.size);
    GIVES(frame, previous, frame, interpreter_frame.previous);
    GIVES(frame, code, frame, interpreter_frame.executable);
    GIVES(frame, instr, frame, interpreter_frame.instr_ptr);
    GIVES(frame, localsplus, frame, interpreter_frame.localsplus);
    GIVES(frame, owner, frame, interpreter_frame.owner);
    size_t code = POSITION(code_object.size);
    GIVES(code, size, code, code_object.size);
    GIVES(code, filename, code, code_object.filename);
    GIVES(code, name, code, code_object.name);
    GIVES(code, qualname, code, code_object.qualname);
    GIVES(code, linetable, code, code_object.linetable);
    GIVES(code, firstlineno, code, code_object.firstlineno);
    GIVES(code, argcount, code, code_object.argcount);
    GIVES(code, localsplusnames, code, code_object.localsplusnames);
    GIVES(code, localspluskinds, code, code_object.localspluskinds);
    GIVES(code, bytecode, code, code_object.co_code_adaptive);
#if PY_MINOR_VERSION >= 14
    GIVES(frame, stacktop, frame, interpreter_frame.stackpointer);
    GIVES(frame, tlbc_index, frame, interpreter_frame.tlbc_index);
    GIVES(code, tlbc, code, code_object.co_tlbc);
    size_t gen = POSITION(gen_object.size);
    GIVES(gen, name, gen, gen_object.gi_name);
    GIVES(gen, frame, gen, gen_object.gi_iframe);
    GIVES(gen, state, gen, gen_object.gi_frame_state);
#endif
}

static void debug_objects(void)
{
    size_t object = POSITION(pyobject.size);
    GIVES(object, size, object, pyobject.size);
    GIVES(object, type, object, pyobject.ob_type);
    size_t type = POSITION(type_object.size);
    GIVES(type, size, type, type_object.size);
    GIVES(type, name, type, type_object.tp_name);
    GIVES(type, flags, type, type_object.tp_flags);
    size_t tuple = POSITION(tuple_object.size);
    GIVES(tuple, size, tuple, tuple_object.ob_size);
    GIVES(tuple, items, tuple, tuple_object.ob_item);
    size_t list = POSITION(list_object.size);
    GIVES(list, size, list, list_object.ob_size);
    GIVES(list, items, list, list_object.ob_item);
    size_t dict = POSITION(dict_object.size);
    GIVES(dict, keys, dict, dict_object.ma_keys);
    GIVES(dict, values, dict, dict_object.ma_values);
    GIVES(float, value, POSITION(float_object.size), float_object.ob_fval);
    size_t integer = POSITION(long_object.size);
    GIVES(long, tag, integer, long_object.lv_tag);
    GIVES(long, digits, integer, long_object.ob_digit);
    size_t bytes = POSITION(bytes_object.size);
    GIVES(bytes, size, bytes, bytes_object.ob_size);
    GIVES(bytes, data, bytes, bytes_object.ob_sval);
    size_t str = POSITION(unicode_object.size);
    GIVES(str, length, str, unicode_object.length);
    GIVES(str, state, str, unicode_object.state);
    GIVES(str, ascii_data, str, unicode_object.asciiobject_size);
#if PY_MINOR_VERSION >= 14
    size_t set = POSITION(set_object.size);
    GIVES(set, used, set, set_object.used);
    GIVES(set, table, set, set_object.table);
    GIVES(set, mask, set, set_object.mask);
#endif
#if PY_MINOR_VERSION >= 15
    GIVES(str, compact_data, str, unicode_object.compactunicodeobject_size);
    GIVES(type, basicsize, type, type_object.tp_basicsize);
    GIVES(type, dictoffset, type, type_object.tp_dictoffset);
    size_t heap_type = POSITION(heap_type_object.size);
    GIVES(type, heap_size, heap_type, heap_type_object.size);
    GIVES(type, heap_cached_keys, heap_type, heap_type_object.ht_cached_keys);
#endif
}

static void debug_offsets(void)
{
    printf("DEBUG_TABLE(%zu)\n", sizeof(_Py_DebugOffsets));
    debug_state();
    debug_frames();
    debug_objects();
}

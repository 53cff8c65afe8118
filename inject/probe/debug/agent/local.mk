# The debugger's Python in the target, included by ../../local.mk.
probe_python_files += %D%/agent.py %D%/json.py %D%/threads.py %D%/session.py %D%/codes.py %D%/conditions.py \
	%D%/names.py %D%/breakpoints.py %D%/stepping.py %D%/targets.py %D%/goto.py %D%/stack.py %D%/handles.py %D%/values.py \
	%D%/scopes.py %D%/nodes.py %D%/variables.py %D%/evaluate.py %D%/awaits.py %D%/exceptions.py %D%/uncaught.py %D%/breakpointhook.py %D%/birth.py \
	%D%/sources.py %D%/bytecode.py %D%/memory.py %D%/arrays.py %D%/modules.py %D%/data.py %D%/output.py \
	%D%/timeouts.py %D%/hidden.py %D%/rules.py

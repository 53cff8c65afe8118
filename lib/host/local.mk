libprb_la_SOURCES += %D%/cgroup.c %D%/cgroup.h %D%/gpu.c %D%/gpu.h %D%/gpu_amd.c %D%/gpu_nvml.c %D%/memory.c %D%/memory.h %D%/network.c %D%/network.h \
	%D%/usage.c %D%/usage.h

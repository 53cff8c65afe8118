bin_PROGRAMS += probing
probing_SOURCES = %D%/main.c
probing_LDADD = libprobing.la $(JANSSON_LIBS)

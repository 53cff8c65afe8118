/* What stackTrace gives to the client and disassemble gets back. */
#ifndef PRB_DAP_STACK_H
#define PRB_DAP_STACK_H

/* instructionPointerReference of a Python frame: this, then the frame's id in decimal. */
#define PRB_DAP_FRAME_ADDRESS "frame:"

#endif

#include "../riscv/start.S"

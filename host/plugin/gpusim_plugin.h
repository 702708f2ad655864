/* SPDX-License-Identifier: MIT */
/*
 * Plug-ins for `gpusim run --plugin FILE[,ARGUMENT]...`: shared objects that see what a program does.
 * docs/howto/plugin.md tells how to make one; examples/plugins has three.
 *
 * A plug-in defines gpusim_plugin_install(). There it says, through the functions of gpusim_host, what
 * it wants to hear of. Block executions, accesses and synchronisation cost some 10 ns for each;
 * everything else costs nothing that could be measured.
 *
 * Cores come in groups of `group_width` neighbours. Calls about one group come one after the other,
 * calls about different groups at the same time from several threads. Each core's blocks and accesses
 * come in the order of its program; between cores there is none but that of the slices in which the
 * machine runs them. Pointers handed to a callback are valid until it returns.
 */
#ifndef GPUSIM_PLUGIN_H
#define GPUSIM_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GPUSIM_PLUGIN_VERSION 2

/* Of the header that a plug-in was compiled with: gpusim loads no other version. Version 1 had
 * none. */
extern __attribute__((weak, visibility("default"))) const uint32_t gpusim_plugin_version;
const uint32_t gpusim_plugin_version = GPUSIM_PLUGIN_VERSION;

/* An instruction of the guest. */
typedef struct gpusim_instruction {
  uint64_t address;
  const uint8_t* bytes; /* [size], as in memory; NULL where the program's file has none */
  uint8_t size;         /* bytes */
  uint8_t class_index;  /* class_names[...] */
} gpusim_instruction_t;

/* A basic block: guest instructions at consecutive addresses. Numbers start at 0 and have no gaps; an
   address may be that of several blocks, since code can be translated again. */
typedef struct gpusim_block {
  uint32_t number;
  uint32_t instruction_count;
  uint64_t address;   /* of the first */
  uint64_t end;       /* behind the last */
  int ends_in_branch; /* a conditional one */
  const char* symbol; /* "main+0x10"; "0x401234" where no symbol is */
  const gpusim_instruction_t* instructions; /* [instruction_count] */
} gpusim_block_t;

enum gpusim_access_kind {
  GPUSIM_LOAD,
  GPUSIM_STORE,
  GPUSIM_ATOMIC, /* read and write as one, and store-exclusive */
  /* Synchronisation without an address. */
  GPUSIM_FENCE,
  GPUSIM_YIELD,
  GPUSIM_WAIT_FOR_EVENT,
  GPUSIM_SIGNAL_EVENT,
};

typedef struct gpusim_access {
  uint64_t address;     /* first byte; 0 for synchronisation without one */
  uint32_t block;       /* number */
  uint16_t instruction; /* index in the block */
  uint16_t bytes;
  uint8_t kind; /* enum gpusim_access_kind */
} gpusim_access_t;

/* How often a block was executed to its end, by all cores, and how many cores its executions had room
   for: executions / lane_slots is the share of lanes that were active. lane_slots is 0 where the
   backend cannot tell. */
typedef struct gpusim_block_use {
  uint64_t executions;
  uint64_t lane_slots;
} gpusim_block_use_t;

typedef struct gpusim_run {
  const char* program;
  const char* isa;
  const char* backend;
  uint32_t cores;
  uint32_t group_width;
  uint32_t class_count;
  const char* const* class_names;
} gpusim_run_t;

typedef struct gpusim_host {
  uint32_t version; /* GPUSIM_PLUGIN_VERSION of gpusim */
  void* self;       /* the first argument of all functions below */

  /* To be called in gpusim_plugin_install() only. */
  void (*on_start)(void* self, void (*call)(void* user, const gpusim_run_t* run), void* user);
  void (*on_translation)(void* self, void (*call)(void* user, const gpusim_block_t* block), void* user);
  /* Blocks in the order in which `core` entered them. */
  void (*on_blocks)(void* self,
                    void (*call)(void* user, uint32_t group, uint32_t core, const uint32_t* blocks,
                                 size_t count),
                    void* user);
  void (*on_accesses)(void* self,
                      void (*call)(void* user, uint32_t group, uint32_t core,
                                   const gpusim_access_t* accesses, size_t count),
                      void* user);
  /* The same of synchronisation only: atomics, fences, waits, signals. */
  void (*on_synchronisation)(void* self,
                             void (*call)(void* user, uint32_t group, uint32_t core,
                                          const gpusim_access_t* accesses, size_t count),
                             void* user);
  /* After the run, also after an interrupted one. */
  void (*on_end)(void* self, void (*call)(void* user), void* user);

  /* To be called in callbacks, on_end among them. */
  gpusim_block_use_t (*block_use)(void* self, uint32_t block); /* in on_end */
  /* "add x0, x1, x2"; valid until the thread's next call. */
  const char* (*disassemble)(void* self, uint64_t address);
} gpusim_host_t;

/* `arguments`: what stood after the commas. Returns 0; or not, after it put a sentence for the user
   into `error`, of `error_size` bytes. `host` stays valid until the process ends. */
int gpusim_plugin_install(const gpusim_host_t* host, int argument_count, const char* const* arguments,
                          char* error, size_t error_size);

#ifdef __cplusplus
}
#endif

#endif /* GPUSIM_PLUGIN_H */

/* A plug-in for qemu-user: the exact number of guest instructions that a process executed.
 *
 *   qemu-aarch64 -plugin libinsn_count.so,out=FILE PROGRAM
 *
 * writes {"guest_instructions": N} to FILE when the process exits. Counting is per instruction, not
 * per block, so that a block left early (fault, signal) counts only what ran. One counter serves
 * all threads without locking: exact for single-threaded programs only. */
#include <qemu-plugin.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

QEMU_PLUGIN_EXPORT int qemu_plugin_version = QEMU_PLUGIN_VERSION;

static uint64_t guest_instructions;
static char* out_path;

static void on_translation(qemu_plugin_id_t id, struct qemu_plugin_tb* block) {
  (void)id;
  size_t count = qemu_plugin_tb_n_insns(block);
  for (size_t i = 0; i < count; i++) {
    qemu_plugin_register_vcpu_insn_exec_inline(qemu_plugin_tb_get_insn(block, i),
                                               QEMU_PLUGIN_INLINE_ADD_U64, &guest_instructions, 1);
  }
}

static void on_process_exit(qemu_plugin_id_t id, void* unused) {
  (void)id;
  (void)unused;
  FILE* file = fopen(out_path, "w");
  if (!file) {
    fprintf(stderr, "insn_count: cannot write %s\n", out_path);
    return;
  }
  fprintf(file, "{\"guest_instructions\": %llu}\n", (unsigned long long)guest_instructions);
  fclose(file);
}

QEMU_PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t* info, int argc,
                                           char** argv) {
  (void)info;
  for (int i = 0; i < argc; i++) {
    if (strncmp(argv[i], "out=", 4) == 0) out_path = strdup(argv[i] + 4);
  }
  if (!out_path) {
    fprintf(stderr, "insn_count: say where to write: -plugin libinsn_count.so,out=FILE\n");
    return 1;
  }
  qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
  qemu_plugin_register_atexit_cb(id, on_process_exit, NULL);
  return 0;
}

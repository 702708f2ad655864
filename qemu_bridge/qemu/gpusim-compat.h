/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What differs between the versions of QEMU that the bridge is for: 7.2 and 10. */
#ifndef SEMIHOSTING_GPUSIM_COMPAT_H
#define SEMIHOSTING_GPUSIM_COMPAT_H

#include "qemu/main-loop.h"

#if __has_include("system/runstate.h")
#include "system/cpu-timers.h"
#include "system/reset.h"
#include "system/runstate.h"
#include "system/system.h"
#else
#include "sysemu/cpu-timers.h"
#include "sysemu/reset.h"
#include "sysemu/runstate.h"
#include "sysemu/sysemu.h"
#endif

#if __has_include("exec/tb-flush.h")
#include "exec/tb-flush.h"
#include "exec/translation-block.h"
#include "system/tcg.h"
#else
#include "exec/exec-all.h"
#include "sysemu/tcg.h"
#define tcg_cflags_has(cpu, flags) ((cpu)->tcg_cflags & (flags))
#define tcg_cflags_set(cpu, flags) ((cpu)->tcg_cflags |= (flags))
#endif

#if __has_include("system/memory.h")
#include "system/address-spaces.h"
#include "system/memory.h"
#include "system/ramblock.h"
#else
#include "exec/address-spaces.h"
#include "exec/memory.h"
#include "exec/ramblock.h"
#endif

#ifdef bql_lock
/* Where a block of guest memory starts in its file. */
#define gpusim_file_offset(block) ((block)->fd_offset)
#else
#define bql_lock() qemu_mutex_lock_iothread()
#define bql_unlock() qemu_mutex_unlock_iothread()
#define gpusim_file_offset(block) UINT64_C(0)
#endif

#endif

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Buffers: memory that a context's cores reach. What the daemon is told about one, and what
 * frees it again, are the same tables of extents, a page each; each table is a MAP command of
 * its own, so no contiguous memory is needed for them.
 */
#include <linux/io.h>
#include <linux/kref.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "compat.h"
#include "driver.h"

#define LARGEST_ORDER 9
#define EXTENTS_PER_TABLE (PAGE_SIZE / sizeof(struct gpusim_extent))
#define PAGES_AT_ONCE (PAGE_SIZE / sizeof(struct page *))

struct gpusim_table {
	struct list_head link; /* gpusim_buffer.tables, by rising device address */
	struct gpusim_extent *extents; /* as the daemon reads them */
	u32 count;
	bool is_mapped; /* in the daemon, as far as is known */
	u64 size_bytes;
};

struct gpusim_buffer {
	struct kref users;
	struct gpusim_file *file;
	struct mm_struct *mm; /* PIN: whose locked memory it counts as */
	unsigned long counted_pages; /* of it and the user, or of what may be allocated */
	bool is_writable;
	u64 device_address;
	u64 size_bytes; /* that its extents have so far */
	u64 mmap_offset;
	struct list_head tables;
};

static struct gpusim_buffer *gpusim_buffer_new(struct gpusim_file *file, u64 device_address)
{
	struct gpusim_buffer *buffer = kzalloc(sizeof(*buffer), GFP_KERNEL_ACCOUNT);

	if (!buffer)
		return NULL;
	kref_init(&buffer->users);
	buffer->file = file;
	buffer->device_address = device_address;
	buffer->is_writable = true;
	INIT_LIST_HEAD(&buffer->tables);
	return buffer;
}

static u64 gpusim_extent_bytes(const struct gpusim_extent *extent)
{
	return gpusim_from_wire64(extent->size_bytes);
}

static struct page *gpusim_extent_page(const struct gpusim_extent *extent)
{
	return pfn_to_page(gpusim_from_wire64(extent->gpa) >> PAGE_SHIFT);
}

/* Neighbours in physical memory need not be neighbours in the array of pages. */
static struct page *gpusim_page_after(struct page *page, unsigned long count)
{
	return pfn_to_page(page_to_pfn(page) + count);
}

static struct gpusim_table *gpusim_buffer_add_table(struct gpusim_buffer *buffer)
{
	struct gpusim_table *table = kzalloc(sizeof(*table), GFP_KERNEL_ACCOUNT);

	if (!table)
		return NULL;
	table->extents = (void *)get_zeroed_page(GFP_KERNEL_ACCOUNT);
	if (!table->extents) {
		kfree(table);
		return NULL;
	}
	list_add_tail(&table->link, &buffer->tables);
	return table;
}

/* The next `size_bytes` of the buffer lie there. */
static int gpusim_buffer_add(struct gpusim_buffer *buffer, struct page *page, u64 size_bytes)
{
	const u64 gpa = page_to_phys(page);
	struct gpusim_table *table = NULL;
	struct gpusim_extent *last;

	if (!list_empty(&buffer->tables))
		table = list_last_entry(&buffer->tables, struct gpusim_table, link);
	if (table && table->count) {
		last = &table->extents[table->count - 1];
		if (gpusim_from_wire64(last->gpa) + gpusim_extent_bytes(last) == gpa) {
			last->size_bytes =
				gpusim_to_wire64(gpusim_extent_bytes(last) + size_bytes);
			goto added;
		}
	}
	if (!table || table->count == EXTENTS_PER_TABLE) {
		table = gpusim_buffer_add_table(buffer);
		if (!table)
			return -ENOMEM;
	}
	table->extents[table->count].gpa = gpusim_to_wire64(gpa);
	table->extents[table->count].size_bytes = gpusim_to_wire64(size_bytes);
	table->count++;
added:
	table->size_bytes += size_bytes;
	buffer->size_bytes += size_bytes;
	return 0;
}

static void gpusim_release_extent(const struct gpusim_buffer *buffer,
				  const struct gpusim_extent *extent)
{
	struct page *page = gpusim_extent_page(extent);
	unsigned long left = gpusim_extent_bytes(extent) >> PAGE_SHIFT;

	if (buffer->mm) {
		unpin_user_page_range_dirty_lock(page, left, buffer->is_writable);
		cond_resched();
		return;
	}
	/* What is mapped into a process stays until that is undone. */
	for (; left; left--, page = gpusim_page_after(page, 1)) {
		__free_page(page);
		if (left % 1024 == 0)
			cond_resched();
	}
}

static void gpusim_buffer_release(struct kref *users)
{
	struct gpusim_buffer *buffer = container_of(users, struct gpusim_buffer, users);
	const unsigned long pages = buffer->size_bytes >> PAGE_SHIFT;
	struct gpusim_table *table, *next;
	u32 i;

	list_for_each_entry_safe(table, next, &buffer->tables, link) {
		for (i = 0; i < table->count; i++)
			gpusim_release_extent(buffer, &table->extents[i]);
		free_page((unsigned long)table->extents);
		kfree(table);
	}
	if (buffer->mm) {
		atomic_long_sub(pages, &gpusim_totals.pinned_pages);
		account_locked_vm(buffer->mm, buffer->counted_pages, false);
		gpusim_uncharge_pinned(buffer->file->user, buffer->counted_pages);
		mmdrop(buffer->mm);
	} else {
		atomic_long_sub(pages, &gpusim_totals.allocated_pages);
		gpusim_uncharge_allocated(buffer->file->user, buffer->counted_pages);
	}
	kfree(buffer);
}

/* The daemon does not reach the buffer any more. */
static void gpusim_buffer_drop(struct gpusim_buffer *buffer)
{
	kref_put(&buffer->users, gpusim_buffer_release);
}

static int gpusim_check_range(u64 device_address, u64 size_bytes)
{
	if (!size_bytes || (device_address | size_bytes) & ~PAGE_MASK ||
	    device_address + size_bytes < device_address)
		return -EINVAL;
	return size_bytes >> PAGE_SHIFT > totalram_pages() ? -ENOMEM : 0;
}

/* ---- In the daemon ---- */

/*
 * Takes the buffer's tables out of the context again. Error: some are still in it (or not known
 * not to be), and the buffer must stay.
 */
static int gpusim_buffer_unmap(struct gpusim_buffer *buffer)
{
	struct gpusim_file *file = buffer->file;
	u64 address = buffer->device_address;
	struct gpusim_table *table;
	struct gpusim_call *call;
	int error;

	list_for_each_entry(table, &buffer->tables, link) {
		if (table->is_mapped && !READ_ONCE(file->is_dead)) {
			call = gpusim_call_new(file, GPUSIM_OP_UNMAP);
			if (!call)
				return -ENOMEM;
			call->wire.request.words.word[0] = gpusim_to_wire64(address);
			call->wire.request.words.word[1] = gpusim_to_wire64(table->size_bytes);
			error = gpusim_call_sync(file, call);
			if (error && !READ_ONCE(file->is_dead))
				return error;
		}
		table->is_mapped = false;
		address += table->size_bytes;
	}
	return 0;
}

static int gpusim_buffer_map(struct gpusim_buffer *buffer)
{
	struct gpusim_file *file = buffer->file;
	u64 address = buffer->device_address;
	struct gpusim_table *table;
	struct gpusim_call *call;
	int error;

	list_for_each_entry(table, &buffer->tables, link) {
		u64 *word;

		call = gpusim_call_new(file, GPUSIM_OP_MAP);
		if (!call)
			return -ENOMEM;
		word = call->wire.request.words.word;
		word[0] = gpusim_to_wire64(address);
		word[1] = gpusim_to_wire64(table->size_bytes);
		word[2] = gpusim_to_wire64(GPUSIM_READ | (buffer->is_writable ? GPUSIM_WRITE : 0));
		word[3] = gpusim_to_wire64(virt_to_phys(table->extents));
		word[4] = gpusim_to_wire64(table->count);
		table->is_mapped = true; /* unless we hear otherwise */
		refcount_inc(&call->users);
		error = gpusim_call_sync(file, call);
		if (error && gpusim_call_is_done(call))
			table->is_mapped = false;
		gpusim_call_put(call);
		if (error)
			return error;
		address += table->size_bytes;
	}
	return 0;
}

/* To what the file has. */
static void gpusim_buffer_count(struct gpusim_buffer *buffer, s64 size_bytes)
{
	struct gpusim_file *file = buffer->file;

	atomic64_add(size_bytes, buffer->mm ? &file->pinned_bytes : &file->allocated_bytes);
}

/*
 * Makes a complete buffer part of the context, with a handle. After an error it is dropped, or
 * kept for the file's end if the daemon may have it.
 */
static int gpusim_buffer_enter(struct gpusim_buffer *buffer, u32 *handle)
{
	struct gpusim_file *file = buffer->file;
	int error;

	error = xa_alloc(&file->buffers, handle, buffer, XA_LIMIT(1, INT_MAX), GFP_KERNEL_ACCOUNT);
	if (error) {
		gpusim_buffer_drop(buffer);
		return error;
	}
	gpusim_buffer_count(buffer, buffer->size_bytes);
	error = gpusim_buffer_map(buffer);
	if (error && !gpusim_buffer_unmap(buffer)) {
		xa_erase(&file->buffers, *handle);
		gpusim_buffer_count(buffer, -buffer->size_bytes);
		gpusim_buffer_drop(buffer);
	}
	return error;
}

long gpusim_free(struct gpusim_file *file, u32 handle)
{
	struct gpusim_buffer *buffer;
	long error = 0;

	if (mutex_lock_killable(&file->mutex))
		return -EINTR;
	buffer = handle ? xa_load(&file->buffers, handle) : NULL;
	if (!buffer)
		error = -ENOENT;
	else
		error = gpusim_buffer_unmap(buffer);
	if (!error) {
		xa_erase(&file->buffers, handle);
		gpusim_buffer_count(buffer, -buffer->size_bytes);
		gpusim_buffer_drop(buffer);
	}
	mutex_unlock(&file->mutex);
	return error;
}

void gpusim_drop_buffers(struct gpusim_file *file)
{
	struct gpusim_buffer *buffer;
	unsigned long handle;

	xa_for_each(&file->buffers, handle, buffer) {
		xa_erase(&file->buffers, handle);
		gpusim_buffer_drop(buffer);
	}
	atomic64_set(&file->pinned_bytes, 0);
	atomic64_set(&file->allocated_bytes, 0);
}

/* ---- The driver's memory ---- */

/* A block of at most `order`, as single pages; `order` says of which. */
static struct page *gpusim_alloc_block(unsigned int *order)
{
	const gfp_t gfp = GFP_HIGHUSER | __GFP_ZERO | __GFP_NOWARN | __GFP_ACCOUNT;
	struct page *page;

	for (; *order; --*order) {
		page = alloc_pages(gfp | __GFP_NORETRY, *order);
		if (page) {
			split_page(page, *order);
			return page;
		}
	}
	return alloc_page(gfp | __GFP_RETRY_MAYFAIL); /* nobody is killed for it */
}

static int gpusim_buffer_fill(struct gpusim_buffer *buffer, u64 size_bytes)
{
	unsigned int order = LARGEST_ORDER;
	unsigned int i;
	int error;

	while (buffer->size_bytes < size_bytes) {
		const u64 left = (size_bytes - buffer->size_bytes) >> PAGE_SHIFT;
		struct page *page;

		if (fatal_signal_pending(current))
			return -EINTR;
		while (order && left >> order == 0)
			order--;
		page = gpusim_alloc_block(&order);
		if (!page)
			return -ENOMEM;
		error = gpusim_buffer_add(buffer, page, PAGE_SIZE << order);
		if (error) {
			for (i = 0; i < 1u << order; i++)
				__free_page(gpusim_page_after(page, i));
			return error;
		}
		atomic_long_add(1 << order, &gpusim_totals.allocated_pages);
		cond_resched();
	}
	return 0;
}

long gpusim_alloc(struct gpusim_file *file, struct gpusim_ioc_alloc *alloc)
{
	const unsigned long pages = alloc->size_bytes >> PAGE_SHIFT;
	struct gpusim_buffer *buffer;
	long error;

	if (alloc->flags & ~GPUSIM_ALLOC_READ_ONLY)
		return -EINVAL;
	error = gpusim_check_range(alloc->device_address, alloc->size_bytes);
	if (error)
		return error;
	buffer = gpusim_buffer_new(file, alloc->device_address);
	if (!buffer)
		return -ENOMEM;
	buffer->is_writable = !(alloc->flags & GPUSIM_ALLOC_READ_ONLY);
	error = gpusim_charge_allocated(file->user, pages);
	if (!error) {
		buffer->counted_pages = pages;
		error = gpusim_buffer_fill(buffer, alloc->size_bytes);
	}
	if (!error && mutex_lock_killable(&file->mutex))
		error = -EINTR;
	if (error) {
		gpusim_buffer_drop(buffer);
		return error;
	}
	error = gpusim_file_connect_locked(file);
	if (error) {
		gpusim_buffer_drop(buffer);
		goto unlock;
	}
	buffer->mmap_offset = file->next_mmap_offset;
	file->next_mmap_offset += alloc->size_bytes + PAGE_SIZE;
	alloc->mmap_offset = buffer->mmap_offset;
	error = gpusim_buffer_enter(buffer, &alloc->handle);
unlock:
	mutex_unlock(&file->mutex);
	return error;
}

/* Gives all of [offset, offset + size), which lies in one buffer. */
static struct gpusim_buffer *gpusim_find_mappable(struct gpusim_file *file, u64 offset, u64 size)
{
	struct gpusim_buffer *buffer, *found = NULL;
	unsigned long handle;

	xa_lock(&file->buffers);
	xa_for_each(&file->buffers, handle, buffer) {
		if (!buffer->mm && offset >= buffer->mmap_offset &&
		    offset - buffer->mmap_offset < buffer->size_bytes &&
		    size <= buffer->size_bytes - (offset - buffer->mmap_offset)) {
			kref_get(&buffer->users);
			found = buffer;
			break;
		}
	}
	xa_unlock(&file->buffers);
	return found;
}

static int gpusim_insert_pages(struct vm_area_struct *vma, unsigned long address,
			       struct page **pages, struct page *first, unsigned long count)
{
	while (count) {
		unsigned long batch = min_t(unsigned long, count, PAGES_AT_ONCE);
		unsigned long not_inserted = batch, i;
		int error;

		for (i = 0; i < batch; i++)
			pages[i] = gpusim_page_after(first, i);
		error = vm_insert_pages(vma, address, pages, &not_inserted);
		if (error)
			return error;
		first = gpusim_page_after(first, batch);
		address += batch << PAGE_SHIFT;
		count -= batch;
		cond_resched();
	}
	return 0;
}

int gpusim_mmap(struct gpusim_file *file, struct vm_area_struct *vma)
{
	const u64 offset = (u64)vma->vm_pgoff << PAGE_SHIFT;
	const u64 size = vma->vm_end - vma->vm_start;
	unsigned long address = vma->vm_start;
	struct gpusim_buffer *buffer;
	struct gpusim_table *table;
	struct page **pages;
	int error = 0;
	u64 skip;
	u32 i;

	if (!(vma->vm_flags & VM_SHARED))
		return -EINVAL;
	pages = (void *)__get_free_page(GFP_KERNEL);
	if (!pages)
		return -ENOMEM;
	/* A complete buffer does not change until its last user is gone. */
	buffer = gpusim_find_mappable(file, offset, size);
	if (!buffer) {
		error = -EINVAL;
		goto free;
	}
	gpusim_vma_fix_size(vma);
	skip = offset - buffer->mmap_offset;
	list_for_each_entry(table, &buffer->tables, link) {
		for (i = 0; i < table->count && !error && address < vma->vm_end; i++) {
			const struct gpusim_extent *extent = &table->extents[i];
			u64 bytes = gpusim_extent_bytes(extent);
			struct page *page = gpusim_extent_page(extent);

			if (skip >= bytes) {
				skip -= bytes;
				continue;
			}
			page = gpusim_page_after(page, skip >> PAGE_SHIFT);
			bytes = min_t(u64, bytes - skip, vma->vm_end - address);
			skip = 0;
			error = gpusim_insert_pages(vma, address, pages, page,
						    bytes >> PAGE_SHIFT);
			address += bytes;
		}
	}
	gpusim_buffer_drop(buffer);
free:
	free_page((unsigned long)pages);
	return error;
}

/* ---- The process's memory ---- */

/*
 * Up to `most` pages from `address` on. Memory that cores only read is pinned for writing, too,
 * where the process may write it: else its next write would move it to another page, away from
 * them.
 */
static long gpusim_pin_some(u64 address, long most, bool is_writable, struct page **pages)
{
	long count = pin_user_pages_fast(address, most, FOLL_WRITE | FOLL_LONGTERM, pages);

	if (count == -EFAULT && !is_writable)
		count = pin_user_pages_fast(address, 1, FOLL_LONGTERM, pages);
	return count ? count : -EFAULT;
}

static int gpusim_buffer_pin(struct gpusim_buffer *buffer, u64 user_address, u64 size_bytes)
{
	struct page **pages = (void *)__get_free_page(GFP_KERNEL);
	int error = 0;
	long count, i;

	if (!pages)
		return -ENOMEM;
	while (!error && buffer->size_bytes < size_bytes) {
		if (fatal_signal_pending(current)) {
			error = -EINTR;
			break;
		}
		count = min_t(u64, (size_bytes - buffer->size_bytes) >> PAGE_SHIFT, PAGES_AT_ONCE);
		count = gpusim_pin_some(user_address + buffer->size_bytes, count,
					buffer->is_writable, pages);
		if (count < 0) {
			error = count;
			break;
		}
		for (i = 0; i < count && !error; i++)
			error = gpusim_buffer_add(buffer, pages[i], PAGE_SIZE);
		if (error) {
			/* The page that could not be added, and those after it. */
			unpin_user_pages(pages + i - 1, count - i + 1);
			i--;
		}
		atomic_long_add(i, &gpusim_totals.pinned_pages);
		cond_resched();
	}
	free_page((unsigned long)pages);
	return error;
}

long gpusim_pin(struct gpusim_file *file, struct gpusim_ioc_pin *pin)
{
	const unsigned long pages = pin->size_bytes >> PAGE_SHIFT;
	const u64 user_address = untagged_addr(pin->user_address);
	struct gpusim_buffer *buffer;
	struct gpusim_table *table;
	long error;

	if (pin->reserved || pin->flags & ~GPUSIM_PIN_READ_ONLY || user_address & ~PAGE_MASK ||
	    user_address > ULONG_MAX - pin->size_bytes)
		return -EINVAL;
	error = gpusim_check_range(pin->device_address, pin->size_bytes);
	if (error)
		return error;
	buffer = gpusim_buffer_new(file, pin->device_address);
	if (!buffer)
		return -ENOMEM;
	buffer->is_writable = !(pin->flags & GPUSIM_PIN_READ_ONLY);
	error = gpusim_charge_pinned(file->user, pages);
	if (error)
		goto free;
	error = account_locked_vm(current->mm, pages, true);
	if (error)
		goto uncharge;
	buffer->mm = current->mm;
	buffer->counted_pages = pages;
	mmgrab(buffer->mm);
	error = gpusim_buffer_pin(buffer, user_address, pin->size_bytes);
	if (!error && mutex_lock_killable(&file->mutex))
		error = -EINTR;
	if (error) {
		gpusim_buffer_drop(buffer);
		return error;
	}
	error = gpusim_file_connect_locked(file);
	if (error) {
		gpusim_buffer_drop(buffer);
		goto unlock;
	}
	pin->extents = 0;
	list_for_each_entry(table, &buffer->tables, link)
		pin->extents += table->count;
	error = gpusim_buffer_enter(buffer, &pin->handle);
unlock:
	mutex_unlock(&file->mutex);
	return error;

uncharge:
	gpusim_uncharge_pinned(file->user, pages);
free:
	kfree(buffer);
	return error;
}

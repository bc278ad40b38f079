//! The allocator: lists of freed blocks by size, before the one of the standard library.
//!
//! A call makes some forty short-lived allocations of a few sizes. The standard library's allocator
//! merges and splits blocks for each; here one is taken from a list and put back. What is large goes
//! to the standard library's as it is, so that it can be given back and used for anything.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::UnsafeCell;
use std::ptr::null_mut;

/// Small blocks have sizes that are multiples of this, and its alignment.
const STEP: usize = 16;

/// How many sizes of small blocks there are.
const SIZES: usize = 64;

/// A block that is free: it holds the place of the next one.
type Free = *mut u8;

struct Blocks(UnsafeCell<[Free; SIZES]>);

// SAFETY: a component has one thread.
unsafe impl Sync for Blocks {}

#[global_allocator]
static BLOCKS: Blocks = Blocks(UnsafeCell::new([null_mut(); SIZES]));

/// Which list blocks of a layout belong to. `None` for what is large, empty or strangely aligned.
#[inline]
fn list_of(layout: Layout) -> Option<usize> {
    let list = layout.size().wrapping_sub(1) / STEP;
    (list < SIZES && layout.align() <= STEP).then_some(list)
}

// SAFETY: a block on a list was allocated with the layout that the list stands for, belongs to
// nobody, and is taken off the list before it is given out. Layouts of one list are interchangeable:
// each block has the size of the largest of them. Everything else is the standard library's.
unsafe impl GlobalAlloc for Blocks {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let Some(list) = list_of(layout) else {
            // SAFETY: the caller's promises are passed on.
            return unsafe { System.alloc(layout) };
        };
        // SAFETY: nobody else has a reference into the lists: there is one thread, and nothing below
        // allocates by way of this allocator.
        unsafe {
            let head = &mut (*self.0.get())[list];
            let block = *head;
            if block.is_null() {
                return System.alloc(Layout::from_size_align_unchecked((list + 1) * STEP, STEP));
            }
            *head = *block.cast::<Free>();
            block
        }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        let Some(list) = list_of(layout) else {
            // SAFETY: the caller's promises are passed on.
            return unsafe { System.dealloc(block, layout) };
        };
        // SAFETY: as above. The block is the caller's, and large enough for a pointer.
        unsafe {
            let head = &mut (*self.0.get())[list];
            *block.cast::<Free>() = *head;
            *head = block;
        }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller promises that the size is one that a layout can have.
        let wanted = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        let (from, to) = (list_of(layout), list_of(wanted));
        // SAFETY: the caller's promises are passed on; a block of a list serves every layout of it,
        // and what is copied is in both.
        unsafe {
            match (from, to) {
                (None, None) => System.realloc(block, layout, size),
                (Some(from), Some(to)) if from == to => block,
                _ => {
                    let moved = self.alloc(wanted);
                    if !moved.is_null() {
                        block.copy_to_nonoverlapping(moved, layout.size().min(size));
                        self.dealloc(block, layout);
                    }
                    moved
                }
            }
        }
    }
}

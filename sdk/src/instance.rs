//! What an instance keeps in memory from one call to the next.
//!
//! It is of use to plugins whose manifest asks for one shared instance (`instance = "shared"` under
//! `[runtime]`): calls overlap there, and all of them see it. Without that each call has an instance
//! of its own, and finds the default; with `instance = "session"`, the calls of each session share
//! one, and with `"stateless"`, all calls share a few. A shared instance ends too - after a trap, a reload, or a deadline that passed - and what it
//! kept ends with it: what must not be lost belongs into [`state`](mod@crate::state).

use std::any::Any;
use std::cell::RefCell;
use std::rc::Rc;

/// Looks at what the instance keeps of this type, or changes it. The first time it is the default.
///
/// No other call is served meanwhile, and the closure cannot wait.
///
/// ```
/// use tenon_sdk::{instance, plugin, tool};
///
/// #[derive(Default)]
/// struct Notes(Vec<String>);
///
/// /// Remembers a note, and says how many there are.
/// #[tool]
/// async fn remember(note: String) -> String {
///     instance::with(|notes: &mut Notes| {
///         notes.0.push(note);
///         notes.0.len().to_string()
///     })
/// }
///
/// plugin!(tools: [remember]);
/// # fn main() {}
/// ```
///
/// # Panics
///
/// When the closure itself asks for the same type.
pub fn with<T: Default + 'static, R>(change: impl FnOnce(&mut T) -> R) -> R {
    let kept: Rc<RefCell<T>> = kept(|kept| {
        let known = kept.iter().find_map(|any| Rc::clone(any).downcast().ok());
        known.unwrap_or_else(|| {
            let new = Rc::<RefCell<T>>::default();
            kept.push(new.clone());
            new
        })
    });
    let mut kept = kept.try_borrow_mut().expect("the same type is asked for only once at a time");
    change(&mut kept)
}

/// One value of each type.
type Kept = Vec<Rc<dyn Any>>;

#[cfg(target_arch = "wasm32")]
fn kept<R>(look: impl FnOnce(&mut Kept) -> R) -> R {
    thread_local! {
        static KEPT: RefCell<Kept> = const { RefCell::new(Vec::new()) };
    }
    KEPT.with_borrow_mut(look)
}

#[cfg(not(target_arch = "wasm32"))]
fn kept<R>(look: impl FnOnce(&mut Kept) -> R) -> R {
    look(&mut crate::testing::current().kept())
}

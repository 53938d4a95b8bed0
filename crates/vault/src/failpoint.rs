//! Fail points: tests make a write fail or crash at each of them. Outside this crate's unit tests they do nothing.

/// A point at which a test can inject a fault, named after the operation that follows.
#[cfg(not(test))]
#[inline]
pub(crate) fn hit(_name: &'static str) -> std::io::Result<()> {
    Ok(())
}

/// Whether a test simulates a file system without this feature.
#[cfg(not(test))]
#[inline]
pub(crate) fn lacks(_feature: &'static str) -> bool {
    false
}

#[cfg(test)]
pub(crate) use fault::{hit, lacks};

#[cfg(test)]
pub(crate) mod fault {
    use std::cell::{Cell, RefCell};
    use std::io;

    type Hook = Box<dyn FnMut(&'static str) -> io::Result<()>>;

    thread_local! {
        // A write stays on its caller's thread, so parallel tests do not affect each other.
        static HOOK: RefCell<Option<Hook>> = const { RefCell::new(None) };
        static LACKING: Cell<&'static [&'static str]> = const { Cell::new(&[]) };
    }

    pub(crate) fn lacks(feature: &'static str) -> bool {
        LACKING.get().contains(&feature)
    }

    /// Simulates, on this thread, a file system without these features.
    pub(crate) fn set_lacking(features: &'static [&'static str]) {
        LACKING.set(features);
    }

    pub(crate) fn hit(name: &'static str) -> io::Result<()> {
        // Removed while it runs, so that a hook may itself use the vault.
        let Some(mut hook) = HOOK.take() else { return Ok(()) };
        let outcome = hook(name);
        HOOK.set(Some(hook));
        outcome
    }

    /// Runs `work` and calls `hook` at every fail point of this thread. A hook that panics simulates a crash.
    pub(crate) fn with_hook<T>(
        hook: impl FnMut(&'static str) -> io::Result<()> + 'static,
        work: impl FnOnce() -> T,
    ) -> std::thread::Result<T> {
        HOOK.set(Some(Box::new(hook)));
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        HOOK.set(None);
        outcome
    }
}

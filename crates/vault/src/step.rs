//! The points at which a write can be made to fail, so that tests can fail or stop it at every one of them.
//!
//! Outside this crate's unit tests a step does nothing.

/// Passes a point of a write. The name says which effect is about to happen.
#[cfg(not(test))]
#[inline]
pub(crate) fn before(_effect: &'static str) -> std::io::Result<()> {
    Ok(())
}

/// Whether the file system is taken to lack something it could have, so that tests see what is done without it.
#[cfg(not(test))]
#[inline]
pub(crate) fn lacks(_ability: &'static str) -> bool {
    false
}

#[cfg(test)]
pub(crate) use fault::{before, lacks};

#[cfg(test)]
pub(crate) mod fault {
    use std::cell::{Cell, RefCell};
    use std::io;

    type Hook = Box<dyn FnMut(&'static str) -> io::Result<()>>;

    thread_local! {
        // A write stays on the thread that asked for it, so tests that run side by side do not meet.
        static HOOK: RefCell<Option<Hook>> = const { RefCell::new(None) };
        static LACKING: Cell<&'static [&'static str]> = const { Cell::new(&[]) };
    }

    pub(crate) fn lacks(ability: &'static str) -> bool {
        LACKING.get().contains(&ability)
    }

    /// From here on this thread's file system lacks these abilities.
    pub(crate) fn set_lacking(abilities: &'static [&'static str]) {
        LACKING.set(abilities);
    }

    pub(crate) fn before(effect: &'static str) -> io::Result<()> {
        // Taken out while it runs, so that a hook may itself use the vault.
        let Some(mut hook) = HOOK.take() else { return Ok(()) };
        let outcome = hook(effect);
        HOOK.set(Some(hook));
        outcome
    }

    /// Runs `work` with every step of this thread passing through `hook`. A hook that panics stands for a crash.
    pub(crate) fn with_steps<T>(
        hook: impl FnMut(&'static str) -> io::Result<()> + 'static,
        work: impl FnOnce() -> T,
    ) -> std::thread::Result<T> {
        HOOK.set(Some(Box::new(hook)));
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        HOOK.set(None);
        outcome
    }
}

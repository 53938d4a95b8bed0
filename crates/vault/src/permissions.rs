//! Copies owner, group, mode, ACL and extended attributes from a file to its new version.
//!
//! A new version never gives access to more accounts than the old one. Set-uid, set-gid and file capabilities are dropped. If
//! the group or the ACL cannot be copied, mode bits that would give access to other accounts are dropped too.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;

use rustix::fs::{Gid, Uid};

use crate::dir::{Metadata, mode_of};

/// The set-uid, set-gid and sticky bits of a mode.
pub(crate) const SPECIAL_BITS: u32 = 0o7000;

/// Copies the permissions of one open file to another, which this process has just created as private.
pub(crate) fn copy_permissions(from: &File, to: &File) -> io::Result<()> {
    let source = Metadata::of(from)?;
    // Before the mode: attributes can be set only while this account owns the file and may write it.
    attributes::copy(from, to)?;
    let (user, group) = source.owner;
    if Metadata::of(to)?.owner != source.owner {
        let (user, group) = (Uid::from_raw(user), Gid::from_raw(group));
        // Only root may change the owner: for others the writer becomes the owner, as with any editor.
        if rustix::fs::fchown(to, Some(user), Some(group)).is_err() {
            // Allowed for groups of the writer; checked below.
            let _ = rustix::fs::fchown(to, None, Some(group));
        }
    }
    let mut access = AccessList::of(from)?;
    if Metadata::of(to)?.owner.1 != group {
        access.drop_group();
    }
    if access.is_extended() {
        if attributes::set_acl(to, &access.to_bytes())? {
            return Ok(());
        }
        access.drop_named();
    }
    attributes::remove_acl(to)?;
    Ok(rustix::fs::fchmod(to, mode_of(access.mode()))?)
}

pub(crate) const READ: u16 = 4;
pub(crate) const WRITE: u16 = 2;
pub(crate) const ENTER: u16 = 1;

/// What a file or folder permits to the members of a group; bits as in a mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GroupRights {
    /// To every member.
    pub(crate) all: u16,
    /// To some members: an ACL may name accounts.
    pub(crate) some: u16,
}

impl GroupRights {
    /// Reads the rights of an open file or folder.
    pub(crate) fn of(file: impl AsFd, group: u32) -> io::Result<Self> {
        Ok(Self::by(&AccessList::of(&file)?, Metadata::of(&file)?.owner.1 == group))
    }

    /// With an ACL, the group bits of the mode are the mask, and not what the group may do.
    fn by(access: &AccessList, is_its_group: bool) -> Self {
        let mask = access.bits(MASK).unwrap_or(0o7);
        let named = || access.0.iter().filter(|entry| matches!(entry.tag, NAMED_USER | NAMED_GROUP));
        // Members of the group may also be in the group of the file.
        let (group, other) = (access.group(), access.other());
        let (all, some) = if is_its_group { (group, group) } else { (group & other, other) };
        Self {
            all: all & access.common_to_named(&[NAMED_USER, NAMED_GROUP]),
            some: named().fold(some, |rights, entry| rights | entry.bits & mask),
        }
    }

    /// The rights that remain below `folder`: none for those who may not enter it.
    #[must_use]
    pub(crate) fn within(self, folder: Self) -> Self {
        let through = |rights: u16, folder: u16| if folder & ENTER == 0 { 0 } else { rights };
        Self { all: through(self.all, folder.all), some: through(self.some, folder.some) }
    }

    /// Whether every member can list the folder.
    pub(crate) fn can_list(self) -> bool {
        self.all & (READ | ENTER) == READ | ENTER
    }
}

/// The entries of a POSIX ACL, or of a mode as an ACL.
#[derive(Debug, Clone, PartialEq, Eq)]
struct AccessList(Vec<AclEntry>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct AclEntry {
    tag: u16,
    /// Read, write, execute, as in a mode.
    bits: u16,
    /// The user or group of a named entry.
    id: u32,
}

/// Tags and layout are those of `system.posix_acl_access`: a version, then entries, all little-endian.
const VERSION: [u8; 4] = 2u32.to_le_bytes();
const ENTRY_BYTES: usize = 8;
const OWNER: u16 = 0x01;
const NAMED_USER: u16 = 0x02;
const GROUP: u16 = 0x04;
const NAMED_GROUP: u16 = 0x08;
const MASK: u16 = 0x10;
const OTHER: u16 = 0x20;
const NO_ID: u32 = u32::MAX;

impl AccessList {
    fn of(file: impl AsFd) -> io::Result<Self> {
        match attributes::acl(&file)? {
            Some(bytes) => Self::parse(&bytes)
                .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "cannot parse the ACL of the file")),
            None => Ok(Self::of_mode(Metadata::of(file)?.mode)),
        }
    }

    fn of_mode(mode: u32) -> Self {
        let entry = |tag, shift: u32| AclEntry { tag, bits: ((mode >> shift) & 0o7) as u16, id: NO_ID };
        Self(vec![entry(OWNER, 6), entry(GROUP, 3), entry(OTHER, 0)])
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let entries = bytes.strip_prefix(&VERSION)?;
        let mut parts = entries.chunks_exact(ENTRY_BYTES);
        let parsed = parts.by_ref().map(|entry| {
            let number = |at: usize| u16::from_le_bytes([entry[at], entry[at + 1]]);
            let id = u32::from_le_bytes([entry[4], entry[5], entry[6], entry[7]]);
            AclEntry { tag: number(0), bits: number(2) & 0o7, id }
        });
        let access = Self(parsed.collect());
        parts.remainder().is_empty().then_some(access)
    }

    fn to_bytes(&self) -> Vec<u8> {
        let entry = |AclEntry { tag, bits, id }: &AclEntry| {
            [&tag.to_le_bytes()[..], &bits.to_le_bytes()[..], &id.to_le_bytes()[..]].concat()
        };
        VERSION.into_iter().chain(self.0.iter().flat_map(entry)).collect()
    }

    /// Whether a mode cannot express it.
    fn is_extended(&self) -> bool {
        self.0.iter().any(|entry| !matches!(entry.tag, OWNER | GROUP | OTHER))
    }

    fn bits(&self, tag: u16) -> Option<u16> {
        self.0.iter().find(|entry| entry.tag == tag).map(|entry| entry.bits)
    }

    fn set(&mut self, tag: u16, bits: u16) {
        self.0.iter_mut().filter(|entry| entry.tag == tag).for_each(|entry| entry.bits = bits);
    }

    /// The rights of the file's group, limited by the mask.
    fn group(&self) -> u16 {
        self.bits(GROUP).unwrap_or_default() & self.bits(MASK).unwrap_or(0o7)
    }

    fn other(&self) -> u16 {
        self.bits(OTHER).unwrap_or_default()
    }

    /// The rights that all named entries with one of these tags have.
    fn common_to_named(&self, tags: &[u16]) -> u16 {
        let mask = self.bits(MASK).unwrap_or(0o7);
        let named = self.0.iter().filter(|entry| tags.contains(&entry.tag));
        named.fold(0o7, |common, entry| common & entry.bits & mask)
    }

    /// Adapts the rights to a changed group. Members of the new group had the rights of others or of a named group; members
    /// of the old group now have the rights of others.
    fn drop_group(&mut self) {
        let (group, other) = (self.group(), self.other());
        self.set(GROUP, group & other & self.common_to_named(&[NAMED_GROUP]));
        self.set(OTHER, group & other);
    }

    /// Removes the named entries. The accounts they named now have the rights of the group or of others.
    fn drop_named(&mut self) {
        let common = self.common_to_named(&[NAMED_USER, NAMED_GROUP]);
        let (group, other) = (self.group() & common, self.other() & common);
        self.0.retain(|entry| matches!(entry.tag, OWNER | GROUP | OTHER));
        self.set(GROUP, group);
        self.set(OTHER, other);
    }

    /// The mode of an access that is not extended.
    fn mode(&self) -> u32 {
        let owner = self.bits(OWNER).unwrap_or_default();
        u32::from(owner) << 6 | u32::from(self.group()) << 3 | u32::from(self.other())
    }
}

mod attributes {
    use std::ffi::CStr;
    use std::fs::File;
    use std::io;
    use std::os::fd::AsFd;

    use rustix::fs::{XattrFlags, fgetxattr, fgetxattr_query, flistxattr, flistxattr_query, fremovexattr, fsetxattr};
    use rustix::io::Errno;

    const ACL: &CStr = c"system.posix_acl_access";
    /// Capabilities give a program rights, as set-uid does. The other two are checksums of the old content.
    const NOT_COPIED: [&CStr; 4] = [ACL, c"security.capability", c"security.ima", c"security.evm"];

    /// Copies every attribute that the system allows to copy. A full disk is an error.
    pub(super) fn copy(from: &File, to: &File) -> io::Result<()> {
        let list = match whole(|| flistxattr_query(from), |buffer| flistxattr(from, buffer)) {
            Err(error) if is_absent(error) => return Ok(()),
            list => list?,
        };
        for name in list.split_inclusive(|byte| *byte == 0) {
            let Ok(name) = CStr::from_bytes_with_nul(name) else { continue };
            if NOT_COPIED.contains(&name) {
                continue;
            }
            let Some(value) = value(from, name)? else { continue };
            match fsetxattr(to, name, &value, XattrFlags::empty()) {
                Err(error) if is_absent(error) || is_refused(error) => {}
                set => set?,
            }
        }
        Ok(())
    }

    pub(super) fn acl(file: impl AsFd) -> io::Result<Option<Vec<u8>>> {
        value(&file, ACL)
    }

    /// `false` if the file system or the system does not allow it.
    pub(super) fn set_acl(file: &File, acl: &[u8]) -> io::Result<bool> {
        match fsetxattr(file, ACL, acl, XattrFlags::empty()) {
            Ok(()) => Ok(true),
            Err(error) if is_absent(error) || is_refused(error) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes the ACL that a new file has from its folder's default ACL.
    pub(super) fn remove_acl(file: &File) -> io::Result<()> {
        if acl(file)?.is_none() {
            return Ok(());
        }
        Ok(fremovexattr(file, ACL)?)
    }

    fn value(file: &impl AsFd, name: &CStr) -> io::Result<Option<Vec<u8>>> {
        match whole(|| fgetxattr_query(file, name), |buffer| fgetxattr(file, name, buffer)) {
            Ok(value) => Ok(Some(value)),
            Err(error) if is_absent(error) || is_refused(error) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads a value of unknown size, which may grow between the query and the read.
    fn whole(
        size: impl Fn() -> Result<usize, Errno>,
        read: impl Fn(&mut [u8]) -> Result<usize, Errno>,
    ) -> Result<Vec<u8>, Errno> {
        loop {
            let mut buffer = vec![0; size()?];
            match read(&mut buffer) {
                Err(Errno::RANGE) => {}
                other => {
                    buffer.truncate(other?);
                    return Ok(buffer);
                }
            }
        }
    }

    /// The attribute does not exist, or the file system has no attributes.
    fn is_absent(error: Errno) -> bool {
        #[cfg(target_vendor = "apple")]
        let absent = Errno::NOATTR;
        #[cfg(not(target_vendor = "apple"))]
        let absent = Errno::NODATA;
        [absent, Errno::NOTSUP, Errno::OPNOTSUPP, Errno::NOSYS].contains(&error)
    }

    fn is_refused(error: Errno) -> bool {
        [Errno::PERM, Errno::ACCESS, Errno::INVAL].contains(&error)
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests play the user, who edits files directly")]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use quipu_core::model::{ContentHash, VaultPath};
    use quipu_core::ports::{FileChange, VaultFiles};

    use crate::failpoint::fault::with_hook;
    use crate::{FolderVault, VaultOptions};

    use super::{AccessList, AclEntry, GROUP, GroupRights, MASK, NAMED_GROUP, NAMED_USER, NO_ID, OTHER};

    fn acl(group: u16, other: u16, mask: u16, named: &[(u16, u16)]) -> AccessList {
        let mut access = AccessList::of_mode(0o600);
        access.set(GROUP, group);
        access.set(OTHER, other);
        access.0.extend(named.iter().map(|(tag, bits)| AclEntry { tag: *tag, bits: *bits, id: 1 }));
        access.0.push(AclEntry { tag: MASK, bits: mask, id: NO_ID });
        access
    }

    #[test]
    fn dropping_the_group_gives_no_account_new_access() {
        for (before, after) in [(0o660, 0o600), (0o664, 0o644), (0o604, 0o600), (0o640, 0o600), (0o666, 0o666)] {
            let mut access = AccessList::of_mode(before);
            access.drop_group();
            assert_eq!(access.mode(), after, "{before:o}");
        }
        // A member of the new group who is denied by a named group stays denied.
        let mut access = acl(6, 4, 7, &[(NAMED_GROUP, 0)]);
        access.drop_group();
        assert_eq!((access.bits(GROUP), access.bits(OTHER)), (Some(0), Some(4)));
    }

    #[test]
    fn dropping_the_acl_gives_no_account_new_access() {
        for (access, after) in [
            // The mode of this file is 0670: its group bits are the mask, and the group itself has nothing.
            (acl(0, 0, 7, &[(NAMED_USER, 7)]), 0o600),
            (acl(4, 4, 6, &[(NAMED_USER, 6)]), 0o644),
            // A user denied by name would get access as a member of the group or as others.
            (acl(6, 4, 7, &[(NAMED_USER, 0)]), 0o600),
            (acl(6, 4, 4, &[(NAMED_GROUP, 6)]), 0o644),
        ] {
            let mut reduced = access.clone();
            reduced.drop_named();
            assert_eq!(format!("{:o}", reduced.mode()), format!("{after:o}"), "{access:?}");
            assert_eq!(AccessList::parse(&access.to_bytes()), Some(access));
        }
    }

    #[test]
    fn group_has_the_rights_of_its_entry_and_not_of_the_mask() {
        let rights = |access: &AccessList, is_its_group| {
            let GroupRights { all, some } = GroupRights::by(access, is_its_group);
            (all, some)
        };
        // Mode 0770 for both.
        let closed = acl(0, 0, 7, &[(NAMED_USER, 7)]);
        assert_eq!(rights(&closed, true), (0, 7));
        assert_eq!(rights(&acl(7, 0, 7, &[(NAMED_USER, 0)]), true), (0, 7), "one member is denied");
        assert_eq!(rights(&acl(7, 5, 5, &[]), true), (5, 5));
        assert_eq!(rights(&AccessList::of_mode(0o705), false), (0, 5));
        assert_eq!(rights(&AccessList::of_mode(0o755), false), (5, 5));
        let (open, shut) = (GroupRights { all: 5, some: 5 }, GroupRights::by(&closed, true));
        assert_eq!(open.within(shut), GroupRights { all: 0, some: 5 });
    }

    #[test]
    fn temporary_file_of_a_private_note_is_private_from_the_start() {
        let home = tempfile::tempdir().unwrap();
        let note = home.path().join("a.md");
        std::fs::write(&note, "old").unwrap();
        std::fs::set_permissions(&note, PermissionsExt::from_mode(0o600)).unwrap();
        let vault = FolderVault::open(home.path(), VaultOptions::default()).unwrap();
        let folder = home.path().to_owned();
        let (sender, modes) = std::sync::mpsc::channel();
        let hook = move |step: &str| {
            let files = std::fs::read_dir(&folder)?.map(|entry| entry.unwrap());
            for file in files.filter(|file| file.file_name().to_string_lossy().ends_with("quipu-tmp")) {
                sender.send((step.to_owned(), file.metadata()?.permissions().mode() & 0o777)).unwrap();
            }
            Ok(())
        };
        let (path, expected) = (VaultPath::parse("a.md").unwrap(), ContentHash::of(b"old"));
        let change = FileChange::Replace { path, expected, bytes: b"new".to_vec() };
        with_hook(hook, || vault.apply(&[change])).unwrap().unwrap();
        let modes: Vec<(String, u32)> = modes.iter().collect();
        assert!(modes.iter().any(|(step, _)| step == "write the rest"), "{modes:?}");
        assert!(modes.iter().all(|(_, mode)| *mode == 0o600), "{modes:?}");
    }

    /// Updates a note while `at` is the next step and `change` is done to the folder; returns the error.
    fn updated_during(at: &'static str, change: impl Fn(&std::path::Path) + 'static) -> (tempfile::TempDir, String) {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join("a.md"), "old").unwrap();
        std::fs::set_permissions(home.path().join("a.md"), PermissionsExt::from_mode(0o644)).unwrap();
        let vault = FolderVault::open(home.path(), VaultOptions::default()).unwrap();
        let folder = home.path().to_owned();
        let hook = move |step: &str| {
            if step == at {
                change(&folder);
            }
            Ok(())
        };
        let (path, expected) = (VaultPath::parse("a.md").unwrap(), ContentHash::of(b"old"));
        let change = FileChange::Replace { path, expected, bytes: b"new".to_vec() };
        let error = with_hook(hook, || vault.apply(&[change])).unwrap().unwrap_err();
        (home, error.to_string())
    }

    #[test]
    fn permissions_of_another_file_or_of_an_earlier_moment_are_not_copied() {
        let exchange = |folder: &std::path::Path| {
            std::fs::rename(folder.join("a.md"), folder.join("kept.md")).unwrap();
            std::fs::write(folder.join("a.md"), "old").unwrap();
            std::fs::set_permissions(folder.join("a.md"), PermissionsExt::from_mode(0o666)).unwrap();
        };
        let (home, error) = updated_during("write", exchange);
        assert!(error.contains("changed"), "{error}");
        assert_eq!(std::fs::read_to_string(home.path().join("a.md")).unwrap(), "old");
        let close = |folder: &std::path::Path| {
            std::fs::set_permissions(folder.join("a.md"), PermissionsExt::from_mode(0o600)).unwrap();
        };
        for step in ["write", "replace"] {
            let (home, error) = updated_during(step, close);
            assert!(error.contains("changed"), "{step}: {error}");
            let mode = std::fs::metadata(home.path().join("a.md")).unwrap().permissions().mode() & 0o777;
            assert_eq!((mode, std::fs::read_to_string(home.path().join("a.md")).unwrap().as_str()), (0o600, "old"));
        }
    }
}

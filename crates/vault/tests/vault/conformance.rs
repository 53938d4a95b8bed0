//! The port's rules, over a real folder.

use quipu_testkit::vault_conformance::TestedVault;
use quipu_vault::FolderVault;

use crate::home::Home;

struct InFolder {
    home: Home,
    vault: FolderVault,
}

impl InFolder {
    fn new() -> Self {
        let home = Home::new(&[]);
        Self { vault: home.open(), home }
    }
}

impl TestedVault for InFolder {
    type Vault = FolderVault;

    fn vault(&self) -> &FolderVault {
        &self.vault
    }

    fn save(&self, path: &str, text: &str) {
        self.home.save(path, text);
    }
}

quipu_testkit::vault_conformance!(InFolder::new());

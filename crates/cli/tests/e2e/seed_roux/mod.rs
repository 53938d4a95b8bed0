//! The two documents that the notes toolset comes from: every example and every row of their tables.
//!
//! `search` has no examples here: it exists only where there is an embedder.

mod errors;
mod graph;
mod lists;
mod names;
mod one_node;
mod parameters;
mod writes;

/// The notes of the documents' examples. A test that needs a longer text has it in full.
const ROUX: &str = "\
//- notes/GraphCore.md
---
tags: [architecture, core]
---
The orchestration hub of Roux: [[StoreProvider]], [[EmbeddingProvider]], [[Node]].
//- notes/StoreProvider.md
---
tags: [provider]
---
Data persistence and graph operations. See [[Node]].
//- notes/EmbeddingProvider.md
---
tags: [provider]
---
Vectors.
//- notes/Node.md
The data model.
//- notes/architecture.md
---
title: Architecture Overview
tags: [overview]
---
Roux is built around the [[GraphCore]].
";

//! Paths, globs and object-store URLs become a stream of documents.

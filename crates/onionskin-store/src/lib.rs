//! The atlas: Parquet tables, manifest, external sort, memory budget.

//! Replicated collections of linked pages.
//!
//! Cho, Shivakumar and Garcia-Molina 2000: similar pages are trivial clusters; clusters whose pages link to each other in the same way grow
//! into collections, and a collection that stands on several sites is a mirror.

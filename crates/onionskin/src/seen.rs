//! The online filter: see [`onionskin_seen`]. Beside it [`StoredTexts`], which compares the texts
//! of what was found.

mod texts;

pub use onionskin_seen::*;
pub use texts::{StoredTexts, StoredTextsError, Unverified};

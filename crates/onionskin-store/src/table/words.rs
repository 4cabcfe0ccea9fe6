//! Columns that hold one of a few words, as enums.

#![cfg_attr(feature = "openapi", allow(unused_qualifications, reason = "what utoipa writes has them"))]

use std::str::FromStr;

use serde::Serialize;

/// An enum whose values are words in a table, in JSON and on the command line. A word is a token
/// tree: what makes schemas of the API does not see through a literal that a macro has wrapped.
macro_rules! words {
    ($($(#[$doc:meta])* $name:ident, $error:ident, $what:literal {
        $($(#[$of:meta])* $value:ident => $word:tt,)+
    })+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        pub enum $name {
            $(
                $(#[$of])*
                #[serde(rename = $word)]
                $value,
            )+
        }

        #[doc = concat!("Not a ", $what, ".")]
        #[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
        #[error("unknown {} {name:?}; known are {known}", $what, known = $name::KNOWN)]
        pub struct $error {
            /// What was given.
            pub name: String,
        }

        onionskin_core::spelled!($name, as_str: $($value => $word),+);

        impl FromStr for $name {
            type Err = $error;

            fn from_str(name: &str) -> Result<$name, $error> {
                $name::find(name).ok_or_else(|| $error { name: name.to_owned() })
            }
        }

        impl super::row::Word for $name {
            const KNOWN: &'static str = $name::KNOWN;

            fn word(self) -> &'static str {
                self.as_str()
            }

            fn parse(word: &str) -> Option<$name> {
                $name::find(word)
            }
        }
    )+};
}

words! {
    /// What found a pair.
    #[derive(Default)]
    #[non_exhaustive]
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    Method, UnknownMethod, "method" {
        /// Equal payload or equal canonical text.
        Exact => "exact",
        /// A number of shared chunks.
        Overlap => "overlap",
        /// Resemblance of the shingle sets.
        #[default]
        Resemblance => "resemblance",
        /// A share of identical shingle paragraphs.
        Paragraphs => "paragraphs",
    }

    /// How a member of a cluster is a copy of its centre.
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    CopyKind, UnknownCopyKind, "kind of copy" {
        /// Equal payload or equal canonical text. The centre is exact too.
        Exact => "exact",
        /// Near.
        Near => "near",
    }

    /// Why pages are copied.
    CollectionKind, UnknownCollectionKind, "kind of collection" {
        /// The copy that others are measured by.
        Principal => "principal",
        /// Nine in ten pages of the principal or more, on another site.
        Mirror => "mirror",
        /// Fewer of them.
        PartialMirror => "partial mirror",
        /// The same host under another name.
        HostAlias => "host alias",
        /// The same pages of a site under another folder, word for word.
        UrlAlias => "url alias",
        /// Another version of the same documents.
        Versions => "versioned documentation",
        /// A copy inside the site that is neither.
        SameSite => "copy on the same site",
        /// Few pages that look alike because they were made alike.
        TemplateNoise => "template noise",
    }

    /// What the principal of a collection was chosen by. See [`PrincipalReason::is_weak`].
    #[non_exhaustive]
    PrincipalReason, UnknownPrincipalReason, "reason" {
        /// The other copies name its pages as canonical.
        Canonical => "canonical",
        /// Clearly more registered domains link to it.
        Links => "links",
        /// It was fetched long before the others.
        FetchedFirst => "fetched first",
        /// More registered domains link to it, but too few to tell.
        FewLinks => "few links",
        /// It has more pages.
        Size => "size",
        /// It was fetched a little earlier.
        FetchedEarlier => "fetched earlier",
        /// It is in a directory higher up.
        Depth => "depth",
        /// Its address comes first in the alphabet.
        Address => "address",
    }

    /// Which of two versions is the newer one.
    Newer, UnknownNewer, "answer to which is newer" {
        /// They are the same.
        Same => "same",
        /// The principal.
        Principal => "principal",
        /// The replica.
        Replica => "replica",
        /// Nothing tells.
        Unknown => "unknown",
    }

    /// What a page is in its replica.
    Role, UnknownRole, "role" {
        /// Similar to the pages of the same slot in other replicas.
        Copy => "copy",
        /// Not there, but linked to, on another replica (Cho et al. 2000, section 4).
        Virtual => "virtual",
        /// At the same place as the pages of its slot, but no longer similar to them.
        Changed => "changed",
        /// Of this replica alone.
        Added => "added",
        /// A second URL of the page that has this slot.
        Alias => "alias",
    }
}

impl PrincipalReason {
    /// Whether it is a way to choose one and no evidence of which copy is the original.
    pub fn is_weak(self) -> bool {
        !matches!(self, PrincipalReason::Canonical | PrincipalReason::Links | PrincipalReason::FetchedFirst)
    }
}

impl Role {
    /// Whether a crawler that has the other replicas knows what the page says.
    pub fn is_copy(self) -> bool {
        matches!(self, Role::Copy | Role::Alias)
    }
}

//! Enums whose values are words: in tables, in JSON and on the command line.

/// Gives an enum its words, in one place: `ALL` of its values, `KNOWN` words for messages, a method
/// that gives the word of a value, `find`, and `Display`.
///
/// ```
/// #[derive(Clone, Copy, Debug, PartialEq)]
/// enum Shade {
///     Dark,
///     Light,
/// }
/// onionskin_core::spelled!(Shade, as_str: Dark => "dark", Light => "light");
///
/// assert_eq!(Shade::Light.as_str(), "light");
/// assert_eq!(format!("{:>6}", Shade::Dark), "  dark");
/// assert_eq!(Shade::find("dark"), Some(Shade::Dark));
/// assert_eq!(Shade::find("Dark"), None);
/// assert_eq!(Shade::KNOWN, "dark, light");
/// assert_eq!(Shade::ALL.len(), 2);
/// ```
#[macro_export]
macro_rules! spelled {
    ($name:ident, $word_of:ident: $first:ident => $first_word:literal $(, $value:ident => $word:literal)* $(,)?) => {
        impl $name {
            /// Every one of them.
            pub const ALL: [$name; [$first_word $(, $word)*].len()] = [$name::$first $(, $name::$value)*];
            /// The words, for messages.
            pub const KNOWN: &'static str = concat!($first_word $(, ", ", $word)*);

            /// The word for it, the same everywhere.
            pub const fn $word_of(self) -> &'static str {
                match self {
                    $name::$first => $first_word,
                    $($name::$value => $word,)*
                }
            }

            /// The one that has this word.
            pub fn find(word: &str) -> Option<$name> {
                $name::ALL.into_iter().find(|known| known.$word_of() == word)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.$word_of())
            }
        }
    };
}

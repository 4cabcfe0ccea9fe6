//! Errors that hold the errors of what they are built on.

/// Wraps errors of sources in boxed variants, so that the many results on the way are small.
#[macro_export]
macro_rules! boxed_sources {
    ($error:ident: $($variant:ident($source:ty)),+ $(,)?) => {$(
        impl From<$source> for $error {
            fn from(source: $source) -> $error {
                $error::$variant(Box::new(source))
            }
        }
    )+};
}
